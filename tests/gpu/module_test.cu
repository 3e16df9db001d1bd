/*
 * The CUDA module by itself, through its table: memory, names between processes, host memory, copies
 * that are not behind kernels, streams, captures, and a multicast object of one GPU where that can be.
 * Twice: with physical memory of its own, and with HEM_CUDA_VMM=0. It also prints, of calls that CUDA
 * may do so in, which wait for kernels that run.
 *
 * hem-test: timeout=180
 */
#define _Static_assert static_assert
#include "device/device.h"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <hem/device/word.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#define MIB                 (UINT64_C(1) << 20)
#define CHECK(cond)         ((cond) ? (void)0 : die(__LINE__, #cond))
#define CUDA(call)          check_cuda(__LINE__, #call, (call))
#define OK(call)            check_status(__LINE__, #call, (call), HEM_OK)
#define REFUSED(call, want) check_status(__LINE__, #call, (call), want)

static const char *mode;
static char sentence[512];

[[noreturn]] static void die(int line, const char *what) {
    fprintf(stderr, "module_test.cu:%d: HEM_CUDA_VMM=%s, process %d: %s (%s)\n", line, mode,
            (int)getpid(), what, sentence);
    _exit(1);
}

static void check_cuda(int line, const char *what, cudaError_t error) {
    if (error != cudaSuccess) {
        snprintf(sentence, sizeof sentence, "%s", cudaGetErrorString(error));
        die(line, what);
    }
}

static void check_status(int line, const char *what, hem_status status, hem_status want) {
    if (status != want) {
        fprintf(stderr, "status %d instead of %d\n", (int)status, (int)want);
        die(line, what);
    }
}

static hem_status host_fail(hem_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    return status;
}

static const char *host_env(const char *name) {
    if (strcmp(name, "HEM_CUDA_MULTICAST") == 0)
        return "1";
    return strcmp(name, "HEM_CUDA_VMM") == 0 ? mode : getenv(name);
}

static const hemi_device_host host = {HEMI_DEVICE_VERSION, host_fail, host_env};
static const hemi_device_module *module;
static const hemi_device_memory_ops *memory;
static const hemi_device_stream_ops *streams;
static void *context;
static hemi_device_facts facts;

static void open_module(void) {
    char beside[4096] = {0};
    const char *path = getenv("HEM_DEVICE_MODULE");
    if (path == NULL) {
        ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - 32);
        CHECK(n > 0);
        strcpy(strrchr(beside, '/'), "/../libhem_cuda.so");
        path = beside;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    module = ((hemi_device_module_fn)dlsym(library, "hemi_device_module_get"))();
    memory = module->memory;
    streams = module->stream;
    OK(module->open(&host, &context, &facts));
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Kernels. */

__global__ void fill(uint64_t *words, uint64_t count, uint64_t first) {
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] = first + i;
}

/* Wait until *word is `value`; *seen says whether it was within the limit. */
__global__ void spin(const uint64_t *word, uint64_t value, uint64_t limit_ns, uint64_t *seen) {
    uint64_t begin = hemd_now_ns();
    *seen = 0;
    while (hemd_now_ns() - begin < limit_ns)
        if (hemd_load64_relaxed(word) == value) {
            *seen = 1;
            return;
        }
}

static void sync(void *stream) {
    double until = now() + 30;
    hem_status status;
    while ((status = streams->query(context, stream)) == HEM_ERR_TIMEOUT) {
        CHECK(now() < until);
        usleep(50);
    }
    OK(status);
}

static uint64_t word_at(const void *address) {
    uint64_t value = 0;
    OK(memory->copy(context, &value, address, sizeof value));
    return value;
}

static void set_word(void *address, uint64_t value) {
    OK(memory->copy(context, address, &value, sizeof value));
}

/* What is in it is what fill wrote. */
static void check_filled(const void *device, uint64_t count, uint64_t first) {
    uint64_t *words = (uint64_t *)malloc(count * 8);
    OK(memory->copy(context, words, device, count * 8));
    for (uint64_t i = 0; i < count; i++)
        CHECK(words[i] == first + i);
    free(words);
}

/* Tests. */

static void test_memory(void) {
    hemi_device_memory m, a;
    OK(memory->alloc(context, 3 * MIB, &m));
    CHECK((uintptr_t)m.address % (2 * MIB) == 0 && m.bytes == 3 * MIB);
    uint64_t *words = (uint64_t *)malloc(3 * MIB);
    memset(words, 1, 3 * MIB);
    OK(memory->copy(context, words, m.address, 3 * MIB));
    for (uint64_t i = 0; i < 3 * MIB / 8; i++)
        CHECK(words[i] == 0);
    fill<<<4, 128>>>((uint64_t *)m.address, 3 * MIB / 8, 7);
    CUDA(cudaStreamSynchronize(0));
    check_filled(m.address, 3 * MIB / 8, 7);
    set_word(m.address, 99);
    CHECK(word_at(m.address) == 99);

    void *managed, *pinned, *pool;
    CUDA(cudaMallocManaged(&managed, 4096));
    CUDA(cudaMallocHost(&pinned, 4096));
    CUDA(cudaMallocAsync(&pool, 4096, 0));
    CHECK(memory->kind(context, m.address) == HEM_MEMORY_DEVICE);
    CHECK(memory->kind(context, pool) == HEM_MEMORY_DEVICE);
    CHECK(memory->kind(context, managed) == HEM_MEMORY_DEVICE);
    CHECK(memory->kind(context, pinned) == HEM_MEMORY_HOST);
    CHECK(memory->kind(context, words) == HEM_MEMORY_HOST);
    CHECK(memory->kind(context, NULL) == HEM_MEMORY_HOST);

    hemi_device_name name;
    int fd = -2;
    REFUSED(memory->adopt(context, words, 8, &a), HEM_ERR_ARG);
    REFUSED(memory->adopt(context, pinned, 8, &a), HEM_ERR_ARG);
    OK(memory->adopt(context, pool, 4096, &a));
    OK(memory->name(context, &a, &name, &fd));
    CHECK(name.kind == HEMI_DEVICE_NAME_POINTER && fd == -1);
    memory->release(context, &a);
    OK(memory->adopt(context, managed, 4096, &a));
    memory->release(context, &a);
    OK(memory->adopt(context, (char *)m.address + 256, MIB, &a));
    OK(memory->name(context, &a, &name, &fd));
    CHECK(name.kind == (mode[0] == '1' ? HEMI_DEVICE_NAME_FD : HEMI_DEVICE_NAME_HANDLE));
    CHECK(name.offset + name.bytes <= name.whole);
    if (fd >= 0)
        close(fd);
    memory->release(context, &a);
    check_filled((uint64_t *)m.address + 1, 100, 8);
    CUDA(cudaFree(managed));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaFreeAsync(pool, 0));
    memory->release(context, &m);
    CHECK(m.address == NULL);
    REFUSED(memory->alloc(context, UINT64_C(1) << 45, &m), HEM_ERR_MEMORY);
    free(words);
}

/* What is sent comes in its order, and is there with the next copy. */
static void test_send(void) {
    hemi_device_memory m = {};
    void *pages = aligned_alloc(4096, MIB), *seen;
    OK(memory->alloc(context, 2 * MIB, &m));
    OK(memory->map_host(context, pages, MIB, true, &seen));
    for (uint64_t i = 0; i < MIB / 8; i++)
        ((uint64_t *)pages)[i] = i;
    OK(memory->send(context, m.address, pages, MIB));
    for (uint64_t i = 0; i < 100; i++)
        OK(memory->send(context, (char *)m.address + 64, &i, sizeof i));
    OK(memory->send(context, (char *)m.address + MIB + 4, (char *)pages + 4, MIB - 4));
    OK(memory->copy(context, NULL, NULL, 0));
    CHECK(word_at((char *)m.address + 64) == 99 && word_at((char *)m.address + 72) == 9);
    CHECK(word_at((char *)m.address + MIB - 8) == MIB / 8 - 1);
    CHECK(word_at((char *)m.address + 2 * MIB - 8) == MIB / 8 - 1);
    memory->unmap_host(context, pages, MIB);
    memory->release(context, &m);
    free(pages);
}

static void test_host_memory(void) {
    char *pages = (char *)aligned_alloc(4096, 16 * 4096);
    void *first, *second, *third, *stream;
    memset(pages, 0, 16 * 4096);
    OK(streams->make(context, &stream));
    OK(memory->map_host(context, pages + 4096 + 64, 5000, false, &first));
    OK(memory->map_host(context, pages + 2 * 4096, 9000, false, &second));
    OK(memory->map_host(context, pages, 16 * 4096, false, &third));
    CHECK((char *)second - (char *)third == 2 * 4096 && (char *)first - (char *)third == 4096 + 64);
    fill<<<1, 128, 0, (cudaStream_t)stream>>>((uint64_t *)third, 16 * 512, 5);
    sync(stream);
    for (uint64_t i = 0; i < 16 * 512; i++)
        CHECK(((uint64_t *)pages)[i] == 5 + i);
    memory->unmap_host(context, pages, 16 * 4096);
    memory->unmap_host(context, pages + 2 * 4096, 9000);
    fill<<<1, 128, 0, (cudaStream_t)stream>>>((uint64_t *)first, 600, 9);
    sync(stream);
    CHECK(((uint64_t *)(pages + 4096 + 64))[599] == 9 + 599);
    memory->unmap_host(context, pages + 4096 + 64, 5000);
    /* Pinned by somebody else. */
    CUDA(cudaHostRegister(pages, 16 * 4096, cudaHostRegisterDefault));
    OK(memory->map_host(context, pages, 16 * 4096, false, &first));
    memory->unmap_host(context, pages, 16 * 4096);
    CUDA(cudaHostUnregister(pages));
    streams->destroy(context, stream);
    free(pages);
}

static __global__ void take(uint64_t *to, const uint64_t *from, uint64_t n) {
    for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
        to[i] = from[i];
}

/* Pages that cannot be written, part of which others read as well. */
static void test_frozen_memory(void) {
    const size_t bytes = 16384;
    char *pages =
        (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *first, *second, *stream;
    uint64_t *there;
    CHECK(pages != MAP_FAILED);
    for (size_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)pages)[i] = i;
    CHECK(mprotect(pages, bytes, PROT_READ) == 0);
    OK(streams->make(context, &stream));
    CUDA(cudaMalloc(&there, bytes));
    REFUSED(memory->map_host(context, pages, bytes, false, &first), HEM_ERR_SYSTEM);
    OK(memory->map_host(context, pages + 4096, 4096, true, &second));
    OK(memory->map_host(context, pages, bytes, true, &first));
    CHECK((char *)second - (char *)first == 4096);
    REFUSED(memory->map_host(context, pages + 5000, 100, false, &second), HEM_ERR_UNSUPPORTED);
    take<<<1, 128, 0, (cudaStream_t)stream>>>(there, (const uint64_t *)first, bytes / 8);
    sync(stream);
    for (size_t i = 0; i < bytes / 8; i += 100)
        CHECK(word_at(there + i) == i);
    memory->unmap_host(context, pages, bytes);
    memory->unmap_host(context, pages + 4096, 4096);
    REFUSED(memory->map_host(context, pages, bytes, false, &first), HEM_ERR_SYSTEM);
    CHECK(mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0);
    OK(memory->map_host(context, pages, bytes, true, &first));
    OK(memory->map_host(context, pages, bytes, false, &second));
    CHECK(first == second);
    memory->unmap_host(context, pages, bytes);
    memory->unmap_host(context, pages, bytes);
    CUDA(cudaFree(there));
    streams->destroy(context, stream);
    munmap(pages, bytes);
}

/* How long `call` takes while a kernel spins that ends after a second, or when it is told to. */
template <class Call> static void beside_kernel(const char *what, bool must, Call call) {
    uint64_t *words;
    void *stream;
    CUDA(cudaMalloc(&words, 16));
    CUDA(cudaMemset(words, 0, 16));
    CUDA(cudaDeviceSynchronize());
    OK(streams->make(context, &stream));
    spin<<<1, 1, 0, (cudaStream_t)stream>>>(words, 1, 1000000000, words + 1);
    double begin = now();
    call();
    double took = now() - begin;
    set_word(words, 1);
    sync(stream);
    bool waited = word_at(words + 1) == 0;
    printf("  %-28s %9.0f us%s\n", what, 1e6 * took, waited ? "   waits for kernels" : "");
    CHECK(!must || !waited);
    streams->destroy(context, stream);
    CUDA(cudaFree(words));
}

static void test_beside_kernels(void) {
    hemi_device_memory m = {}, n;
    hemi_device_name name;
    int fd = -1;
    void *seen, *stream;
    char *pages = (char *)aligned_alloc(4096, 65536);
    memset(pages, 0, 65536);
    printf("HEM_CUDA_VMM=%s, while a kernel runs:\n", mode);
    beside_kernel("nothing", true, [&] {});
    OK(memory->alloc(context, 64 * MIB, &n));
    beside_kernel("copy of 8 bytes", true, [&] { set_word(n.address, 3); });
    beside_kernel("copy of 64 KiB", true,
                  [&] { OK(memory->copy(context, n.address, pages, 65536)); });
    beside_kernel("copy on the device", true,
                  [&] { OK(memory->copy(context, n.address, (char *)n.address + MIB, MIB)); });
    beside_kernel("alloc of 64 MiB", false, [&] { OK(memory->alloc(context, 64 * MIB, &m)); });
    beside_kernel("name", false, [&] { OK(memory->name(context, &m, &name, &fd)); });
    set_word(m.address, 5);
    beside_kernel("release", true, [&] { memory->release(context, &m); });
    beside_kernel("alloc of the same again", true,
                  [&] { OK(memory->alloc(context, 64 * MIB, &m)); });
    CHECK(word_at(m.address) == 0);
    memory->release(context, &m);
    beside_kernel("map_host", false,
                  [&] { OK(memory->map_host(context, pages, 65536, false, &seen)); });
    beside_kernel("unmap_host", false, [&] { memory->unmap_host(context, pages, 65536); });
    beside_kernel("make and destroy a stream", false, [&] {
        OK(streams->make(context, &stream));
        streams->destroy(context, stream);
    });
    if (fd >= 0)
        close(fd);
    memory->release(context, &n);
    free(pages);
}

static void test_all(int socket, pid_t child);

#include "module_peer.h"
#include "module_streams.h"
#include "module_team.h"

static void test_all(int socket, pid_t child) {
    open_module();
    printf("HEM_CUDA_VMM=%s: %s, GPU %d, sm_%u, %u SMs, %llu KiB of L2\n", mode, facts.name,
           facts.ordinal, facts.capability, facts.processors,
           (unsigned long long)facts.l2_bytes / 1024);
    test_memory();
    test_send();
    test_host_memory();
    test_frozen_memory();
    test_streams();
    test_marks();
    test_capture();
    test_beside_kernels();
    test_team();
    test_access();
    test_peer(socket, child);
    module->close(context);
    printf("HEM_CUDA_VMM=%s: good\n", mode);
    fflush(stdout);
}

int main(void) {
    static const char *const modes[] = {"1", "0"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 2; i++) {
        /* A process of its own for each: nobody forks once CUDA has begun. */
        mode = modes[i];
        pid_t pid = fork();
        if (pid == 0)
            run_pair();
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    return 0;
}
