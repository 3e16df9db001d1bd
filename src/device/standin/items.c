/* What lies on a stream or in a graph. */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <stdlib.h>
#include <string.h>

static void *item_make(size_t bytes, hem_status (*run)(hemi_standin_item *, hemi_standin_crew *)) {
    hemi_standin_item *item = malloc(bytes);
    if (item != NULL) {
        item->next = NULL;
        item->run = run;
        item->drop = NULL;
    }
    return item;
}

void hemi_standin_item_free(hemi_standin_item *item) {
    if (item != NULL && item->drop != NULL)
        item->drop(item);
    free(item);
}

typedef struct launch_item {
    hemi_standin_item item;
    hemi_standin_grid grid;
    _Alignas(64) unsigned char args[];
} launch_item;

static hem_status launch_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    return hemi_standin_crew_run(crew, &((launch_item *)item)->grid);
}

bool hemi_standin_item_launches(const hemi_standin_item *item) {
    return item->run == launch_run;
}

hemi_standin_item *hemi_standin_item_launch(const hemi_standin_grid *grid, size_t bytes) {
    size_t size = (sizeof(launch_item) + bytes + 63) / 64 * 64;
    launch_item *made = aligned_alloc(64, size);
    if (made == NULL)
        return NULL;
    made->item = (hemi_standin_item){NULL, launch_run, NULL};
    made->grid = *grid;
    made->grid.args = made->args;
    if (bytes > 0)
        memcpy(made->args, grid->args, bytes);
    return &made->item;
}

typedef struct piece {
    void *to;
    const void *from;
    size_t bytes;
} piece;

typedef struct copy_item {
    hemi_standin_item item;
    uint32_t count;
    piece pieces[];
} copy_item;

static hem_status copy_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    copy_item *mine = (copy_item *)item;
    for (uint32_t i = 0; i < mine->count; i++)
        hemi_standin_move(mine->pieces[i].to, mine->pieces[i].from, mine->pieces[i].bytes);
    return HEM_OK;
}

hemi_standin_item *hemi_standin_item_copy(uint32_t count, void *const *to, const void *const *from,
                                          const size_t *bytes) {
    copy_item *made = item_make(sizeof *made + count * sizeof made->pieces[0], copy_run);
    if (made == NULL)
        return NULL;
    made->count = count;
    for (uint32_t i = 0; i < count; i++)
        made->pieces[i] = (piece){to[i], from[i], bytes[i]};
    return &made->item;
}

typedef struct rows_item {
    hemi_standin_item item;
    uint32_t count;
    hemi_device_rows rows[];
} rows_item;

static hem_status rows_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    const rows_item *mine = (const rows_item *)item;
    for (uint32_t i = 0; i < mine->count; i++) {
        const hemi_device_rows *r = &mine->rows[i];
        for (uint64_t k = 0; k < r->rows; k++)
            hemi_standin_move((unsigned char *)r->to + k * r->to_step,
                              (const unsigned char *)r->from + k * r->from_step, r->bytes);
    }
    return HEM_OK;
}

hemi_standin_item *hemi_standin_item_rows(uint32_t count, const hemi_device_rows *rows) {
    rows_item *made = item_make(sizeof *made + count * sizeof *rows, rows_run);
    if (made == NULL)
        return NULL;
    made->count = count;
    for (uint32_t i = 0; i < count; i++)
        made->rows[i] = rows[i];
    return &made->item;
}

typedef struct word_item {
    hemi_standin_item item;
    uint64_t *word;
    const uint64_t *watched;
    uint64_t value;
} word_item;

/* Pairs with whoever acquires the word: await_run, or a wait in a kernel. */
static hem_status store_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    word_item *mine = (word_item *)item;
    hemi_store64_release(mine->word, mine->value);
    return HEM_OK;
}

static hem_status await_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    word_item *mine = (word_item *)item;
    while (hemi_load64_acquire(mine->watched) < mine->value)
        hemd_relax();
    return HEM_OK;
}

hemi_standin_item *hemi_standin_item_store(uint64_t *word, uint64_t value) {
    word_item *made = item_make(sizeof *made, store_run);
    if (made == NULL)
        return NULL;
    made->word = word;
    made->value = value;
    return &made->item;
}

hemi_standin_item *hemi_standin_item_await(const uint64_t *word, uint64_t value) {
    word_item *made = item_make(sizeof *made, await_run);
    if (made == NULL)
        return NULL;
    made->watched = word;
    made->value = value;
    return &made->item;
}

typedef struct call_item {
    hemi_standin_item item;
    void (*fn)(void *arg);
    void *arg;
} call_item;

static hem_status call_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    call_item *mine = (call_item *)item;
    mine->fn(mine->arg);
    return HEM_OK;
}

hemi_standin_item *hemi_standin_item_call(void (*fn)(void *arg), void *arg) {
    call_item *made = item_make(sizeof *made, call_run);
    if (made == NULL)
        return NULL;
    made->fn = fn;
    made->arg = arg;
    return &made->item;
}

/* An event that two items share, or an item and who asked for a mark. */
typedef struct event {
    pthread_mutex_t lock;
    hemi_standin_bell changed;
    bool done;
    bool lost; /* the item was dropped before it was run */
    uint32_t refs;
} event;

typedef struct event_item {
    hemi_standin_item item;
    event *event;
} event_item;

static void event_leave(event *shared, bool loses) {
    pthread_mutex_lock(&shared->lock);
    bool last = --shared->refs == 0;
    shared->lost |= loses && !shared->done;
    pthread_mutex_unlock(&shared->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

static void event_drop(hemi_standin_item *item) {
    event_leave(((event_item *)item)->event, false);
}

static void mark_drop(hemi_standin_item *item) {
    event_leave(((event_item *)item)->event, true);
}

static hem_status mark_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    event *shared = ((event_item *)item)->event;
    pthread_mutex_lock(&shared->lock);
    shared->done = true;
    hemi_standin_bell_ring(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
    return HEM_OK;
}

static hem_status wait_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    (void)crew;
    event *shared = ((event_item *)item)->event;
    pthread_mutex_lock(&shared->lock);
    while (!shared->done)
        hemi_standin_bell_await(&shared->changed, &shared->lock);
    pthread_mutex_unlock(&shared->lock);
    return HEM_OK;
}

bool hemi_standin_item_pair(hemi_standin_item **first_p, hemi_standin_item **second_p) {
    event *shared = calloc(1, sizeof *shared);
    event_item *first = item_make(sizeof *first, mark_run);
    event_item *second = item_make(sizeof *second, wait_run);
    if (shared == NULL || first == NULL || second == NULL) {
        free(shared);
        free(first);
        free(second);
        return false;
    }
    pthread_mutex_init(&shared->lock, NULL);
    shared->refs = 2;
    first->event = second->event = shared;
    first->item.drop = second->item.drop = event_drop;
    *first_p = &first->item;
    *second_p = &second->item;
    return true;
}

hemi_standin_item *hemi_standin_item_mark(void **mark_p) {
    event *shared = calloc(1, sizeof *shared);
    event_item *made = item_make(sizeof *made, mark_run);
    if (shared == NULL || made == NULL) {
        free(shared);
        free(made);
        return NULL;
    }
    pthread_mutex_init(&shared->lock, NULL);
    shared->refs = 2;
    made->event = shared;
    made->item.drop = mark_drop;
    *mark_p = shared;
    return &made->item;
}

hem_status hemi_standin_mark_test(void *mark) {
    event *shared = mark;
    pthread_mutex_lock(&shared->lock);
    hem_status status = shared->done ? HEM_OK : HEM_ERR_TIMEOUT;
    if (shared->lost)
        status = HEM_ERR_SYSTEM;
    pthread_mutex_unlock(&shared->lock);
    return status;
}

void hemi_standin_mark_drop(void *mark) {
    event_leave(mark, false);
}

typedef struct graph_item {
    hemi_standin_item item;
    hemi_standin_graph *graph;
} graph_item;

static void graph_item_drop(hemi_standin_item *item) {
    hemi_standin_graph_drop(((graph_item *)item)->graph);
}

static hem_status graph_run(hemi_standin_item *item, hemi_standin_crew *crew) {
    hem_status status = HEM_OK;
    hemi_standin_item *at = ((graph_item *)item)->graph->first;
    for (; at != NULL && status == HEM_OK; at = at->next)
        status = at->run(at, crew);
    return status;
}

hemi_standin_item *hemi_standin_item_graph(hemi_standin_graph *graph) {
    graph_item *made = item_make(sizeof *made, graph_run);
    if (made == NULL)
        return NULL;
    hemi_standin_graph_hold(graph);
    made->graph = graph;
    made->item.drop = graph_item_drop;
    return &made->item;
}
