/*
 * Messages of every length around the borders of both forms, at every alignment of either buffer, one
 * way and both ways, with sides that differ in blocks, warps, teams and chunks.
 *
 * hem-test: ranks=2 timeout=120 delayed=2
 */
#include "pipe_kit.h"

#define SLOT  1024
#define SHORT 4096

static const size_t sizes[] = {0,    1,    2,    7,     8,     9,     15,    16,     17,    255,
                               256,  257,  1000, 2048,  4095,  4096,  4097,  4112,   5000,  8191,
                               8192, 8193, 9999, 32768, 32769, 65536, 65537, 100003, 262144};

/* Where data begins: 16 bytes behind an aligned place, for what must stay zero, and a few more. */
static unsigned char *place(unsigned char *base, size_t skew) {
    return base + 16 + skew;
}

static void one_size(pipe_kit *kit, unsigned char *send, unsigned char *recv, size_t n, size_t skew,
                     uint64_t number, const hem_pipe_how *how) {
    int other = 1 - kit->rank;
    bool both = number % 3 == 0;
    bool sends = both || (number % 3 == 1) == (kit->rank == 0);
    bool receives = both || !sends;
    unsigned char *from = place(send, kit->rank == 0 ? skew : (skew * 7 + number) % 16);
    unsigned char *to = place(recv, kit->rank == 0 ? (skew * 5 + number) % 16 : skew);
    harness_step("message", number);
    pipe_kit_fill(from, n, pipe_kit_tag(kit->rank, other, number));
    pipe_kit_call(kit, sends ? other : -1, from, n, receives ? other : -1, to, n, how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    if (receives)
        pipe_kit_expect(to, n, pipe_kit_tag(other, kit->rank, number));
}

static void one_message(pipe_kit *kit, size_t n, size_t skew, uint64_t number,
                        const hem_pipe_how *how) {
    unsigned char *send = (unsigned char *)device_alloc(n + 64);
    unsigned char *recv = (unsigned char *)device_alloc(n + 64);
    one_size(kit, send, recv, n, skew, number, how);
    device_free(send);
    device_free(recv);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(3, SLOT, 3, SHORT);
    pipe_kit kit = pipe_kit_open(world, &options);
    harness_rng rng = harness_rng_of(harness_seed(world), (uint64_t)kit.rank, 1);
    uint64_t number = 0;

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t skew = 0; skew < 16; skew += harness_sanitized() ? 5 : 1) {
            hem_pipe_how how = pipe_kit_any_how(&rng, &options);
            one_message(&kit, sizes[s], skew, number++, &how);
        }
    for (size_t mib = 1; mib <= 5; mib += 2)
        for (size_t odd = 0; odd < 7; odd += 3) {
            hem_pipe_how how = pipe_kit_any_how(&rng, &options);
            one_message(&kit, (mib << 20) + odd, odd, number++, &how);
        }
    pipe_kit_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
