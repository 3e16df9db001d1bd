/* The device of the tests where host threads stand in for it. */
#include "device.h"

#include "device/standin/standin.h"

#include <time.h>

#undef rank_main

int rank_main(hem_world *world) {
    const char *delay = getenv("HEM_DEVICE_DELAY_US");
    if (delay != NULL && *delay != '\0')
        CHECK_EQ(hemi_standin_delay((uint32_t)strtoul(delay, NULL, 0)), HEM_OK);
    return device_rank_main(world);
}

bool device_stands_in(void) {
    return true;
}

void device_unpin_waits(void) {
    hemi_standin_unpin_waits(true);
}

device_stream device_stream_create(void) {
    hemi_standin_stream *stream = NULL;
    CHECK_EQ(hemi_standin_stream_create(&stream), HEM_OK);
    return stream;
}

device_stream device_default_stream(device_default which) {
    static _Thread_local hemi_standin_stream *own;
    if (which != DEVICE_PER_THREAD)
        return NULL;
    if (own == NULL)
        CHECK_EQ(hemi_standin_stream_create(&own), HEM_OK);
    return own;
}

bool device_stream_done(device_stream stream) {
    hem_status status = hemi_standin_stream_query(stream);
    CHECK(status == HEM_OK || status == HEM_ERR_TIMEOUT);
    return status == HEM_OK;
}

void device_stream_sync(device_stream stream) {
    struct timespec nap = {0, 20000};
    int64_t until = harness_now() + LIMIT;
    while (!device_stream_done(stream)) {
        CHECK(harness_now() < until && "the stream comes to its end");
        nanosleep(&nap, NULL);
    }
}

void device_stream_destroy(device_stream stream) {
    hemi_standin_stream_destroy(stream);
}

size_t device_streams(void) {
    return hemi_standin_streams();
}

void device_stream_order(device_stream before, device_stream after) {
    CHECK_EQ(hemi_standin_stream_order(before, after), HEM_OK);
}

void device_stream_copy(device_stream stream, void *to, const void *from, size_t bytes) {
    CHECK_EQ(hemi_standin_stream_copy(stream, to, from, bytes), HEM_OK);
}

void *device_alloc(size_t bytes) {
    void *address = hemi_standin_alloc(bytes);
    CHECK(address != NULL);
    return address;
}

void device_free(void *address) {
    hemi_standin_free(address);
}

/* The stand-in has no pools. */
void *device_pool_alloc(size_t bytes) {
    return device_alloc(bytes);
}

void device_pool_free(void *address) {
    device_free(address);
}

void *device_hidden_alloc(size_t bytes) {
    void *address = device_alloc(bytes);
    hemi_standin_hide(address);
    return address;
}

void device_hidden_free(void *address) {
    device_free(address);
}

/* Its memory is of one kind, and a name is of one piece: what has several is hidden. */
void *device_vmm_alloc(size_t bytes) {
    return device_alloc(bytes);
}

void *device_vmm_seam(size_t each) {
    return (unsigned char *)device_hidden_alloc(2 * each) + each;
}

void *device_host_alloc(size_t bytes) {
    void *address = aligned_alloc(256, (bytes + 255) / 256 * 256);
    CHECK(address != NULL);
    memset(address, 0, bytes);
    return address;
}

void device_host_free(void *address) {
    free(address);
}

void device_copy(void *to, const void *from, size_t bytes) {
    hemi_standin_copy(to, from, bytes);
}

void device_launch_kernel(device_kernel kernel, device_stream stream, uint32_t blocks,
                          uint32_t warps, const void *args, size_t bytes) {
    CHECK_EQ(hemi_standin_launch(stream, kernel, blocks, warps, args, bytes), HEM_OK);
}

void device_capture_begin(device_stream stream) {
    CHECK_EQ(hemi_standin_capture_begin(stream), HEM_OK);
}

device_graph device_capture_end(device_stream stream) {
    size_t kernels = 0;
    return device_capture_end_counted(stream, &kernels);
}

device_graph device_capture_end_counted(device_stream stream, size_t *kernels_p) {
    hemi_standin_graph *graph = NULL;
    CHECK_EQ(hemi_standin_capture_end(stream, &graph), HEM_OK);
    *kernels_p = hemi_standin_graph_kernels(graph);
    return graph;
}

void device_graph_launch(device_graph graph, device_stream stream) {
    CHECK_EQ(hemi_standin_graph_launch(graph, stream), HEM_OK);
}

void device_graph_destroy(device_graph graph) {
    hemi_standin_graph_destroy(graph);
}
