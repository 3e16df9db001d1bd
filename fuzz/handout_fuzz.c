/* What rank 0 hears when it hands out the arena: number of ranks, its token, then the message. */
#include "input.h"

#include "core/bootstrap/handout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint32_t ranks = fuzz_u32(&in);
    uint64_t token = fuzz_u64(&in);
    uint32_t rank = UINT32_MAX;
    if (hemi_handout_parse(in.data, in.left, token, ranks, &rank) != NULL) {
        FUZZ_CHECK(rank == UINT32_MAX);
        return 0;
    }
    hemi_handout_ask ask;
    FUZZ_CHECK(in.left == sizeof ask);
    memcpy(&ask, in.data, sizeof ask);
    FUZZ_CHECK(ask.token == token && ask.version == HEMI_LAYOUT_VERSION);
    FUZZ_CHECK(rank == ask.rank && rank > 0 && rank < ranks);
    return 0;
}
