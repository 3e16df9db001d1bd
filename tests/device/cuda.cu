/* The device of the tests where it is a GPU: CUDA's runtime. */
#include "device.h"

#include <cuda.h>
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

/* For what is done at once, and waits for nobody: one stream for all ranks that share a GPU, since there are
 * not more queues than needed. It gets its queue before there are others: docs/gpu.md says why. */
static cudaError_t make_own(cudaStream_t *stream_p) {
    cudaStream_t stream = NULL;
    void *word = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc(&word, 256);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(word, 0, 256, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess)
        *stream_p = stream;
    (void)cudaFree(word);
    return error;
}

static cudaStream_t own_stream(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cudaStream_t streams[64];
    int gpu = 0;
    CHECK_CUDA(cudaGetDevice(&gpu));
    CHECK(gpu < 64);
    pthread_mutex_lock(&lock);
    cudaError_t error = streams[gpu] == NULL ? make_own(&streams[gpu]) : cudaSuccess;
    pthread_mutex_unlock(&lock);
    CHECK_CUDA(error);
    return streams[gpu];
}

/* Ranks are dealt over the GPUs that there are. */
int rank_main(hem_world *world) {
    int count = 0;
    CHECK_CUDA(cudaGetDeviceCount(&count));
    CHECK_CUDA(cudaSetDevice(hem_world_rank(world) % count));
    (void)own_stream();
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

/* A stream gets its queue with its first kernel, and threads that launch such at the same time may get the same one:
 * one after the other, docs/gpu.md says why. */
static __global__ void take_queue() {
}

device_stream device_stream_create(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cudaStream_t stream;
    if (idle_count > 0)
        return idle_streams[--idle_count];
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    pthread_mutex_lock(&lock);
    take_queue<<<1, 32, 0, stream>>>();
    cudaError_t error = cudaGetLastError();
    pthread_mutex_unlock(&lock);
    CHECK_CUDA(error);
    return stream;
}

device_stream device_default_stream(device_default which) {
    if (which == DEVICE_NULL)
        return NULL;
    return which == DEVICE_LEGACY ? cudaStreamLegacy : cudaStreamPerThread;
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

/* Of the calling rank's own, and never destroyed: the process ends with it. */
static cudaMemPool_t own_pool(void) {
    static thread_local cudaMemPool_t pool;
    if (pool == NULL) {
        cudaMemPoolProps wanted = {};
        wanted.allocType = cudaMemAllocationTypePinned;
        wanted.handleTypes = cudaMemHandleTypePosixFileDescriptor;
        wanted.location.type = cudaMemLocationTypeDevice;
        CHECK_CUDA(cudaGetDevice(&wanted.location.id));
        CHECK_CUDA(cudaMemPoolCreate(&pool, &wanted));
    }
    return pool;
}

void *device_pool_alloc(size_t bytes) {
    void *address = NULL;
    CHECK_CUDA(cudaMallocFromPoolAsync(&address, bytes, own_pool(), own_stream()));
    CHECK_CUDA(cudaMemsetAsync(address, 0, bytes, own_stream()));
    CHECK_CUDA(cudaStreamSynchronize(own_stream()));
    return address;
}

void device_pool_free(void *address) {
    CHECK_CUDA(cudaFreeAsync(address, own_stream()));
}

void *device_hidden_alloc(size_t bytes) {
    void *address = NULL;
    CHECK_CUDA(cudaMallocAsync(&address, bytes, own_stream()));
    CHECK_CUDA(cudaMemsetAsync(address, 0, bytes, own_stream()));
    CHECK_CUDA(cudaStreamSynchronize(own_stream()));
    return address;
}

void device_hidden_free(void *address) {
    device_pool_free(address);
}

/* Calls of the driver, which the tests are not linked with. */
static void *driver_call(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *call = driver != NULL ? dlsym(driver, name) : NULL;
    if (call == NULL)
        harness_fail(__FILE__, __LINE__, "the driver has no %s", name);
    return call;
}

static void check_driver(int line, const char *what, CUresult result) {
    if (result != CUDA_SUCCESS)
        harness_fail(__FILE__, line, "%s: error %d of the driver", what, (int)result);
}

#define DRIVER(call, ...)                                                                          \
    check_driver(__LINE__, #call, ((decltype(&call))driver_call(#call))(__VA_ARGS__))

static CUmemAllocationProp vmm_properties(void) {
    CUmemAllocationProp wanted = {};
    int gpu = 0;
    CHECK_CUDA(cudaGetDevice(&gpu));
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = gpu;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return wanted;
}

/* Mappings of `each` bytes or more one behind the other; how long each is. */
static unsigned char *vmm_map(int count, size_t each, size_t *each_p) {
    CUmemAllocationProp wanted = vmm_properties();
    CUmemAccessDesc access = {wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr base = 0;
    size_t granule = 0;
    DRIVER(cuMemGetAllocationGranularity, &granule, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    each = (each + granule - 1) / granule * granule;
    DRIVER(cuMemAddressReserve, &base, (size_t)count * each, 0, 0, 0);
    for (int i = 0; i < count; i++) {
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr at = base + (size_t)i * each;
        DRIVER(cuMemCreate, &handle, each, &wanted, 0);
        DRIVER(cuMemMap, at, each, 0, handle, 0);
        DRIVER(cuMemSetAccess, at, each, &access, 1);
        DRIVER(cuMemRelease, handle); /* the mapping keeps it */
        CHECK_CUDA(cudaMemsetAsync((void *)(uintptr_t)at, 0, each, own_stream()));
    }
    CHECK_CUDA(cudaStreamSynchronize(own_stream()));
    *each_p = each;
    return (unsigned char *)(uintptr_t)base;
}

void *device_vmm_alloc(size_t bytes) {
    size_t each = 0;
    return vmm_map(1, bytes, &each);
}

void *device_vmm_seam(size_t each) {
    size_t whole = 0;
    unsigned char *first = vmm_map(2, each, &whole);
    return first + whole;
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

/* The runtime knows no type of batches of memory operations, and says "unknown error" of them. */
static size_t count_kernels(cudaGraph_t graph) {
    size_t count = 0, kernels = 0;
    CHECK_CUDA(cudaGraphGetNodes(graph, NULL, &count));
    if (count == 0) /* a place for none is refused */
        return 0;
    cudaGraphNode_t *nodes = (cudaGraphNode_t *)calloc(count + 1, sizeof *nodes);
    CHECK(nodes != NULL);
    CHECK_CUDA(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        cudaGraph_t inner;
        DRIVER(cuGraphNodeGetType, nodes[i], &type);
        kernels += type == CU_GRAPH_NODE_TYPE_KERNEL;
        if (type != CU_GRAPH_NODE_TYPE_GRAPH)
            continue;
        CHECK_CUDA(cudaGraphChildGraphNodeGetGraph(nodes[i], &inner));
        kernels += count_kernels(inner);
    }
    free(nodes);
    return kernels;
}

device_graph device_capture_end(device_stream stream) {
    size_t kernels = 0;
    return device_capture_end_counted(stream, &kernels);
}

device_graph device_capture_end_counted(device_stream stream, size_t *kernels_p) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_CUDA(cudaStreamEndCapture((cudaStream_t)stream, &graph));
    *kernels_p = count_kernels(graph);
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
