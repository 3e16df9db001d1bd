/* Graphs, and capturing streams into them. */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <stdlib.h>

void hemi_standin_graph_add(hemi_standin_graph *graph, hemi_standin_item *item) {
    pthread_mutex_lock(&graph->lock);
    *graph->last = item;
    graph->last = &item->next;
    pthread_mutex_unlock(&graph->lock);
}

void hemi_standin_graph_hold(hemi_standin_graph *graph) {
    hemi_add32_relaxed(&graph->refs, 1);
}

void hemi_standin_graph_drop(hemi_standin_graph *graph) {
    if (hemi_add32_acq_rel(&graph->refs, UINT32_MAX) != 1)
        return;
    while (graph->first != NULL) {
        hemi_standin_item *item = graph->first;
        graph->first = item->next;
        hemi_standin_item_free(item);
    }
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

HEM_API hem_status hemi_standin_capture_begin(hemi_standin_stream *stream) {
    if (stream == NULL)
        return hemi_standin_fail(NULL, HEM_ERR_UNSUPPORTED,
                                 "the default stream cannot be captured");
    hemi_standin_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return hemi_standin_fail(NULL, HEM_ERR_MEMORY, "no memory for a graph");
    pthread_mutex_init(&graph->lock, NULL);
    graph->refs = 1;
    graph->origin = stream;
    graph->last = &graph->first;
    pthread_mutex_lock(&stream->lock);
    bool busy = stream->capture != NULL;
    if (!busy)
        stream->capture = graph;
    pthread_mutex_unlock(&stream->lock);
    if (!busy)
        return HEM_OK;
    hemi_standin_graph_drop(graph);
    return hemi_standin_fail(NULL, HEM_ERR_ARG, "the stream is being captured already");
}

HEM_API hem_status hemi_standin_capture_end(hemi_standin_stream *stream,
                                            hemi_standin_graph **graph_p) {
    pthread_mutex_lock(&stream->lock);
    hemi_standin_graph *graph = stream->capture;
    bool first = graph != NULL && graph->origin == stream;
    pthread_mutex_unlock(&stream->lock);
    if (!first)
        return hemi_standin_fail(NULL, HEM_ERR_ARG, "no capture was begun on the stream");
    if (hemi_standin_streams_leave(graph)) {
        hemi_standin_graph_drop(graph);
        return hemi_standin_fail(NULL, HEM_ERR_ARG,
                                 "the captured stream was not ordered after all that it forked");
    }
    *graph_p = graph;
    return HEM_OK;
}

HEM_API size_t hemi_standin_graph_kernels(const hemi_standin_graph *graph) {
    size_t kernels = 0;
    for (const hemi_standin_item *at = graph->first; at != NULL; at = at->next)
        kernels += hemi_standin_item_launches(at);
    return kernels;
}

HEM_API hem_status hemi_standin_graph_launch(hemi_standin_graph *graph,
                                             hemi_standin_stream *stream) {
    return hemi_standin_stream_put(NULL, stream, hemi_standin_item_graph(graph));
}

HEM_API void hemi_standin_graph_destroy(hemi_standin_graph *graph) {
    if (graph != NULL)
        hemi_standin_graph_drop(graph);
}
