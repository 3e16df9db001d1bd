/*
 * How this works. Library memory lies in the arena, which every rank of the machine has mapped: a
 * region of it is an address. Private memory of a thread of this process is an address too. Private
 * memory of another process is reached by process_vm_readv and process_vm_writev, which copy in one
 * step without the peer's help, if the system allows it.
 */
#include "transport/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define LIBRARY_ROUTE                                                                              \
    (HEM_ROUTE_MAPPED | HEM_ROUTE_ATOMIC | HEM_ROUTE_SIGNAL | HEM_ROUTE_WAKES | HEM_ROUTE_COPY)

static unsigned reach(const hemi_root *root, uint32_t root_rank) {
    if (root_rank >= root->arena.ranks)
        return 0;
    return LIBRARY_ROUTE | (root->threads ? HEM_ROUTE_SAME_PROCESS : 0u);
}

static hem_status attach(const hemi_root *root, const hemi_name *name, hemi_region *region_p) {
    unsigned process = root->threads ? HEM_ROUTE_SAME_PROCESS : 0u;
    if (name->kind == HEMI_NAME_LIBRARY) {
        region_p->mapped = hemi_arena_at(&root->arena, name->where);
        region_p->route = LIBRARY_ROUTE | process;
    } else if (root->threads) {
        region_p->mapped = (unsigned char *)(uintptr_t)name->where;
        region_p->route = HEM_ROUTE_MAPPED | HEM_ROUTE_COPY | process;
    } else {
        /* The arena's word for the process counts, not the handle's. */
        uint32_t pid = hemi_load32_relaxed(&hemi_arena_rank(&root->arena, name->root_rank)->pid);
        if (pid != name->pid)
            return hemi_fail(HEM_ERR_RANGE, "this handle is of process %u, but rank %u is %u",
                             name->pid, name->root_rank, pid);
        region_p->remote = name->where;
        region_p->route = HEM_ROUTE_COPY;
    }
    return HEM_OK;
}

static hem_status explain(int error, const hemi_region *region, const char *call) {
    if (error == ESRCH)
        return hemi_fail(HEM_ERR_PEER, "rank %u (process %u) is gone", region->root_rank,
                         region->pid);
    if (error == EPERM || error == ENOSYS || error == EACCES)
        return hemi_fail(
            HEM_ERR_SYSTEM,
            "the caller's own memory needs process_vm_readv and process_vm_writev, and "
            "%s to process %u is forbidden: %s; allow them (sysctl "
            "kernel.yama.ptrace_scope=0, a container with SYS_PTRACE, a seccomp "
            "profile that has them), or use library memory",
            call, region->pid, strerror(error));
    return hemi_fail_errno(error, "%s of rank %u's memory (process %u)", call, region->root_rank,
                           region->pid);
}

typedef ssize_t (*copy_fn)(pid_t pid, const struct iovec *local, unsigned long local_count,
                           const struct iovec *remote, unsigned long remote_count,
                           unsigned long flags);

/* The kernel may copy less than asked; go on where it stopped. */
static hem_status copy(const hemi_region *region, uint64_t offset, void *here, size_t n, copy_fn fn,
                       const char *call) {
    size_t done = 0;
    while (done < n) {
        struct iovec local = {(unsigned char *)here + done, n - done};
        struct iovec remote = {(unsigned char *)(uintptr_t)region->remote + offset + done,
                               n - done};
        ssize_t got = fn((pid_t)region->pid, &local, 1, &remote, 1, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return explain(got < 0 ? errno : EFAULT, region, call);
        done += (size_t)got;
    }
    return HEM_OK;
}

static hem_status put(const hemi_region *region, uint64_t offset, const void *src, size_t n) {
    /* The kernel only reads from it. */
    void *here = (void *)(uintptr_t)src;
    return copy(region, offset, here, n, process_vm_writev, "process_vm_writev");
}

static hem_status get(const hemi_region *region, uint64_t offset, void *dst, size_t n) {
    return copy(region, offset, dst, n, process_vm_readv, "process_vm_readv");
}

const hemi_transport hemi_transport_shm = {
    .name = "shm",
    .reach = reach,
    .attach = attach,
    .put = put,
    .get = get,
};
