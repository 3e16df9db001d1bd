#include "bench.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HEAD = 4096
};

static const double patience_ns = 10e9;

/* Stands before the memory that is shared: how many of the others have it. */
struct head {
    _Atomic uint64_t joined;
};

static struct head *map_shared(int fd, size_t bytes) {
    void *memory = mmap(NULL, HEAD + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* The others open the memory of rank 0 through /proc, which works between processes of one user. */
static struct head *map_from(uint64_t token, size_t bytes) {
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/fd/%u", (unsigned)(token >> 32),
             (unsigned)(token & UINT32_MAX));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct head *head = map_shared(fd, bytes);
    close(fd);
    return head;
}

static bool all_join(struct head *head, uint64_t others) {
    double end = bench_now_ns() + patience_ns;

    while (atomic_load_explicit(&head->joined, memory_order_acquire) < others) {
        if (bench_now_ns() > end)
            return false;
        sched_yield();
    }
    return true;
}

static struct head *make_shared(size_t bytes, int *fd_p) {
    int fd = memfd_create("hem-bench", MFD_CLOEXEC);

    *fd_p = fd;
    return fd >= 0 && ftruncate(fd, (off_t)(HEAD + bytes)) == 0 ? map_shared(fd, bytes) : NULL;
}

void *bench_share(const struct bench_world *world, size_t bytes) {
    struct head *head = NULL;
    int fd = -1;

    if (world->rank == 0)
        head = make_shared(bytes, &fd);
    uint64_t token = (uint64_t)getpid() << 32 | (uint32_t)fd;
    token = world->agree(world->ctx, head != NULL ? token : 0);
    if (world->rank != 0 && token != 0) {
        head = map_from(token, bytes);
        if (head != NULL)
            atomic_fetch_add_explicit(&head->joined, 1, memory_order_release);
    }
    bool works = world->rank == 0 && head != NULL && all_join(head, (uint64_t)world->ranks - 1);
    works = world->agree(world->ctx, works) != 0;
    if (fd >= 0)
        close(fd);
    if (works)
        return (char *)head + HEAD;
    if (head != NULL)
        munmap(head, HEAD + bytes);
    return NULL;
}

void bench_unshare(void *memory, size_t bytes) {
    munmap((char *)memory - HEAD, HEAD + bytes);
}
