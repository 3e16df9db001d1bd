/*
 * Where the system forbids process_vm_readv and process_vm_writev, a window over the callers' own
 * memory is refused on all ranks, also if only one rank is forbidden, and the sentence says which
 * call it was and what to change. Everything else works, and so do threads, which need no such
 * call.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* From now on the two calls fail with EPERM in this thread and its children. */
static bool forbid(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static hem_status create(hem_world *world, uint64_t *memory, hem_window **window_p) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 64, .memory = memory};

    return hem_window_create(world, &options, window_p);
}

static void works(hem_world *world) {
    uint64_t memory[8] = {0};
    uint64_t word = 1234;
    hem_window *window = NULL;

    CHECK_OK(create(world, memory, &window));
    CHECK_OK(hem_put(window, harness_right(world), 16, &word, 8));
    harness_barrier(window);
    CHECK_EQ(memory[2], 1234);
    harness_barrier(window);
    harness_destroy(window);
}

static void refused(hem_world *world) {
    uint64_t memory[8] = {0};
    hem_window *window = NULL;

    CHECK_STATUS(create(world, memory, &window), HEM_ERR_SYSTEM);
    CHECK(window == NULL);
    CHECK_SENTENCE("process_vm_writev");
    CHECK_SENTENCE("seccomp");
    window = harness_window(world, 64);
    CHECK_OK(hem_put_signal(window, harness_right(world), 0, "fine", 4, 0, 1));
    CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 1, LIMIT));
    harness_destroy(window);
}

static void check(hem_world *world) {
    hem_world *made = NULL;

    if (harness_threads()) {
        works(world);
        return;
    }
    refused(world);
    CHECK_OK(hem_world_open(NULL, &made));
    refused(made);
    CHECK_OK(hem_world_close(made));
}

int rank_main(hem_world *world) {
    bool last = hem_world_rank(world) == hem_world_size(world) - 1;

    works(world);
    if (last && !forbid()) {
        printf("skipped: this system does not let a process install a seccomp filter\n");
        fflush(stdout);
        exit(77);
    }
    check(world);
    CHECK(last || forbid());
    check(world);
    harness_close(world, HEM_OK);
    return 0;
}
