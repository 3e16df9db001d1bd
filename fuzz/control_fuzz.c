/* What a launcher hears from its ranks: the number of ranks, then the message. */
#include "input.h"

#include "core/bootstrap/control.h"
#include "core/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint32_t ranks = fuzz_u32(&in);
    uint32_t rank = UINT32_MAX;
    if (hemi_control_parse(in.data, in.left, ranks, &rank) != NULL) {
        FUZZ_CHECK(rank == UINT32_MAX);
        return 0;
    }
    hemi_control_hello hello;
    FUZZ_CHECK(in.left == sizeof hello);
    memcpy(&hello, in.data, sizeof hello);
    FUZZ_CHECK(hello.magic == HEMI_CONTROL_MAGIC && hello.version == HEMI_LAYOUT_VERSION);
    FUZZ_CHECK(rank == hello.rank && rank < ranks);
    return 0;
}
