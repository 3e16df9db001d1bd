/*
 * What a rank's host does for kernels that cannot do it themselves: a thread goes round all chores.
 *
 * Kernels ring no bell, so it has to look. While there is something to do, and a little longer, it
 * looks all the time; then it naps between looks, and longer when nothing has come for a while.
 */
#include "device/room.h"

#include "base/lock.h"

#include <signal.h>

/* Rounds in vain before it naps, and how long it does. */
#define EAGER      200u
#define NAP_NS     20000
#define NAP_MAX_NS 160000

static bool go_round(hemi_device_room *room) {
    hemi_chores *c = &room->chores;
    bool worked = false;
    hemi_lock(room->root->platform, &c->lock);
    for (hemi_chore *chore = c->first; chore != NULL; chore = chore->next)
        worked = chore->work(chore) || worked;
    hemi_unlock(&c->lock);
    return worked;
}

/* Also after a round with work: somebody may wait for the lock. */
static void rest(const hemi_platform *platform, uint32_t vain) {
    if (vain < EAGER)
        platform->yield(platform->ctx);
    else
        platform->nap(platform->ctx, vain < 2 * EAGER ? NAP_NS : NAP_MAX_NS);
}

static void *run(void *arg) {
    hemi_device_room *room = arg;
    uint32_t vain = 0;
    /* Pairs with the release in hemi_chores_close. */
    while (hemi_load32_acquire(&room->chores.order) == 0) {
        bool worked = go_round(room);
        vain = worked ? 0 : vain < 2 * EAGER ? vain + 1 : vain;
        rest(room->root->platform, vain);
    }
    return NULL;
}

/* Signals are for the program's own threads. Under the lock. */
static hem_status start(hemi_device_room *room) {
    sigset_t all;
    sigset_t before;
    if (room->chores.running)
        return HEM_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&room->chores.thread, NULL, run, room);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return hemi_fail_errno(error, "no thread could be made that does what kernels order");
    room->chores.running = true;
    return HEM_OK;
}

hem_status hemi_chore_begin(hemi_root *root, hemi_chore *chore) {
    hemi_device_room *room = root->device;
    hemi_chores *c = &room->chores;
    hemi_lock(root->platform, &c->lock);
    hem_status status =
        c->closed ? hemi_fail(HEM_ERR_CLOSED, "the rank has ended: it does nothing") : start(room);
    if (status == HEM_OK) {
        chore->next = c->first;
        c->first = chore;
    }
    hemi_unlock(&c->lock);
    return status;
}

void hemi_chore_end(hemi_root *root, hemi_chore *chore) {
    hemi_chores *c = &root->device->chores;
    hemi_lock(root->platform, &c->lock);
    hemi_chore **link = &c->first;
    while (*link != NULL && *link != chore)
        link = &(*link)->next;
    if (*link != NULL)
        *link = chore->next;
    hemi_unlock(&c->lock);
}

void hemi_chores_close(hemi_device_room *room) {
    hemi_chores *c = &room->chores;
    hemi_lock(room->root->platform, &c->lock);
    bool running = c->running;
    c->closed = true;
    c->running = false;
    hemi_unlock(&c->lock);
    if (!running)
        return;
    hemi_store32_release(&c->order, 1);
    pthread_join(c->thread, NULL);
}
