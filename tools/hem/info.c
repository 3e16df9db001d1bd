#include "base/env.h"
#include "commands.h"
#include "core/layout.h"
#include "core/topology.h"
#include "json.h"
#include "machine.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <hem/hem.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif

static const char help_text[] =
    "Usage: hem info [--json]\n"
    "\n"
    "Show the version, how Hem was built, this machine's cores, caches and memories, which\n"
    "transports and modules are usable and why not, and every HEM_ variable of the environment.\n"
    "\n"
    "  --json      one object for programs\n"
    "  -h, --help  this text\n";

static const char *const module_names[] = {"cuda", "ucx"};
#define MODULES (sizeof module_names / sizeof module_names[0])

typedef struct module {
    bool usable;
    char where[256];
} module;

typedef struct facts {
    int machine_error;
    hemt_machine machine;
    hemt_probe probes[HEMT_PROBES];
    module modules[MODULES];
} facts;

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

static bool assertions(void) {
#ifdef NDEBUG
    return false;
#else
    return true;
#endif
}

static const char *sanitizer(void) {
#if defined(WITH_ASAN)
    return "address";
#elif defined(WITH_TSAN)
    return "thread";
#else
    return "none";
#endif
}

static bool simulation(void) {
#ifdef HEMI_SIM
    return true;
#else
    return false;
#endif
}

static void gather(facts *facts_p) {
    facts_p->machine_error = hemt_machine_look(&facts_p->machine);
    hemt_probe_all(facts_p->probes);
    for (size_t i = 0; i < MODULES; i++)
        facts_p->modules[i].usable = hemt_module_look(module_names[i], facts_p->modules[i].where,
                                                      sizeof facts_p->modules[i].where);
}

/* "32 KiB", "1.5 GiB" */
static void size_text(uint64_t bytes, char *text, size_t size) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    snprintf(text, size, value < 10 && value != (double)(int)value ? "%.1f %s" : "%.0f %s", value,
             units[unit]);
}

static void print_machine(const facts *f) {
    char size[32];
    puts("\nMachine");
    if (f->machine_error != 0) {
        printf("  not known: %s\n", strerror(f->machine_error));
        return;
    }
    printf("  %-18s %u\n", "packages", f->machine.packages);
    printf("  %-18s %u\n", "cores", f->machine.cores);
    printf("  %-18s %u\n", "processors", f->machine.processors);
    for (uint32_t i = 0; i < f->machine.cache_count; i++) {
        const hemt_cache *cache = &f->machine.caches[i];
        size_text(cache->bytes, size, sizeof size);
        printf("  %-18s %u x %s\n", cache->name, cache->count, size);
    }
    for (uint32_t i = 0; i < f->machine.node_count && i < HEMT_NODES; i++) {
        const hemt_node *node = &f->machine.nodes[i];
        char name[24];
        snprintf(name, sizeof name, "NUMA node %u", node->number);
        size_text(node->bytes, size, sizeof size);
        printf("  %-18s %s, processors %s\n", name, size, node->processors);
    }
}

static void print_transports(const facts *f) {
    puts("\nTransports");
    printf("  %-18s usable\n", "self");
    printf("  %-18s %s\n", "shm",
           f->probes[HEMT_PROBE_MEMFD].usable ? "usable" : "not usable without memfd");
    for (int i = 0; i < HEMT_PROBES; i++) {
        const hemt_probe *probe = &f->probes[i];
        printf("    %-16s %s (%s)\n", probe->name, probe->usable ? "works" : probe->why,
               probe->purpose);
    }
    for (size_t i = 0; i < MODULES; i++)
        printf("  %-18s %s%s\n", module_names[i],
               f->modules[i].usable ? "found: " : "not usable: ", f->modules[i].where);
}

static void print_environment(void) {
    size_t count = 0;
    const hemi_env_entry *entries = hemi_env_table(&count);
    puts("\nEnvironment");
    for (size_t i = 0; i < count; i++) {
        const char *value = hemi_env_text(entries[i].name);
        printf("  %-18s %s%s%s\n  %-18s   %s\n", entries[i].name,
               value != NULL ? value : "not set (", value != NULL ? "" : entries[i].fallback,
               value != NULL ? "" : ")", "", entries[i].meaning);
    }
}

static void print_all(const facts *f) {
    printf("hem %s\n\nBuild\n", hem_version());
    printf("  %-18s %s\n", "compiler", compiler());
    printf("  %-18s %s\n", "assertions", assertions() ? "on" : "off");
    printf("  %-18s %s\n", "sanitizer", sanitizer());
    printf("  %-18s %s\n", "simulation", simulation() ? "yes" : "no");
    printf("  %-18s %u\n", "arena layout", HEMI_LAYOUT_VERSION);
    print_machine(f);
    print_transports(f);
    print_environment();
}

static void json_build(hemt_json *json) {
    hemt_json_open(json, "build", '{');
    hemt_json_text(json, "compiler", compiler());
    hemt_json_bool(json, "assertions", assertions());
    hemt_json_text(json, "sanitizer", sanitizer());
    hemt_json_bool(json, "simulation", simulation());
    hemt_json_number(json, "layout", HEMI_LAYOUT_VERSION);
    hemt_json_close(json, '}');
}

static void json_machine(hemt_json *json, const hemt_machine *machine) {
    hemt_json_open(json, "machine", '{');
    hemt_json_number(json, "packages", machine->packages);
    hemt_json_number(json, "cores", machine->cores);
    hemt_json_number(json, "processors", machine->processors);
    hemt_json_open(json, "caches", '[');
    for (uint32_t i = 0; i < machine->cache_count; i++) {
        hemt_json_open(json, NULL, '{');
        hemt_json_text(json, "name", machine->caches[i].name);
        hemt_json_number(json, "count", machine->caches[i].count);
        hemt_json_number(json, "bytes", (int64_t)machine->caches[i].bytes);
        hemt_json_close(json, '}');
    }
    hemt_json_close(json, ']');
    hemt_json_open(json, "numa_nodes", '[');
    for (uint32_t i = 0; i < machine->node_count && i < HEMT_NODES; i++) {
        hemt_json_open(json, NULL, '{');
        hemt_json_number(json, "number", machine->nodes[i].number);
        hemt_json_number(json, "bytes", (int64_t)machine->nodes[i].bytes);
        hemt_json_text(json, "processors", machine->nodes[i].processors);
        hemt_json_close(json, '}');
    }
    hemt_json_close(json, ']');
    hemt_json_close(json, '}');
}

static void json_usable(hemt_json *json, const char *key, bool usable, const char *why) {
    hemt_json_open(json, key, '{');
    hemt_json_bool(json, "usable", usable);
    hemt_json_text(json, "why_not", usable ? NULL : why);
    hemt_json_close(json, '}');
}

static void json_transports(hemt_json *json, const facts *f) {
    hemt_json_open(json, "transports", '{');
    json_usable(json, "self", true, NULL);
    json_usable(json, "shm", f->probes[HEMT_PROBE_MEMFD].usable, f->probes[HEMT_PROBE_MEMFD].why);
    hemt_json_close(json, '}');
    hemt_json_open(json, "kernel", '{');
    for (int i = 0; i < HEMT_PROBES; i++)
        json_usable(json, f->probes[i].name, f->probes[i].usable, f->probes[i].why);
    hemt_json_close(json, '}');
    hemt_json_open(json, "modules", '{');
    for (size_t i = 0; i < MODULES; i++)
        json_usable(json, module_names[i], f->modules[i].usable, f->modules[i].where);
    hemt_json_close(json, '}');
}

static void json_environment(hemt_json *json) {
    size_t count = 0;
    const hemi_env_entry *entries = hemi_env_table(&count);
    hemt_json_open(json, "environment", '[');
    for (size_t i = 0; i < count; i++) {
        hemt_json_open(json, NULL, '{');
        hemt_json_text(json, "name", entries[i].name);
        hemt_json_text(json, "value", hemi_env_text(entries[i].name));
        hemt_json_text(json, "default", entries[i].fallback);
        hemt_json_text(json, "meaning", entries[i].meaning);
        hemt_json_close(json, '}');
    }
    hemt_json_close(json, ']');
}

static void json_all(const facts *f) {
    hemt_json json = {.out = stdout};
    hemt_json_open(&json, NULL, '{');
    hemt_json_text(&json, "version", hem_version());
    json_build(&json);
    if (f->machine_error == 0)
        json_machine(&json, &f->machine);
    json_transports(&json, f);
    json_environment(&json);
    hemt_json_close(&json, '}');
}

int hemt_info(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool as_json = false;
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, "+h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(help_text, stdout);
            return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
        }
        if (option == '?')
            return hemt_usage("info", "%.64s is no option", argv[optind - 1]);
        as_json = true;
    }
    if (optind < argc)
        return hemt_usage("info", "%.64s: takes no arguments", argv[optind]);
    facts all = {.machine_error = ENOENT};
    gather(&all);
    if (as_json)
        json_all(&all);
    else
        print_all(&all);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
}
