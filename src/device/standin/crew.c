/* Host threads as warps. */
#include "device/standin/inside.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

HEM_API __thread hem_host_place hem_host_here;

HEM_API uint64_t hem_host_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

HEM_API void hem_host_relax(void) {
    sched_yield();
}

typedef struct member {
    hemi_standin_crew *crew;
    uint32_t index; /**< its warp in every grid that is large enough */
    uint64_t seen;  /**< turns */
} member;

static void run_warp(const hemi_standin_grid *grid, hem_host_block *blocks, uint32_t index) {
    uint32_t block = index / grid->warps;
    hem_host_here.warp = index % grid->warps;
    hem_host_here.warps = grid->warps;
    hem_host_here.index = block;
    hem_host_here.blocks = grid->blocks;
    hem_host_here.block = &blocks[block];
    grid->kernel(grid->args);
    hem_host_here.block = NULL;
}

/* Wait for the next grid. False when the crew ends. */
static bool next_turn(hemi_standin_crew *crew, uint64_t *seen) {
    while (crew->turn == *seen && !crew->end)
        hemi_standin_bell_await(&crew->start, &crew->lock);
    bool more = crew->turn != *seen;
    *seen = crew->turn;
    return more;
}

static void *member_main(void *arg) {
    member me = *(member *)arg;
    hemi_standin_crew *crew = me.crew;
    free(arg);
    hemi_standin_warp_enter();
    pthread_mutex_lock(&crew->lock);
    while (next_turn(crew, &me.seen)) {
        /* A grid that does not need this thread may be over by now, and its fields gone. */
        if (crew->grid == NULL || me.index >= crew->grid->blocks * crew->grid->warps)
            continue;
        const hemi_standin_grid *grid = crew->grid;
        hem_host_block *blocks = crew->blocks;
        pthread_mutex_unlock(&crew->lock);
        run_warp(grid, blocks, me.index);
        pthread_mutex_lock(&crew->lock);
        if (--crew->busy == 0)
            hemi_standin_bell_ring(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    hemi_standin_warp_leave();
    return NULL;
}

void hemi_standin_crew_init(hemi_standin_crew *crew) {
    pthread_mutex_init(&crew->lock, NULL);
    crew->start = (hemi_standin_bell){0, 0};
    crew->done = (hemi_standin_bell){0, 0};
    crew->grid = NULL;
    crew->turn = 0;
    crew->size = 0;
    crew->busy = 0;
    crew->end = false;
}

/* One thread more. Only the stream's thread changes `size` and `turn`. */
static hem_status grow(hemi_standin_crew *crew) {
    member *made = malloc(sizeof *made);
    pthread_attr_t attr;
    if (made == NULL || pthread_attr_init(&attr) != 0) {
        free(made);
        return HEM_ERR_MEMORY;
    }
    made->crew = crew;
    made->index = crew->size + 1;
    made->seen = crew->turn;
    pthread_attr_setstacksize(&attr, 1u << 20);
    int error = pthread_create(&crew->threads[crew->size], &attr, member_main, made);
    pthread_attr_destroy(&attr);
    if (error != 0) {
        free(made);
        return HEM_ERR_MEMORY;
    }
    crew->size++;
    return HEM_OK;
}

hem_status hemi_standin_crew_run(hemi_standin_crew *crew, const hemi_standin_grid *grid) {
    uint32_t total = grid->blocks * grid->warps;
    while (crew->size + 1 < total)
        if (grow(crew) != HEM_OK)
            return HEM_ERR_MEMORY;
    hem_host_block *blocks = calloc(grid->blocks, sizeof *blocks);
    if (blocks == NULL)
        return HEM_ERR_MEMORY;
    pthread_mutex_lock(&crew->lock);
    crew->grid = grid;
    crew->blocks = blocks;
    crew->busy = total - 1;
    crew->turn++;
    hemi_standin_bell_ring(&crew->start);
    pthread_mutex_unlock(&crew->lock);
    /* The first warp is the stream's own thread. */
    hemi_standin_grid_begin();
    run_warp(grid, blocks, 0);
    pthread_mutex_lock(&crew->lock);
    while (crew->busy != 0)
        hemi_standin_bell_await(&crew->done, &crew->lock);
    hemi_standin_grid_end();
    crew->grid = NULL;
    pthread_mutex_unlock(&crew->lock);
    free(blocks);
    return HEM_OK;
}

void hemi_standin_crew_end(hemi_standin_crew *crew) {
    pthread_mutex_lock(&crew->lock);
    crew->end = true;
    hemi_standin_bell_ring(&crew->start);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->size; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_mutex_destroy(&crew->lock);
}
