/*
 * HEM_CHANNEL_COPY=single, staged and auto all work; where the system forbids process_vm_readv, to
 * one rank or to all, single falls back to staging, also in mid-job.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* From now on the two calls fail with `error` in this thread and its children. */
static bool forbid(uint32_t error) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void load(hem_world *world, int way) {
    hem_world *made = NULL;

    if (harness_threads()) {
        CHECK_OK(hem_world_split(world, 0, 0, &made));
    } else {
        static const char *const names[] = {"single", "staged", "auto"};

        CHECK_EQ(setenv("HEM_CHANNEL_COPY", names[way], 1), 0);
        CHECK_OK(hem_world_open(NULL, &made));
    }
    chan_sizes(made, harness_sanitized() ? 66000 : 1048577, true);
    chan_stream(made, harness_rounds(200), 2000000);
    chan_crossing(made, 2, harness_rounds(200), 800000);
    CHECK_OK(hem_world_close(made));
}

static int body(hem_world *world) {
    bool last = hem_world_rank(world) == hem_world_size(world) - 1;

    chan_works(world, chan_partner(world), 0, 0);
    load(world, 0);
    if (!harness_threads()) {
        load(world, 1);
        load(world, 2);
    }
    if (last && !forbid(EPERM)) {
        printf("skipped: this system does not let a process install a seccomp filter\n");
        fflush(stdout);
        exit(77);
    }
    chan_works(world, chan_partner(world), 0, 10);
    if (!harness_threads())
        load(world, 0);
    CHECK(last || forbid(ENOSYS));
    chan_works(world, chan_partner(world), 0, 20);
    chan_works(world, chan_partner(world), 1, 30);
    load(world, 0);
    harness_close(world, HEM_OK);
    return 0;
}

int main(int argc, char **argv) {
    CHECK_EQ(setenv("HEM_CHANNEL_COPY", "single", 1), 0);
    return chan_main(argc, argv, body);
}
