/*
 * The progress thread of a world. One word says what it is to do, and the thread answers in another;
 * it sleeps on its rank's doorbell like any waiter, so that whatever wakes a wait wakes it, too.
 */
#include "core/engine.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* How long a caller naps while it waits for the thread's answer. */
#define NAP_NS 20000

enum order {
    ORDER_RUN = 1,
    ORDER_PAUSE,
    ORDER_STOP
};

struct hemi_worker {
    hem_world *world;
    pthread_t thread;
    uint32_t order;  /* what it is to do; written by callers under the engine's lock */
    uint32_t answer; /* the order that it has taken note of */
};

static hem_status poll_work(void *arg) {
    const struct hemi_worker *w = arg;
    /* Pairs with the release in give_order. */
    if (hemi_load32_acquire(&w->order) != ORDER_RUN)
        return HEM_OK;
    hemi_engine_progress(w->world);
    return HEMI_AGAIN;
}

static hem_status doomed_work(void *arg) {
    const struct hemi_worker *w = arg;
    hemi_engine_inspect(w->world);
    return HEM_OK;
}

static hem_status poll_pause(void *arg) {
    const struct hemi_worker *w = arg;
    return hemi_load32_acquire(&w->order) != ORDER_PAUSE ? HEM_OK : HEMI_AGAIN;
}

static void *work(void *arg) {
    struct hemi_worker *w = arg;
    hemi_wait_for running = {.poll = poll_work,
                             .doomed = doomed_work,
                             .arg = w,
                             .also_revoked = true,
                             .note = {.call = HEMI_CALL_NONE, .peer = -1, .world = w->world->id}};
    hemi_wait_for paused = running;
    paused.poll = poll_pause;
    paused.doomed = NULL;
    for (;;) {
        uint32_t order = hemi_load32_acquire(&w->order);
        /* Pairs with the acquire in give_order: it is out of everything else. */
        hemi_store32_release(&w->answer, order);
        if (order == ORDER_STOP)
            return NULL;
        hem_status status = order == ORDER_RUN
                                ? hemi_engine_wait_until(w->world, &running, HEM_FOREVER)
                                : hemi_wait(w->world, &paused, HEM_FOREVER);
        (void)status; /* only an order ends either */
    }
}

static void give_order(struct hemi_worker *w, uint32_t order) {
    const hemi_root *root = w->world->root;
    const hemi_platform *platform = root->platform;
    hemi_store32_release(&w->order, order);
    hemi_wake(root, root->me);
    while (hemi_load32_acquire(&w->answer) != order && hemi_load32_relaxed(&w->order) == order)
        platform->nap(platform->ctx, NAP_NS);
}

/* Signals are for the program's own threads. */
static int start_thread(struct hemi_worker *w) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

hem_status hem_progress_start(hem_world *world) {
    hem_status status = hemi_engine_check(world, "hem_progress_start");
    if (status != HEM_OK)
        return status;
    struct hemi_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a progress thread");
    w->world = world;
    w->order = ORDER_RUN;
    hemi_engine_lock(world);
    int error = 0;
    if (world->engine.worker != NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_progress_start: there is a progress thread already");
    else if ((error = start_thread(w)) != 0)
        status = hemi_fail_errno(error, "hem_progress_start: no thread could be made");
    else
        __atomic_store_n(&world->engine.worker, w, __ATOMIC_RELEASE);
    hemi_engine_unlock(world);
    if (status != HEM_OK)
        free(w);
    return status;
}

/* The thread, if it may be told from here what to do. */
static hem_status find(hem_world *world, const char *call, struct hemi_worker **w_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: world is NULL", call);
    hemi_engine_lock(world);
    *w_p = world->engine.worker;
    hemi_engine_unlock(world);
    if (*w_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: there is no progress thread", call);
    if (pthread_equal((*w_p)->thread, pthread_self()))
        return hemi_fail(HEM_ERR_ARG, "%s: called from the progress thread", call);
    return HEM_OK;
}

hem_status hem_progress_pause(hem_world *world) {
    struct hemi_worker *w = NULL;
    hem_status status = find(world, "hem_progress_pause", &w);
    if (status == HEM_OK)
        give_order(w, ORDER_PAUSE);
    return status;
}

hem_status hem_progress_resume(hem_world *world) {
    struct hemi_worker *w = NULL;
    hem_status status = find(world, "hem_progress_resume", &w);
    if (status == HEM_OK)
        give_order(w, ORDER_RUN);
    return status;
}

hem_status hem_progress_stop(hem_world *world) {
    struct hemi_worker *w = NULL;
    hem_status status = find(world, "hem_progress_stop", &w);
    if (status == HEM_OK)
        hemi_worker_stop(world);
    return status;
}

void hemi_worker_stop(hem_world *world) {
    /* Also called for a rank that ended while it held the lock, and so had no other thread. */
    if (__atomic_load_n(&world->engine.worker, __ATOMIC_ACQUIRE) == NULL)
        return;
    hemi_engine_lock(world);
    struct hemi_worker *w = world->engine.worker;
    __atomic_store_n(&world->engine.worker, NULL, __ATOMIC_RELEASE);
    hemi_engine_unlock(world);
    if (w == NULL)
        return;
    give_order(w, ORDER_STOP);
    pthread_join(w->thread, NULL);
    free(w);
}
