#include "coll/context.h"
#include "coll/blocks.h"
#include "core/heap.h"
#include "core/team.h"
#include "transport/transport.h"

#include <stdlib.h>

/* What peers' private memory is read into before it is combined: to stay in a core's own cache. */
#define SCRATCH_BYTES (256u << 10)
#define SCRATCH_MOST  (128u << 10)

static void context_free(void *arg) {
    hemi_context *context = arg;
    hemi_span *lists[2] = {context->spans, context->pool};
    for (int i = 0; i < 2; i++)
        while (lists[i] != NULL) {
            hemi_span *span = lists[i];
            lists[i] = span->next;
            free(span);
        }
    free(context->hubs);
    free(context->scratch);
    hemi_blocks_drop(context->blocks);
    free(context);
}

/* The world goes, and the memory with it. */
static void orphan_kept(hemi_child *child, bool dead) {
    hemi_kept *kept = (hemi_kept *)(void *)child;
    hemi_root *root = kept->world->root;
    (void)dead;
    if (!kept->world->keep_memory)
        hemi_heap_free(&root->arena, root->platform, root->rank, kept->offset, root->cache_bytes);
    kept->bytes = 0;
}

static hem_status make(hem_world *world, hemi_context **context_p) {
    hemi_context *context = calloc(1, sizeof *context);
    if (context != NULL)
        context->hubs = calloc(world->size, sizeof *context->hubs);
    if (context == NULL || context->hubs == NULL) {
        free(context);
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the collectives of %u ranks", world->size);
    }
    const hemi_hub_view *mine = &world->engine.hub->mine;
    context->world = world;
    context->rank = world->rank;
    context->size = world->size;
    context->board = (uint64_t)(mine->board - (unsigned char *)mine->head);
    context->stages = (uint64_t)(mine->stages - (unsigned char *)mine->head);
    context->stage_bytes = mine->stage_bytes;
    context->spans_end = &context->spans;
    context->kept.child.orphan = orphan_kept;
    context->kept.world = world;
    context->plain = !world->root->settings.check && world->root->settings.algorithm[0] == '\0';
    context->hubs[context->rank] = (unsigned char *)mine->head;
    world->engine.coll = context;
    world->engine.coll_free = context_free;
    *context_p = context;
    return HEM_OK;
}

hem_status hemi_context_find(hem_world *world, hemi_context **context_p) {
    if (__builtin_expect(world->engine.coll != NULL, 1)) {
        *context_p = world->engine.coll;
        return HEM_OK;
    }
    hem_status status = hemi_hub_open(world);
    return status == HEM_OK ? make(world, context_p) : status;
}

hem_status hemi_context_stock(hemi_context *context) {
    hemi_span *span = calloc(1, sizeof *span);
    if (span == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a collective");
    span->next = context->pool;
    context->pool = span;
    return HEM_OK;
}

hemi_span *hemi_context_take(hemi_context *context, uint64_t steps, bool uses_channels) {
    hemi_span *span = context->pool;
    context->pool = span->next;
    span->next = NULL;
    span->number = ++context->collectives;
    span->steps = steps;
    span->finished = 0;
    span->posted = false;
    span->uses_channels = uses_channels;
    *context->spans_end = span;
    context->spans_end = &span->next;
    return span;
}

/* Whether those who wait for room should look now: see coll/board.h. */
static bool is_milestone(const hemi_span *span) {
    const uint64_t half = HEMI_BOARD / 2;
    if (span->finished < span->steps)
        return span->finished % half == 0;
    return span->steps > 1 || span->number % half == 0;
}

void hemi_context_pass(hemi_context *context) {
    context->done = hemi_step_over(context->collectives);
    /* Pairs with the acquires in hemi_context_slowest and hemi_context_may_post. */
    hemi_store64_release(&hemi_context_head(context, context->rank)->done, context->done);
    if (context->collectives % (HEMI_BOARD / 2) == 0)
        hemi_context_wake(context);
}

void hemi_context_finish(hemi_context *context, hemi_span *span, uint64_t count) {
    bool wake = false;
    span->finished += count;
    uint64_t done = context->done;
    while (context->spans != NULL) {
        hemi_span *oldest = context->spans;
        wake = wake || is_milestone(oldest);
        if (oldest->finished < oldest->steps) {
            done = hemi_step_done(oldest->number, oldest->finished);
            break;
        }
        done = hemi_step_over(oldest->number);
        context->spans = oldest->next;
        if (context->spans == NULL)
            context->spans_end = &context->spans;
        oldest->next = context->pool;
        context->pool = oldest;
    }
    if (done == context->done)
        return;
    context->done = done;
    /* Pairs with the acquires in hemi_context_slowest and hemi_context_may_post. */
    hemi_store64_release(&hemi_context_head(context, context->rank)->done, done);
    if (wake)
        hemi_context_wake(context);
}

bool hemi_context_may_begin(const hemi_context *context, const hemi_span *span) {
    for (const hemi_span *s = context->spans; s != span && s != NULL; s = s->next)
        if (!s->posted)
            return false;
    return true;
}

bool hemi_context_is_turn(const hemi_context *context, const hemi_span *span) {
    for (const hemi_span *s = context->spans; s != span && s != NULL; s = s->next)
        if (s->uses_channels && s->finished < s->steps)
            return false;
    return true;
}

hem_status hemi_context_pull(const hemi_context *context, uint32_t rank, uint64_t address, void *to,
                             size_t n) {
    const hemi_root *root = context->world->root;
    uint32_t owner = context->world->members[rank];
    hemi_region region = {.transport = hemi_transport_select(root, owner),
                          .bytes = n,
                          .remote = address,
                          .root_rank = owner,
                          .pid = hemi_load32_relaxed(&hemi_arena_rank(&root->arena, owner)->pid),
                          .route = HEM_ROUTE_COPY};
    return hemi_region_get(&region, 0, to, n);
}

/* Try it with everybody, and tell them. Threads of one process do not: see post_data. */
static void probe(hemi_context *context) {
    const hemi_root *root = context->world->root;
    bool good = !root->threads && root->settings.copy != HEMI_COPY_STAGED && context->size > 1;
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    for (uint32_t r = 0; good && r < context->size; r++) {
        uint64_t seen = 0;
        uint64_t address = hemi_load64_relaxed(&hemi_context_head(context, r)->probe);
        if (r != context->rank)
            good = hemi_context_pull(context, r, address, &seen, sizeof seen) == HEM_OK &&
                   seen == context->world->id;
    }
    hemi_error_restore(sentence);
    context->pulls = good;
    /* Pairs with the acquire in hemi_context_connect. */
    hemi_store32_release(&hemi_context_head(context, context->rank)->pull,
                         good ? HEMI_PULL_YES : HEMI_PULL_NO);
    hemi_context_wake(context);
}

/* First everybody's hub, then whether everybody can read everybody's private memory. */
hem_status hemi_context_connect(hemi_context *context) {
    const hem_world *world = context->world;
    const hemi_hub_view *mine = &world->engine.hub->mine;
    while (context->seen < context->size) {
        hemi_hub_view view;
        hem_status status = hemi_hub_see(context->world, context->seen, &view);
        if (status != HEM_OK)
            return status;
        if (view.stage_bytes != mine->stage_bytes || view.head->check != mine->head->check)
            return hemi_fail(HEM_ERR_MISMATCH,
                             "rank %u has other values of HEM_COLL_BYTES or HEM_CHECK than rank %u",
                             context->seen, context->rank);
        context->hubs[context->seen++] = (unsigned char *)view.head;
        if (context->seen == context->size)
            probe(context);
    }
    for (; context->known < context->size; context->known++) {
        /* Pairs with the release in probe. */
        uint32_t can = hemi_load32_acquire(&hemi_context_head(context, context->known)->pull);
        if (can == HEMI_PULL_UNKNOWN)
            return HEMI_AGAIN;
        context->pulls = context->pulls && can == HEMI_PULL_YES;
    }
    return HEM_OK;
}

unsigned char *hemi_context_borrow(hemi_context *context, size_t bytes) {
    hemi_kept *kept = &context->kept;
    hemi_root *root = context->world->root;
    if (kept->used)
        return NULL;
    if (kept->bytes < bytes) {
        uint64_t offset = 0;
        if (hemi_heap_alloc(&root->arena, root->platform, root->rank, bytes, HEMI_HEAP_RESERVED,
                            &offset) != HEM_OK)
            return NULL;
        if (kept->bytes > 0)
            hemi_heap_free(&root->arena, root->platform, root->rank, kept->offset,
                           root->cache_bytes);
        else
            hemi_world_adopt(context->world, &kept->child);
        kept->offset = offset;
        kept->bytes = bytes;
    }
    kept->used = true;
    return hemi_arena_at(&root->arena, kept->offset);
}

hem_status hemi_context_scratch(hemi_context *context) {
    if (context->scratch != NULL)
        return HEM_OK;
    size_t each = (size_t)SCRATCH_BYTES / context->size / 4096 * 4096;
    each = each < HEMI_SCRATCH_LEAST ? HEMI_SCRATCH_LEAST
           : each > SCRATCH_MOST     ? SCRATCH_MOST
                                     : each;
    context->scratch = malloc(each * context->size);
    context->scratch_bytes = each;
    return context->scratch != NULL ? HEM_OK : hemi_fail(HEM_ERR_MEMORY, "no memory for scratch");
}

uint32_t hemi_context_slowest(const hemi_context *context, uint64_t step) {
    uint64_t held = hemi_context_post(context, context->rank, step)->stamp;
    for (uint32_t r = 0; r < context->size; r++)
        if (hemi_load64_acquire(&hemi_context_head(context, r)->done) < held)
            return r;
    return context->size;
}

bool hemi_context_may_post(hemi_context *context, uint64_t step) {
    uint64_t held = hemi_context_post(context, context->rank, step)->stamp;
    if (__builtin_expect(held <= context->all_done, 1))
        return true;
    uint64_t least = UINT64_MAX;
    for (uint32_t r = 0; r < context->size; r++) {
        uint64_t done = hemi_load64_acquire(&hemi_context_head(context, r)->done);
        if (done < least)
            least = done;
    }
    context->all_done = least;
    return held <= least;
}

void hemi_context_wake(const hemi_context *context) {
    hemi_team_wake(context->world);
}
