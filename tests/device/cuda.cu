/* The device of the tests where it is a GPU: CUDA's runtime. */
#include "device.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#undef rank_main

#define CHECK_CUDA(call) check_cuda(__LINE__, #call, (call))

static void check_cuda(int line, const char *what, cudaError_t error) {
    if (error != cudaSuccess)
        harness_fail(__FILE__, line, "%s: %s", what, cudaGetErrorString(error));
}

/* Loading code waits for the kernels that run. A test's kernel may be launched for the first time while
 * another one waits for it, so that all are loaded before any runs. And streams that share one of the
 * queues of the GPU wait for each other: with ranks as threads there must be a queue for each. Processes
 * have queues of their own, but under MPS too few unless they ask for more: two that ask for 16 or 32
 * have enough, four that ask for 32 do not start. */
__attribute__((constructor(101))) static void keep_apart(void) {
    const char *size = getenv("HEM_SIZE");
    const char *queues = "32";
    if (getenv("HEM_RANK") != NULL)
        queues = size != NULL && strtol(size, NULL, 10) > 4 ? "8" : "16";
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", queues, 0);
}

/* Without a GPU the test is skipped before there is a world: a rank that leaves one is a death to the
 * others, and threads must not end the process all at once. The driver is asked, since code that is
 * registered with a runtime that is already in use is loaded late, whatever was said above. */
__attribute__((constructor)) static void want_gpu(void) {
    int count = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver != NULL) {
        int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
        int (*get_count)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
        if (init != NULL && get_count != NULL && init(0) == 0 && get_count(&count) == 0 &&
            count > 0)
            return;
    }
    fprintf(stderr, "skipped: no GPU here (%s)\n",
            driver == NULL ? "there is no CUDA driver" : "its driver shows none");
    _exit(77);
}

/* Ranks are dealt over the GPUs that there are. */
int rank_main(hem_world *world) {
    int count = 0;
    CHECK_CUDA(cudaGetDeviceCount(&count));
    CHECK_CUDA(cudaSetDevice(hem_world_rank(world) % count));
    CHECK_CUDA(cudaFree(NULL));
    return device_rank_main(world);
}

bool device_stands_in(void) {
    return false;
}

void device_unpin_waits(void) {
}

/* Streams are kept for the next that wants one: a GPU has few queues, which new streams take by turns,
 * and one that shares a queue with another rank's waits for it. */
static thread_local cudaStream_t idle_streams[8];
static thread_local int idle_count;

device_stream device_stream_create(void) {
    cudaStream_t stream;
    if (idle_count > 0)
        return idle_streams[--idle_count];
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

bool device_stream_done(device_stream stream) {
    cudaError_t error = cudaStreamQuery((cudaStream_t)stream);
    if (error == cudaErrorNotReady)
        return false;
    CHECK_CUDA(error);
    return true;
}

void device_stream_sync(device_stream stream) {
    struct timespec nap = {0, 20000};
    int64_t until = harness_now() + LIMIT;
    while (!device_stream_done(stream)) {
        CHECK(harness_now() < until && "the stream comes to its end");
        nanosleep(&nap, NULL);
    }
}

void device_stream_destroy(device_stream stream) {
    if (idle_count < 8 && cudaStreamQuery((cudaStream_t)stream) == cudaSuccess)
        idle_streams[idle_count++] = (cudaStream_t)stream;
    else
        CHECK_CUDA(cudaStreamDestroy((cudaStream_t)stream));
}

size_t device_streams(void) {
    return 0;
}

void device_stream_order(device_stream before, device_stream after) {
    cudaEvent_t event;
    CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(event, (cudaStream_t)before));
    CHECK_CUDA(cudaStreamWaitEvent((cudaStream_t)after, event, 0));
    CHECK_CUDA(cudaEventDestroy(event));
}

void device_stream_copy(device_stream stream, void *to, const void *from, size_t bytes) {
    CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}

/* Freed memory is kept for the next that wants as much on the same GPU: cudaFree would wait for the
 * kernels of the other ranks of the process, which may wait for this one. */
typedef struct piece {
    struct piece *next;
    void *address;
    size_t bytes;
    int gpu;
    bool used;
} piece;

static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;
static piece *pieces;

static void *reuse(size_t bytes, int gpu) {
    void *found = NULL;
    pthread_mutex_lock(&pieces_lock);
    for (piece *at = pieces; at != NULL && found == NULL; at = at->next)
        if (!at->used && at->bytes == bytes && at->gpu == gpu) {
            at->used = true;
            found = at->address;
        }
    pthread_mutex_unlock(&pieces_lock);
    return found;
}

static void keep(void *address, size_t bytes, int gpu) {
    piece *made = (piece *)malloc(sizeof *made);
    CHECK(made != NULL);
    made->address = address;
    made->bytes = bytes;
    made->gpu = gpu;
    made->used = true;
    pthread_mutex_lock(&pieces_lock);
    made->next = pieces;
    pieces = made;
    pthread_mutex_unlock(&pieces_lock);
}

/* For what is done at once: a stream of the calling rank's own. */
static cudaStream_t own_stream(void) {
    static thread_local cudaStream_t stream;
    if (stream == NULL)
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

void *device_alloc(size_t bytes) {
    size_t rounded = bytes == 0 ? 256 : (bytes + 255) / 256 * 256;
    int gpu = 0;
    CHECK_CUDA(cudaGetDevice(&gpu));
    void *address = reuse(rounded, gpu);
    if (address == NULL) {
        CHECK_CUDA(cudaMalloc(&address, rounded));
        keep(address, rounded, gpu);
    }
    CHECK_CUDA(cudaMemsetAsync(address, 0, rounded, own_stream()));
    CHECK_CUDA(cudaStreamSynchronize(own_stream()));
    return address;
}

void device_free(void *address) {
    bool found = address == NULL;
    pthread_mutex_lock(&pieces_lock);
    for (piece *at = pieces; at != NULL && !found; at = at->next)
        if (at->address == address) {
            found = at->used;
            at->used = false;
        }
    pthread_mutex_unlock(&pieces_lock);
    CHECK(found);
}

void *device_host_alloc(size_t bytes) {
    void *address = NULL;
    CHECK_CUDA(cudaHostAlloc(&address, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    memset(address, 0, bytes);
    return address;
}

/* Kept until the process ends: unpinning would wait for kernels. */
void device_host_free(void *address) {
    (void)address;
}

void device_copy(void *to, const void *from, size_t bytes) {
    CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, own_stream()));
    CHECK_CUDA(cudaStreamSynchronize(own_stream()));
}

void device_launch_kernel(device_kernel kernel, device_stream stream, uint32_t blocks,
                          uint32_t warps, const void *args, size_t bytes) {
    void *list[1] = {(void *)args};
    (void)bytes;
    CHECK_CUDA(
        cudaLaunchKernel(kernel, dim3(blocks), dim3(32 * warps), list, 0, (cudaStream_t)stream));
}

void device_capture_begin(device_stream stream) {
    CHECK_CUDA(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeThreadLocal));
}

device_graph device_capture_end(device_stream stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamEndCapture((cudaStream_t)stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return exec;
}

void device_graph_launch(device_graph graph, device_stream stream) {
    CHECK_CUDA(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream));
}

void device_graph_destroy(device_graph graph) {
    if (graph != NULL)
        CHECK_CUDA(cudaGraphExecDestroy((cudaGraphExec_t)graph));
}
