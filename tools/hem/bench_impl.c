#include "bench_impl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    const char *runner;
    const char *launcher;
    const char *not_built;
    const char *not_installed;
} impls[HEMT_IMPLS] = {
    [HEMT_HEM] = {"hem", "hem-bench-hem", NULL, "not built; configure with -DHEM_BENCH=ON", NULL},
    [HEMT_HEM_LIB] = {"hem-lib", "hem-bench-hem", NULL, "not built; configure with -DHEM_BENCH=ON",
                      NULL},
    [HEMT_HEM_THREADS] = {"hem-threads", "hem-bench-hem", NULL,
                          "not built; configure with -DHEM_BENCH=ON", NULL},
    [HEMT_RAW] = {"raw", "hem-bench-raw", NULL, "not built; configure with -DHEM_BENCH=ON", NULL},
    [HEMT_OPENMPI] = {"openmpi", "hem-bench-openmpi", "mpirun.openmpi",
                      "not built; mpicc.openmpi was not found (Debian: libopenmpi-dev)",
                      "mpirun.openmpi is not in PATH (Debian: openmpi-bin)"},
    [HEMT_MPICH] = {"mpich", "hem-bench-mpich", "mpiexec.mpich",
                    "not built; mpicc.mpich was not found (Debian: libmpich-dev)",
                    "mpiexec.mpich is not in PATH (Debian: mpich)"},
    [HEMT_UCX] = {"ucx", "hem-bench-ucx", NULL, "not built; UCX was not found (Debian: libucx-dev)",
                  NULL},
    [HEMT_NCCL] = {"nccl", "hem-bench-gpu", NULL, NULL, NULL},
    [HEMT_NVSHMEM] = {"nvshmem", "hem-bench-nvshmem", NULL,
                      "not built; NVSHMEM was not found; configure with -DNVSHMEM_ROOT=PATH", NULL},
};

/* Hem, plain copies and NCCL, one after the other. */
static const char gpu_runner[] = "hem-bench-gpu";
static const char gpu_not_built[] = "not built; CUDA's nvcc was not found";

const char *hemt_impl_name(enum hemt_impl impl) {
    return impls[impl].name;
}

static bool is_mpi_or_hem(enum hemt_impl impl) {
    return impl == HEMT_HEM || impl == HEMT_OPENMPI || impl == HEMT_MPICH;
}

static bool takes_part_on_gpus(enum hemt_impl impl, enum bench_kind kind) {
    if (impl == HEMT_NCCL)
        return kind == BENCH_GPU_SENDRECV || kind == BENCH_GPU_ALLREDUCE ||
               kind == BENCH_GPU_ALLGATHER;
    if (impl == HEMT_NVSHMEM)
        return kind == BENCH_GPU_SIGNAL || kind == BENCH_GPU_PUT;
    return impl == HEMT_HEM || (impl == HEMT_RAW && kind != BENCH_GPU_SIGNAL);
}

bool hemt_impl_takes_part(enum hemt_impl impl, enum bench_kind kind) {
    if (hemt_kind(kind)->gpu)
        return takes_part_on_gpus(impl, kind);
    if (impl == HEMT_NCCL || impl == HEMT_NVSHMEM)
        return false;
    switch (kind) {
    case BENCH_RAW:
        return impl == HEMT_RAW;
    case BENCH_STREAM:
        return impl == HEMT_HEM;
    case BENCH_PATTERN_SETUP:
        return is_mpi_or_hem(impl) || impl == HEMT_HEM_THREADS;
    default:
        if (hemt_kind(kind)->pair || kind == BENCH_BARRIER)
            return impl != HEMT_HEM_LIB && impl != HEMT_HEM_THREADS;
        return is_mpi_or_hem(impl) || impl == HEMT_HEM_LIB;
    }
}

int hemt_impl_cpus(void) {
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    char candidate[4096];

    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        int n = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, path, program);
        if (n > 0 && (size_t)n < sizeof(candidate) && access(candidate, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* Beside this program as it was built, or where `make install` puts the runners. */
static bool find_runner(const char *name, struct hemt_command *command) {
    static const char *const places[] = {"bench", "../libexec/hem"};
    char self[3800];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return false;
    self[n] = '\0';
    snprintf(command->hem, sizeof(command->hem), "%s", self);
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(command->runner, sizeof(command->runner), "%s/%s/%s", self, places[i], name);
        if (access(command->runner, X_OK) == 0)
            return true;
    }
    return false;
}

static void add(struct hemt_command *command, const char *argument) {
    command->argv[command->argc++] = (char *)(size_t)argument;
}

static void add_launcher(enum hemt_impl impl, bool crowded, struct hemt_command *command) {
    switch (impl) {
    case HEMT_HEM:
    case HEMT_HEM_LIB:
        add(command, command->hem);
        add(command, "run");
        add(command, "--bind");
        add(command, crowded ? "none" : "core");
        break;
    case HEMT_OPENMPI:
        add(command, impls[impl].launcher);
        add(command, "--bind-to");
        add(command, crowded ? "none" : "core");
        if (crowded)
            add(command, "--oversubscribe");
        break;
    case HEMT_MPICH:
        add(command, impls[impl].launcher);
        add(command, "-bind-to");
        add(command, crowded ? "none" : "core");
        break;
    default:
        return;
    }
    add(command, "-n");
    add(command, command->ranks);
}

static void add_benchmark(enum hemt_impl impl, enum bench_kind kind, struct hemt_command *command) {
    add(command, command->runner);
    add(command, hemt_kind(kind)->name);
    if (impl == HEMT_RAW || impl == HEMT_UCX) {
        add(command, "-n");
        add(command, command->ranks);
    }
    if (impl == HEMT_HEM_LIB) {
        add(command, "--memory");
        add(command, "library");
    }
    if (impl == HEMT_HEM_THREADS) {
        add(command, "--threads");
        add(command, command->ranks);
    }
    if (command->shape[0] != '\0') {
        add(command, "--shape");
        add(command, command->shape);
    }
    if (command->sizes[0] != '\0') {
        add(command, "--sizes");
        add(command, command->sizes);
    }
    command->argv[command->argc] = NULL;
}

static void write_sizes(const struct hemt_sizes *sizes, char *text, size_t size) {
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizes->count && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%zu", i == 0 ? "" : ",", sizes->bytes[i]);
}

/* More processes than this on one machine say nothing but how it schedules. */
static const int most_processes = 64;

static const char *cannot_measure(enum hemt_impl impl, enum bench_kind kind, int ranks) {
    if (impl == HEMT_RAW && ranks != 2)
        return "the hardware is measured with 2 ranks only";
    if (kind == BENCH_PATTERN_SETUP && impl != HEMT_HEM_THREADS && ranks > most_processes)
        return "more than 64 ranks are started as threads only";
    if (impl == HEMT_RAW && hemt_impl_cpus() < 2)
        return "the hardware is measured with 2 processors, and only 1 is available";
    if (impl == HEMT_UCX && kind == BENCH_BARRIER)
        return "UCX has no barrier";
    if (impl == HEMT_UCX && hemt_impl_cpus() < 2)
        return "UCX spins, and only 1 processor is available";
    return NULL;
}

static const char *gpu_command(enum hemt_impl impl, enum bench_kind kind, int ranks,
                               const struct hemt_sizes *sizes, struct hemt_command *command) {
    bool apart = impl == HEMT_NVSHMEM;

    command->argc = 0;
    if (!find_runner(apart ? impls[impl].runner : gpu_runner, command))
        return apart ? impls[impl].not_built : gpu_not_built;
    if (apart && !command->processes)
        return "its ranks are processes: give --processes, under MPS where they share a GPU";
    snprintf(command->ranks, sizeof(command->ranks), "%d", ranks);
    write_sizes(sizes, command->sizes, sizeof(command->sizes));
    if (command->processes)
        add_launcher(HEMT_HEM, true, command);
    add(command, command->runner);
    add(command, hemt_kind(kind)->name);
    add(command, "--who");
    add(command, impls[impl].name);
    add(command, "-n");
    add(command, command->ranks);
    if (command->processes)
        add(command, "--processes");
    if (command->blocks[0] != '\0') {
        add(command, "--blocks");
        add(command, command->blocks);
    }
    add(command, "--sizes");
    add(command, command->sizes);
    command->argv[command->argc] = NULL;
    return NULL;
}

const char *hemt_impl_command(enum hemt_impl impl, enum bench_kind kind, int ranks,
                              const struct hemt_sizes *sizes, const struct hemt_shape *shape,
                              struct hemt_command *command_p) {
    const char *why = cannot_measure(impl, kind, ranks);

    if (hemt_kind(kind)->gpu)
        return gpu_command(impl, kind, ranks, sizes, command_p);
    if (why != NULL)
        return why;
    command_p->argc = 0;
    if (!find_runner(impls[impl].runner, command_p))
        return impls[impl].not_built;
    if (impls[impl].launcher != NULL && !in_path(impls[impl].launcher))
        return impls[impl].not_installed;
    snprintf(command_p->ranks, sizeof(command_p->ranks), "%d", ranks);
    command_p->shape[0] = '\0';
    if (shape != NULL)
        hemt_shape_write(shape, command_p->shape);
    write_sizes(sizes, command_p->sizes, sizeof(command_p->sizes));
    add_launcher(impl, ranks > hemt_impl_cpus(), command_p);
    add_benchmark(impl, kind, command_p);
    /* Without these mpirun refuses to start anything for root, as in a container. */
    if (impl == HEMT_OPENMPI && geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    return NULL;
}

void hemt_command_name(struct hemt_command *command, const char *name) {
    add(command, "--name");
    add(command, name);
    command->argv[command->argc] = NULL;
}
