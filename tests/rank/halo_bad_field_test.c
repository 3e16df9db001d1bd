/*
 * Exchanges of bad or disagreeing fields: memory that is too small, strides that are negative or
 * overflow, domains, types, numbers and flags that are none, fields that differ between ranks or are
 * missing on some domain. All ranks get the same error with a sentence, nobody gets an exchange, and
 * the world works afterwards.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "halo_bad_fields.h"

static void works(halo_bad_set *s) {
    halo_works(s->world);
}

int rank_main(hem_world *world) {
    halo_bad_set *s = calloc(1, sizeof *s);
    double *memory = calloc((size_t)HALO_BAD_BINDINGS * HALO_BAD_ROOM, sizeof *memory);

    CHECK(s != NULL && memory != NULL);
    for (size_t i = 0; i < HALO_BAD_BINDINGS; i++)
        s->memory[i] = memory + i * HALO_BAD_ROOM;
    halo_bad_open(s, world);
    halo_bad_all(s, 4, works);
    halo_bad_close(s);
    free(memory);
    free(s);
    harness_close(world, HEM_OK);
    return 0;
}
