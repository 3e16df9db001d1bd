#include "base/options.h"
#include "core/bootstrap/bootstrap.h"
#include "core/root.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What a rank that did not close its world leaves as its exit code. */
#define CODE_UNCLOSED 255

typedef struct crew crew;

typedef struct thread_rank {
    crew *crew;
    uint32_t rank;
    pthread_t thread;
    bool started;
    int result; /* what fn returned */
    hem_status status;
    char error[HEMI_ERROR_MAX];
} thread_rank;

struct crew {
    hemi_arena arena;
    const hemi_platform *platform;
    hem_rank_fn fn;
    void *arg;
    int64_t timeout_ns;
    uint32_t n;
    thread_rank *ranks;
    hemi_mates mates;
};

/* Whether the rank closed every world that it had in this arena. */
static bool left_cleanly(const thread_rank *t, uint32_t refs) {
    return t->status == HEM_OK && refs == 1;
}

static void remember(thread_rank *t, hem_status status) {
    t->status = status;
    strncpy(t->error, hem_last_error(), sizeof t->error - 1);
}

static void *rank_thread(void *arg) {
    thread_rank *t = arg;
    crew *c = t->crew;
    hemi_arena arena = c->arena;
    arena.borrowed = true; /* one mapping for all, so that a sanitizer sees one address per word */
    hemi_root *root = NULL;
    hem_world *world = NULL;
    hem_status status = hemi_root_attach(&arena, c->platform, t->rank, &root);
    if (root != NULL)
        root->mates = &c->mates;
    if (status == HEM_OK)
        status = hemi_root_open_world(root, c->timeout_ns, c->timeout_ns, &world);
    if (status != HEM_OK)
        remember(t, status);
    else
        t->result = c->fn(world, c->arg);
    /* A progress thread that is left running would go on for a rank that is said to be dead. */
    if (root != NULL)
        hemi_root_stop_workers(root);
    uint32_t refs = root != NULL ? hemi_load32_acquire(&root->refs) : 0;
    hemi_liveness_dying(&c->arena);
    hemi_liveness_ended(&c->arena, c->platform, t->rank, left_cleanly(t, refs) ? 0 : CODE_UNCLOSED);
    if (root != NULL)
        hemi_root_bury(root);
    hemi_liveness_buried(&c->arena);
    if (root != NULL)
        hemi_root_drop(root);
    return NULL;
}

static hem_status start_all(crew *c) {
    for (uint32_t r = 0; r < c->n; r++) {
        thread_rank *t = &c->ranks[r];
        t->crew = c;
        t->rank = r;
        int error = pthread_create(&t->thread, NULL, rank_thread, t);
        if (error != 0) {
            /* Those that run already must not wait for those that never will. */
            for (uint32_t missing = r; missing < c->n; missing++)
                hemi_liveness_ended(&c->arena, c->platform, missing, CODE_UNCLOSED);
            return hemi_fail(HEM_ERR_LIMIT, "only %u of %u threads could be started: %s", r, c->n,
                             strerror(error));
        }
        t->started = true;
    }
    return HEM_OK;
}

static hem_status join_all(crew *c, hem_status status) {
    for (uint32_t r = 0; r < c->n; r++)
        if (c->ranks[r].started)
            pthread_join(c->ranks[r].thread, NULL);
    if (status != HEM_OK)
        return status;
    for (uint32_t r = 0; r < c->n; r++) {
        thread_rank *t = &c->ranks[r];
        if (t->status != HEM_OK)
            return hemi_fail(t->status, "rank %u: %s", r, t->error);
    }
    for (uint32_t r = 0; r < c->n; r++)
        if (c->ranks[r].result != 0)
            return hemi_fail(HEM_ERR_PEER, "hem_world_threads: rank %u returned %d", r,
                             c->ranks[r].result);
    return HEM_OK;
}

hem_status hemi_threads_run(const hemi_platform *platform, int n, hem_rank_fn fn, void *arg,
                            const hem_world_options *options) {
    if (n < 1 || n > HEMI_MAX_RANKS || fn == NULL)
        return hemi_fail(n < 1 || fn == NULL ? HEM_ERR_ARG : HEM_ERR_LIMIT,
                         "hem_world_threads: %d ranks; 1 to %d are allowed", n, HEMI_MAX_RANKS);
    if (options->allgather != NULL || options->rank != 0 || options->size != 0)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_world_threads: rank, size and allgather must not be set");
    crew c = {.platform = platform, .fn = fn, .arg = arg, .n = (uint32_t)n};
    hem_status status = hemi_open_timeout(options, &c.timeout_ns);
    hemi_arena_plan plan = {
        .ranks = c.n, .kind = HEMI_KIND_THREADS, .part_bytes = options->arena_bytes};
    if (status == HEM_OK)
        status = hemi_arena_make(&plan, platform, &c.arena);
    if (status != HEM_OK)
        return status;
    c.ranks = calloc(c.n, sizeof *c.ranks);
    if (c.ranks == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for %d ranks", n);
    else
        status = join_all(&c, start_all(&c));
    free(c.ranks);
    hemi_arena_unmap(&c.arena);
    return status;
}

hem_status hem_world_threads(int n, hem_rank_fn fn, void *arg, const hem_world_options *options) {
    hem_world_options o;
    hem_status status = hemi_options_read(&o, sizeof o, options, "hem_world_threads");
    if (status != HEM_OK)
        return status;
    return hemi_threads_run(hemi_platform_real(), n, fn, arg, &o);
}
