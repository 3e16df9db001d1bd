/*
 * hem-bench-gpu: Hem, NCCL and plain copies on GPUs. See gpu.h.
 *
 *   hem-bench-gpu BENCHMARK --who hem|raw|nccl [-n RANKS] [--processes] [--blocks LIST]
 *                 [--sizes LIST]
 */
#include "gpu.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const who_names[] = {"hem", "raw", "nccl", "nvshmem"};

/* One write, and a beginning by which the driver tells it from what libraries say. */
[[noreturn]] static void end_with(int code, const char *format, va_list list) {
    char text[1024];

    vsnprintf(text, sizeof(text), format, list);
    fflush(stdout);
    fprintf(stderr, "hem-bench: %s\n", text);
    fflush(stderr);
    _exit(code);
}

[[noreturn]] void gpu_die(const char *format, ...) {
    va_list list;

    va_start(list, format);
    end_with(3, format, list);
}

[[noreturn]] void gpu_skip(const char *format, ...) {
    va_list list;

    va_start(list, format);
    end_with(77, format, list);
}

void gpu_need_hem(hem_status status, const char *what, int line) {
    if (status == HEM_ERR_UNSUPPORTED)
        gpu_skip("%.60s: %s", what, hem_last_error());
    if (status != HEM_OK)
        gpu_die("%.60s in line %d: %s: %s", what, line, hem_status_name(status), hem_last_error());
}

void gpu_need_cuda(cudaError_t error, const char *what, int line) {
    if (error != cudaSuccess)
        gpu_die("%.60s in line %d: %s", what, line, cudaGetErrorString(error));
}

/* The watchdog: rank 0 says what goes on, and the alarm ends the whole process. */

static char watched[256];

static void on_alarm(int number) {
    static const char before[] = "hem-bench: did not end within 20 s: ";
    ssize_t n = write(STDERR_FILENO, before, sizeof(before) - 1);

    (void)number;
    n = write(STDERR_FILENO, watched, strlen(watched));
    n = write(STDERR_FILENO, "\n", 1);
    (void)n;
    _exit(4);
}

void gpu_watch(const struct gpu_rank *rank, const char *format, ...) {
    va_list list;

    if (rank->rank != 0)
        return;
    va_start(list, format);
    vsnprintf(watched, sizeof(watched), format, list);
    va_end(list);
    alarm(GPU_LIMIT_S);
}

void gpu_meet(const struct gpu_rank *rank) {
    NEED_HEM(hem_sync(rank->world, GPU_LIMIT_NS));
}

void gpu_max(const struct gpu_rank *rank, double *values, size_t count) {
    NEED_HEM(hem_allreduce(rank->world, values, values, count, HEM_F64, HEM_MAX, GPU_LIMIT_NS));
}

void gpu_print(const struct gpu_rank *rank, const struct gpu_line *line, struct gpu_result result) {
    size_t moved = line->moved > 0 ? line->moved : line->bytes;
    char impl[64];
    int used = snprintf(impl, sizeof(impl), "%s", who_names[rank->args->who]);

    if (rank->rank != 0)
        return;
    if (line->way != NULL)
        used += snprintf(impl + used, sizeof(impl) - (size_t)used, "-%s", line->way);
    if (line->cap > 0)
        snprintf(impl + used, sizeof(impl) - (size_t)used, "-%u", line->cap);
    printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,"
           "\"gbps\":%.4f,\"line_ns\":0",
           hemt_kind(rank->args->kind)->name, impl, rank->ranks, line->bytes, result.us,
           result.us > 0 ? (double)moved / result.us / 1000 : 0);
    if (line->moved > 0)
        printf(",\"moved\":%zu", line->moved);
    if (result.blocks > 0)
        printf(",\"blocks\":%u", result.blocks);
    printf(",\"l2\":%d}\n", line->touched <= rank->l2_bytes ? 1 : 2);
    fflush(stdout);
}

void gpu_note(const struct gpu_rank *rank, const char *format, ...) {
    char text[384];
    va_list list;

    if (rank->rank != 0)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    printf("{\"note\":\"%s\"}\n", text);
    fflush(stdout);
}

/* Ranks. */

static void open_rank(struct gpu_rank *rank, const struct gpu_args *args, hem_world *world) {
    cudaDeviceProp facts;
    int devices;

    *rank = gpu_rank();
    rank->args = args;
    rank->world = world;
    rank->rank = hem_world_rank(world);
    rank->ranks = hem_world_size(world);
    NEED_CUDA(cudaGetDeviceCount(&devices));
    NEED_CUDA(cudaSetDevice(rank->rank % devices));
    NEED_CUDA(cudaGetDeviceProperties(&facts, rank->rank % devices));
    rank->l2_bytes = (size_t)facts.l2CacheSize * (size_t)min(devices, rank->ranks);
    rank->processors = facts.multiProcessorCount;
    NEED_CUDA(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
    NEED_CUDA(cudaMalloc((void **)&rank->wrong, sizeof(*rank->wrong)));
    if (args->who == GPU_HEM) {
        NEED_HEM(hem_device_open(world, NULL));
        NEED_HEM(hem_stream_cuda(world, rank->stream, &rank->hem));
    }
    if (rank->rank == 0)
        gpu_note(rank, "%s, %d SMs, L2 %zu MiB, %d GPU%s, ranks as %s", facts.name,
                 rank->processors, (size_t)facts.l2CacheSize >> 20, devices,
                 devices == 1 ? "" : "s", args->processes ? "processes" : "threads");
}

static void close_rank(struct gpu_rank *rank) {
    gpu_finish(rank);
    gpu_meet(rank);
    if (rank->hem != NULL)
        NEED_HEM(hem_stream_destroy(rank->hem));
    NEED_CUDA(cudaStreamDestroy(rank->stream));
    NEED_HEM(hem_world_close(rank->world));
}

static void run(struct gpu_rank *rank) {
    switch (rank->args->kind) {
    case BENCH_GPU_SIGNAL:
        gpu_signal(rank);
        return;
    case BENCH_GPU_PUT:
        gpu_put(rank);
        return;
    case BENCH_GPU_SENDRECV:
        gpu_sendrecv(rank);
        return;
    case BENCH_GPU_EXCHANGE:
        gpu_exchange(rank);
        return;
    case BENCH_GPU_ALLREDUCE:
    case BENCH_GPU_ALLGATHER:
        gpu_coll(rank);
        return;
    default:
        gpu_die("this benchmark does not run on GPUs");
    }
}

static int be_rank(hem_world *world, void *arg) {
    struct gpu_rank rank;

    open_rank(&rank, (const struct gpu_args *)arg, world);
    gpu_watch(&rank, "set-up");
    gpu_warm(&rank);
    run(&rank);
    close_rank(&rank);
    return 0;
}

/* The command line. */

static const char *take_who(const char *value, struct gpu_args *args) {
    for (int who = GPU_HEM; who <= GPU_NVSHMEM; who++) {
        if (strcmp(value, who_names[who]) == 0) {
            args->who = (enum gpu_who)who;
            return NULL;
        }
    }
    return "--who takes hem, raw, nccl or nvshmem";
}

static const char *take_option(const char *option, const char *value, struct gpu_args *args) {
    if (strcmp(option, "--sizes") == 0)
        return hemt_sizes_parse(value, &args->sizes);
    if (strcmp(option, "--blocks") == 0)
        return hemt_sizes_parse(value, &args->blocks);
    if (strcmp(option, "--who") == 0)
        return take_who(value, args);
    if (strcmp(option, "-n") == 0) {
        args->ranks = atoi(value);
        return args->ranks < 2 || args->ranks > 32 ? "ranks are 2 to 32" : NULL;
    }
    return "unknown option";
}

static void parse(int argc, char **argv, struct gpu_args *args) {
    const char *why = NULL;

    memset(args, 0, sizeof(*args));
    args->ranks = 2;
    if (argc < 2 || !hemt_kind_find(argv[1], &args->kind) || !hemt_kind(args->kind)->gpu)
        gpu_die("which benchmark?");
    for (int i = 2; i < argc && why == NULL; i++) {
        if (strcmp(argv[i], "--processes") == 0)
            args->processes = true;
        else {
            why = take_option(argv[i], i + 1 < argc ? argv[i + 1] : "", args);
            i++;
        }
    }
    if (why != NULL)
        gpu_die("%s", why);
    if (args->sizes.count == 0)
        hemt_kind_sizes(args->kind, args->ranks, &args->sizes);
    if (args->blocks.count == 0)
        (void)hemt_sizes_parse("2,4,8,16,32", &args->blocks);
    for (size_t i = 0; i < args->blocks.count; i++) {
        if (args->blocks.bytes[i] > 64)
            gpu_die("blocks are 1 to 64");
    }
}

/* A kernel that is loaded while others wait for it would wait for them; so would a ninth stream. */
static void prepare(void) {
    int devices = 0;

    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (getenv("HEM_RANK") == NULL)
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    signal(SIGALRM, on_alarm);
    snprintf(watched, sizeof(watched), "set-up");
    alarm(GPU_LIMIT_S);
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0)
        gpu_skip("there is no GPU: %s", cudaGetErrorString(error));
}

int main(int argc, char **argv) {
    struct gpu_args args;
    hem_world *world;

    parse(argc, argv, &args);
    prepare();
    if (args.processes) {
        NEED_HEM(hem_world_open(NULL, &world));
        return be_rank(world, &args);
    }
    NEED_HEM(hem_world_threads(args.ranks, be_rank, &args, NULL));
    return 0;
}
