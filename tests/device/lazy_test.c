/*
 * Code that is loaded when it is first launched must not wait for a kernel that waits for it: the library's
 * kernels are all loaded when the device is opened. On a GPU the program is told to load late
 * (CUDA_MODULE_LOADING=LAZY), and each of the library's kernels is launched for the first time by one rank
 * while a kernel of another rank already waits for it. On the stand-in, where nothing is loaded, the
 * order of things is what is tested.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#include "all_kit.h"

#ifdef __CUDACC__
/* Before the harness chooses, which does so without a priority. */
__attribute__((constructor(101))) static void load_late(void) {
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
}
#endif

/* The k-th rank starts a part when all before it wait in theirs. No kernel of the test itself is launched
 * before the last has come: those would be loaded late. */
static void in_turn(all_kit *kit, int part, bool brief) {
    for (int turn = 0; turn < kit->size; turn++) {
        if (kit->rank == turn) {
            hem_status status = HEM_OK;
            if (part == ALL_PIPE)
                status = all_pipe_call(kit, all_count(brief));
            else if (part == ALL_HALO)
                status = all_halo_call(kit);
            else
                status = hem_op_start_on(kit->ops[brief], kit->stream[part]);
            CHECK_OK(status);
            harness_sleep_ms(5);
            if (turn == 0) /* it waits for the last one, of whatever kind it is */
                CHECK(!device_stream_done(kit->native[part]));
        }
        CHECK_OK(hem_barrier(kit->window, 0, LIMIT));
    }
    device_stream_sync(kit->native[part]);
    CHECK_EQ(all_status(kit, part), HEM_OK);
}

int rank_main(hem_world *world) {
    all_kit kit = all_open(world, true);
    for (int part = ALL_PIPE; part < ALL_PARTS; part++) {
        harness_step("part", (uint64_t)part);
        in_turn(&kit, part, true);
        in_turn(&kit, part, false);
    }
    CHECK_OK(hem_exchange_run(kit.exchange, NULL, LIMIT));
    /* Now those of the test, first by one rank after the other. */
    for (int turn = 0; turn < kit.size; turn++) {
        if (kit.rank == turn) {
            all_launch(&kit, ALL_PIPE, true, kit.out[ALL_PIPE], ALL_SHORT, 1);
            device_stream_sync(kit.native[ALL_PIPE]);
        }
        CHECK_OK(hem_barrier(kit.window, 0, LIMIT));
    }
    all_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
