/*
 * A window is carved into named buffers: in order, without overlap, each aligned, found by name.
 * Counts may differ between ranks; names and types may not, and what does not fit is refused on all
 * ranks with the same status, before anything is allocated, naming the rank at fault.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

static hem_status create(hem_world *world, const hem_buffer *buffers, size_t count, size_t bytes,
                         size_t align, hem_window **window_p) {
    hem_window_options options = {
        .struct_size = sizeof options,
        .bytes = bytes,
        .buffers = buffers,
        .buffer_count = count,
        .align = align,
    };

    return hem_window_create(world, &options, window_p);
}

static void sizes_of_types(void) {
    static const size_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1};

    for (int dtype = 0; dtype <= HEM_BOOL; dtype++)
        CHECK_EQ(hem_dtype_size((hem_dtype)dtype), sizes[dtype]);
    CHECK_EQ(hem_dtype_size((hem_dtype)(HEM_BOOL + 1)), 0);
    CHECK_EQ(hem_dtype_size((hem_dtype)-1), 0);
}

/* Rank r asks for r more of the middle one. */
static void laid_out(hem_world *world, size_t align) {
    size_t rank = (size_t)hem_world_rank(world);
    size_t step = align ? align : 64;
    hem_buffer asked[] = {{"edge", HEM_F64, 3, 0},
                          {"middle", HEM_BYTE, rank, 0},
                          {"none", HEM_C128, 0, 0},
                          {"last", HEM_I16, 5, 0}};
    hem_buffer got;
    hem_window *window;
    size_t end = 0;

    CHECK_OK(create(world, asked, 4, 0, align, &window));
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(hem_window_buffer(window, asked[i].name, &got));
        CHECK(strcmp(got.name, asked[i].name) == 0);
        CHECK_EQ(got.dtype, asked[i].dtype);
        CHECK_EQ(got.count, asked[i].count);
        CHECK_EQ(got.offset % step, 0);
        CHECK(got.offset >= end);
        CHECK(got.offset < end + step);
        end = got.offset + got.count * hem_dtype_size(got.dtype);
        CHECK_EQ(((uintptr_t)hem_window_memory(window) + got.offset) % step, 0);
    }
    CHECK(hem_window_bytes(window, (int)rank) >= end);
    CHECK(hem_window_bytes(window, (int)rank) < end + step);
    CHECK_STATUS(hem_window_buffer(window, "nobody", &got), HEM_ERR_RANGE);
    CHECK_STATUS(hem_window_buffer(window, "edg", &got), HEM_ERR_RANGE);
    CHECK_STATUS(hem_window_buffer(window, "", &got), HEM_ERR_RANGE);
    CHECK_STATUS(hem_window_buffer(window, NULL, &got), HEM_ERR_ARG);
    CHECK_STATUS(hem_window_buffer(window, "edge", NULL), HEM_ERR_ARG);
    CHECK_OK(hem_put(window, harness_right(world), 0, "12345678", 8));
    harness_barrier(window);
    CHECK(memcmp(hem_window_memory(window), "12345678", 8) == 0);
    harness_destroy(window);
}

/* The names are the library's own copy, and an exact `bytes` is enough. */
static void names_copied(hem_world *world) {
    char name[2] = "a";
    hem_buffer asked = {name, HEM_U8, 100, 0};
    hem_buffer got;
    hem_window *window;

    CHECK_OK(create(world, &asked, 1, 100, 0, &window));
    name[0] = 'b';
    CHECK_OK(hem_window_buffer(window, "a", &got));
    CHECK_STATUS(hem_window_buffer(window, "b", &got), HEM_ERR_RANGE);
    harness_destroy(window);
}

/* One rank asks for something else. All must say the same, and say who. */
static void refused(hem_world *world, hem_buffer *buffers, size_t bytes, hem_status want) {
    hem_window *window = (hem_window *)&window;
    hem_status status = create(world, buffers, 2, bytes, 0, &window);

    CHECK(status != HEM_OK);
    CHECK(window == (hem_window *)&window);
    /* The rank itself knows that it is meant. */
    if (hem_world_rank(world) != hem_world_size(world) - 1)
        CHECK_NAMES_RANK(hem_world_size(world) - 1);
    CHECK(hem_last_error()[0]);
    if (want != HEM_OK)
        CHECK_STATUS(status, want);
    harness_same(world, (uint64_t)(int64_t)status);
}

static void one_differs(hem_world *world) {
    bool odd = hem_world_rank(world) == hem_world_size(world) - 1;
    hem_buffer names[] = {{"a", HEM_F32, 10, 0}, {odd ? "c" : "b", HEM_F32, 10, 0}};
    hem_buffer types[] = {{"a", HEM_F32, 10, 0}, {"b", odd ? HEM_I32 : HEM_F32, 10, 0}};
    hem_buffer order[] = {{odd ? "b" : "a", HEM_F32, 10, 0}, {odd ? "a" : "b", HEM_F32, 10, 0}};
    hem_buffer wide[] = {{"a", HEM_F32, 10, 0}, {"b", HEM_F64, odd ? 100000 : 10, 0}};
    hem_buffer huge[] = {{"a", HEM_F32, 10, 0}, {"b", HEM_F64, odd ? SIZE_MAX / 4 : 10, 0}};
    hem_buffer twice[] = {{"a", HEM_F32, 10, 0}, {odd ? "a" : "b", HEM_F32, 10, 0}};
    hem_buffer no_type[] = {{"a", HEM_F32, 10, 0}, {"b", odd ? (hem_dtype)99 : HEM_F32, 10, 0}};
    hem_buffer no_name[] = {{"a", HEM_F32, 10, 0}, {odd ? NULL : "b", HEM_F32, 10, 0}};

    if (hem_world_size(world) > 1) {
        refused(world, names, 0, HEM_ERR_MISMATCH);
        refused(world, types, 0, HEM_ERR_MISMATCH);
        refused(world, order, 0, HEM_ERR_MISMATCH);
    }
    refused(world, wide, 1000, HEM_OK);
    refused(world, huge, 0, HEM_OK);
    refused(world, twice, 0, HEM_OK);
    refused(world, no_type, 0, HEM_ERR_ARG);
    refused(world, no_name, 0, HEM_ERR_ARG);
}

int rank_main(hem_world *world) {
    sizes_of_types();
    laid_out(world, 0);
    for (size_t align = 1; align <= 4096; align *= 2)
        laid_out(world, align);
    names_copied(world);
    one_differs(world);
    laid_out(world, 0);
    harness_close(world, HEM_OK);
    return 0;
}
