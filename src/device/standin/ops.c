/* The stream operations of the module, and the same for programs. */
#include "device/standin/inside.h"

static hem_status launch(const void *context, void *stream, const hemi_standin_grid *grid,
                         size_t bytes) {
    uint64_t warps = (uint64_t)grid->blocks * grid->warps;
    if (warps == 0 || warps > HEMI_STANDIN_WARPS)
        return hemi_standin_fail(context, HEM_ERR_ARG,
                                 "the stand-in runs 1 to %u warps at a time, not %u blocks of %u",
                                 HEMI_STANDIN_WARPS, grid->blocks, grid->warps);
    return hemi_standin_stream_put(context, stream, hemi_standin_item_launch(grid, bytes));
}

static hem_status op_check(void *context, void *stream, bool shared) {
    if (stream == NULL && shared)
        return hemi_standin_fail(context, HEM_ERR_UNSUPPORTED,
                                 "the default stream waits for the kernels of all ranks of the "
                                 "process; make a stream for each rank");
    if (stream != NULL && !hemi_standin_stream_known(stream))
        return hemi_standin_fail(context, HEM_ERR_ARG, "%p is no stream", stream);
    return HEM_OK;
}

static hem_status op_launch(void *context, void *stream, const hemi_launch *what) {
    if (what->threads == 0 || what->threads % 32 != 0)
        return hemi_standin_fail(context, HEM_ERR_ARG, "%u threads are not whole warps of 32",
                                 what->threads);
    hemi_standin_grid grid = {NULL, what->args, what->blocks, what->threads / 32};
    grid.kernel = hemi_standin_kernel_of(context, what->kernel, what->bytes);
    if (grid.kernel == NULL)
        return HEM_ERR_SYSTEM;
    return launch(context, stream, &grid, what->bytes);
}

/* Few, so that limits are met in tests. */
static uint32_t op_fit(void *context, enum hemi_kernel kernel, uint32_t threads) {
    (void)context;
    (void)kernel;
    (void)threads;
    return 4;
}

static hem_status op_copy(void *context, void *stream, uint32_t count, void *const *to,
                          const void *const *from, const size_t *bytes) {
    return hemi_standin_stream_put(context, stream, hemi_standin_item_copy(count, to, from, bytes));
}

static hem_status op_copy_rows(void *context, void *stream, uint32_t count,
                               const hemi_device_rows *rows) {
    return hemi_standin_stream_put(context, stream, hemi_standin_item_rows(count, rows));
}

static hem_status op_store(void *context, void *stream, uint64_t *word, uint64_t value) {
    return hemi_standin_stream_put(context, stream, hemi_standin_item_store(word, value));
}

static hem_status op_await(void *context, void *stream, const uint64_t *word, uint64_t value) {
    return hemi_standin_stream_put(context, stream, hemi_standin_item_await(word, value));
}

static hem_status op_call(void *context, void *stream, void (*fn)(void *arg), void *arg) {
    return hemi_standin_stream_put(context, stream, hemi_standin_item_call(fn, arg));
}

static hem_status op_order(void *context, void *before, void *after) {
    if (before != NULL && !hemi_standin_stream_known(before))
        return hemi_standin_fail(context, HEM_ERR_ARG, "%p is no stream any more", before);
    return hemi_standin_stream_follow(context, before, after);
}

static hem_status op_make(void *context, void **stream_p) {
    hemi_standin_stream *stream;
    hem_status status = hemi_standin_stream_create(&stream);
    if (status != HEM_OK)
        return hemi_standin_fail(context, status, "no memory or thread for a stream");
    *stream_p = stream;
    return HEM_OK;
}

static void op_destroy(void *context, void *stream) {
    (void)context;
    hemi_standin_stream_destroy(stream);
}

static hem_status op_query(void *context, void *stream) {
    return hemi_standin_stream_look(context, stream);
}

static bool op_captures(void *context, void *stream) {
    (void)context;
    return hemi_standin_stream_captures(stream);
}

static hem_status op_mark(void *context, void *stream, void **mark_p) {
    void *mark = NULL;
    hemi_standin_item *item = hemi_standin_item_mark(&mark);
    hem_status status = hemi_standin_stream_put(context, stream, item);
    if (status == HEM_OK)
        *mark_p = mark;
    else if (mark != NULL)
        hemi_standin_mark_drop(mark);
    return status;
}

static hem_status op_test(void *context, void *mark) {
    hem_status status = hemi_standin_mark_test(mark);
    if (status == HEM_ERR_SYSTEM)
        return hemi_standin_fail(context, status, "the stand-in had no threads left");
    return status;
}

static void op_unmark(void *context, void *mark) {
    (void)context;
    hemi_standin_mark_drop(mark);
}

const hemi_device_stream_ops hemi_standin_stream_ops = {
    .check = op_check,
    .launch = op_launch,
    .fit = op_fit,
    .copy = op_copy,
    .store = op_store,
    .await = op_await,
    .call = op_call,
    .order = op_order,
    .make = op_make,
    .destroy = op_destroy,
    .query = op_query,
    .captures = op_captures,
    .mark = op_mark,
    .test = op_test,
    .unmark = op_unmark,
    .alloc_on = hemi_standin_alloc_on,
    .free_on = hemi_standin_free_on,
    .copy_rows = op_copy_rows,
};

HEM_API hem_status hemi_standin_launch(hemi_standin_stream *stream, hemi_standin_kernel kernel,
                                       uint32_t blocks, uint32_t warps, const void *args,
                                       size_t bytes) {
    hemi_standin_grid grid = {kernel, args, blocks, warps};
    return launch(NULL, stream, &grid, bytes);
}

HEM_API hem_status hemi_standin_stream_copy(hemi_standin_stream *stream, void *to, const void *from,
                                            size_t bytes) {
    return op_copy(NULL, stream, 1, &to, &from, &bytes);
}

HEM_API hem_status hemi_standin_stream_order(hemi_standin_stream *before,
                                             hemi_standin_stream *after) {
    return hemi_standin_stream_follow(NULL, before, after);
}

HEM_API hem_status hemi_standin_stream_query(hemi_standin_stream *stream) {
    return hemi_standin_stream_look(NULL, stream);
}
