#include "base/platform.h"
#include "machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_BYTES ((off_t)1 << 16)

static void refuse(hemt_probe *probe, int error, const char *what) {
    snprintf(probe->why, sizeof probe->why, "%s: %s", what, strerror(error));
}

/* As core/arena.c makes it: sealed, mapped shared, memory reserved. */
static void probe_memfd(hemt_probe *probe) {
    int fd = memfd_create("hem-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        refuse(probe, errno, "memfd_create");
        return;
    }
    if (ftruncate(fd, PROBE_BYTES) != 0)
        refuse(probe, errno, "ftruncate");
    else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        refuse(probe, errno, "sealing");
    else if (fallocate(fd, 0, 0, PROBE_BYTES) != 0)
        refuse(probe, errno, "reserving memory");
    else
        probe->usable = true;
    close(fd);
}

static void probe_membarrier(hemt_probe *probe) {
    const hemi_platform *platform = hemi_platform_real();
    probe->usable =
        platform->membarrier_register(platform->ctx) && platform->membarrier(platform->ctx);
    if (!probe->usable)
        refuse(probe, errno, "membarrier; signals then cost a fence each");
}

static _Noreturn void be_sibling(int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* As the library does for registered memory; it fails where there is no such rule. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    close(ready);
    for (;;)
        pause();
}

/* A process that waits to be read. Ranks are siblings: neither is the other's parent. */
static pid_t fork_sibling(void) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        be_sibling(ready[1]);
    close(ready[1]);
    char nothing = 0;
    while (pid > 0 && read(ready[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    close(ready[0]);
    return pid;
}

/* Ends with 0 or an errno. */
static _Noreturn void read_sibling(pid_t sibling, const long *word) {
    long copy = 0;
    struct iovec here = {.iov_base = &copy, .iov_len = sizeof copy};
    struct iovec there = {.iov_base = (void *)(uintptr_t)word, .iov_len = sizeof copy};
    ssize_t got = process_vm_readv(sibling, &here, 1, &there, 1, 0);
    if (got == (ssize_t)sizeof copy && copy == *word)
        _exit(0);
    _exit(got < 0 && errno < 256 ? errno : EIO);
}

static void explain_copy(hemt_probe *probe, int error) {
    refuse(probe, error, "process_vm_readv");
    char scope[8] = "";
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file == NULL)
        return;
    if (fgets(scope, sizeof scope, file) != NULL && scope[0] > '1')
        snprintf(probe->why, sizeof probe->why,
                 "process_vm_readv: %s; kernel.yama.ptrace_scope is %c, 0 or 1 allow it",
                 strerror(error), scope[0]);
    fclose(file);
}

static void probe_copy(hemt_probe *probe) {
    const long word = 0x68656d;
    pid_t sibling = fork_sibling();
    pid_t reader = sibling > 0 ? fork() : -1;
    if (reader == 0)
        read_sibling(sibling, &word);
    int status = 0;
    int error = errno;
    if (reader > 0) {
        while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
            ;
        error = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    }
    if (sibling > 0) {
        kill(sibling, SIGKILL);
        while (waitpid(sibling, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    probe->usable = reader > 0 && error == 0;
    if (!probe->usable)
        explain_copy(probe, error);
}

void hemt_probe_all(hemt_probe probes_p[HEMT_PROBES]) {
    probes_p[HEMT_PROBE_MEMFD] =
        (hemt_probe){.name = "memfd", .purpose = "shared memory between processes"};
    probes_p[HEMT_PROBE_MEMBARRIER] =
        (hemt_probe){.name = "membarrier", .purpose = "signals without a fence"};
    probes_p[HEMT_PROBE_COPY] =
        (hemt_probe){.name = "process_vm_readv", .purpose = "windows over your own memory"};
    probe_memfd(&probes_p[HEMT_PROBE_MEMFD]);
    probe_membarrier(&probes_p[HEMT_PROBE_MEMBARRIER]);
    probe_copy(&probes_p[HEMT_PROBE_COPY]);
}

bool hemt_module_look(const char *name, char *where, size_t size) {
    char file[64];
    snprintf(file, sizeof file, "libhem_%s.so", name);
    void *module = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (module != NULL) {
        snprintf(where, size, "%s", file);
        dlclose(module);
        return true;
    }
    const char *why = dlerror();
    /* The loader says the same in many words when there just is no such file. */
    if (why == NULL || strstr(why, "No such file") != NULL)
        snprintf(where, size, "%s is not there", file);
    else
        snprintf(where, size, "%s", why);
    return false;
}
