/*
 * A handle of memory, as it comes from a peer. First byte odd: a well-made name of any kind, place
 * and length, which only the range checks can refuse; even: any bytes. Then patches to it.
 */
#include "input.h"

#include "transport/transport.h"

#include <hem/hem.h>

#define OWN_BYTES 10000

static hem_world *world;
static hem_memory *own;

static void open_once(void) {
    hem_world_options options = {.struct_size = sizeof options, .arena_bytes = 16u << 20};
    if (world != NULL)
        return;
    FUZZ_CHECK(hem_world_open(&options, &world) == HEM_OK);
    FUZZ_CHECK(hem_memory_alloc(world, OWN_BYTES, &own) == HEM_OK);
}

static void well_made(fuzz_input *in, hem_memory_handle *handle) {
    const hemi_arena *arena = &world->root->arena;
    uint32_t kind = fuzz_u8(in) % 4;
    uint64_t where = fuzz_u64(in);
    uint64_t bytes = fuzz_u64(in);
    if (fuzz_u8(in) % 2 == 0)
        where += hemi_arena_part(arena, 0);
    hemi_name name = hemi_name_make(world->root, (enum hemi_name_kind)kind, where, bytes);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &name, sizeof name);
}

/* What is believed of library memory must be memory that the heap gives out. */
static void use_library(hem_memory *memory, const hemi_name *name) {
    const hemi_arena *arena = &world->root->arena;
    uint64_t part = hemi_arena_part(arena, 0);
    unsigned char byte = 0;
    FUZZ_CHECK(name->where >= part + HEMI_HEAP_META);
    FUZZ_CHECK(name->bytes <= arena->part_bytes);
    FUZZ_CHECK(name->where + name->bytes <= part + arena->part_bytes);
    FUZZ_CHECK(hem_memory_size(memory) == name->bytes);
    FUZZ_CHECK(hem_memory_address(memory) == hemi_arena_at(arena, name->where));
    FUZZ_CHECK(hem_memory_read(memory, name->bytes, &byte, 1) == HEM_ERR_RANGE);
    if (name->bytes == 0)
        return;
    FUZZ_CHECK(hem_memory_read(memory, 0, &byte, 1) == HEM_OK);
    FUZZ_CHECK(hem_memory_read(memory, name->bytes - 1, &byte, 1) == HEM_OK);
    FUZZ_CHECK(hem_memory_write(memory, name->bytes - 1, &byte, 1) == HEM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    hem_memory_handle handle;
    hem_memory *memory = NULL;
    hemi_name name;
    open_once();
    if (fuzz_u8(&in) % 2 == 1)
        well_made(&in, &handle);
    else
        fuzz_take(&in, &handle, sizeof handle);
    while (in.left > 0)
        ((uint8_t *)&handle)[fuzz_u8(&in) % sizeof handle] ^= fuzz_u8(&in);
    memcpy(&name, &handle, sizeof name);
    hem_status status = hem_memory_import(world, 0, &handle, &memory);
    FUZZ_CHECK(status == HEM_OK || status == HEM_ERR_RANGE);
    if (status != HEM_OK)
        return 0;
    FUZZ_CHECK(name.kind == HEMI_NAME_LIBRARY || name.kind == HEMI_NAME_OWN);
    /* Nobody but the owner knows what lies at an address of its own. */
    if (name.kind == HEMI_NAME_LIBRARY)
        use_library(memory, &name);
    FUZZ_CHECK(hem_memory_free(memory) == HEM_OK);
    return 0;
}
