/*
 * Telling kernels of trouble. A kernel that waits looks at words in pinned host memory now and then;
 * this raises them when a rank dies or leaves and when the world is revoked or closed.
 *
 * How this works. The thread reads the alarm count, looks at every world that is watched, and parks
 * while the count is what it was. Whoever has something to tell changes the word that says it, then
 * counts the alarm up, then wakes (hemi_liveness_count). So either the look finds it or the thread
 * does not park. Words go from 0 to a status and stay.
 *
 * Words lie in pinned memory of the library's own, which is shared: a fork of the program does not give
 * this process another page than the one that the device has pinned. To end a trouble unpins nothing.
 */
#include "device/room.h"

#include "base/lock.h"

#include <hem/device/types.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* How long who ends the thread naps between looks. */
#define NAP_NS 20000

struct hemi_trouble {
    hemi_trouble *next;
    hemi_device_room *room;
    const hem_world *world;
    uint32_t *words;
    uint32_t *device; /* where kernels see them */
    uint64_t object;  /* to people */
    hemi_pinned pinned;
};

/* The first reason stays. Under the lock; kernels read. */
static void raise_word(uint32_t *word, hem_status status) {
    if (hemi_load32_relaxed(word) == 0)
        hemi_store32_release(word, (uint32_t) - (int)status);
}

static void look_at(hemi_trouble *trouble) {
    const hem_world *world = trouble->world;
    bool some = false;
    if (hemi_load32_acquire(&world->team->revoked) != 0)
        raise_word(&trouble->words[HEMD_TROUBLE_ALL], HEM_ERR_REVOKED);
    for (uint32_t r = 0; r < world->size; r++) {
        if (r == world->rank || hemi_world_may_come(world, r))
            continue;
        raise_word(&trouble->words[HEMD_TROUBLE_RANKS + r], HEM_ERR_PEER);
        some = true;
    }
    /* After the ranks: who sees this looks at theirs. */
    if (some)
        hemi_store32_release(&trouble->words[HEMD_TROUBLE_SOME], 1);
}

static void *watch(void *arg) {
    hemi_device_room *room = arg;
    hemi_watch *w = &room->watch;
    const hemi_platform *platform = room->root->platform;
    uint32_t *alarm = &room->root->arena.head->alarm;
    for (;;) {
        /* Pairs with the count in hemi_liveness_count. */
        uint32_t seen = hemi_load32_acquire(alarm);
        /* Pairs with the release in stop. */
        if (hemi_load32_acquire(&w->order) != 0)
            break;
        hemi_lock(platform, &w->lock);
        for (hemi_trouble *t = w->troubles; t != NULL; t = t->next)
            look_at(t);
        hemi_unlock(&w->lock);
        platform->park(platform->ctx, alarm, seen, -1);
    }
    hemi_store32_release(&w->ended, 1);
    return NULL;
}

/* Signals are for the program's own threads. Under the lock. */
static hem_status start(hemi_device_room *room) {
    sigset_t all;
    sigset_t before;
    if (room->watch.running)
        return HEM_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&room->watch.thread, NULL, watch, room);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return hemi_fail_errno(error, "no thread could be made that tells kernels of dead ranks");
    room->watch.running = true;
    return HEM_OK;
}

/* The count does not change, so the thread may park just after a wake: it is woken until it ends. */
static void stop(hemi_device_room *room) {
    hemi_watch *w = &room->watch;
    const hemi_platform *platform = room->root->platform;
    hemi_store32_release(&w->order, 1);
    for (;;) {
        platform->wake(platform->ctx, &room->root->arena.head->alarm);
        if (hemi_load32_acquire(&w->ended) != 0)
            break;
        platform->nap(platform->ctx, NAP_NS);
    }
    pthread_join(w->thread, NULL);
}

/* What onlookers need of the note besides what kernels say. */
static void name_note(const hemi_trouble *trouble) {
    const hem_world *world = trouble->world;
    hemd_note *note = (hemd_note *)(void *)&trouble->words[HEMD_TROUBLE_NOTE];
    hemi_store64_relaxed(&note->world, world->id);
    hemi_store64_relaxed(&note->object, trouble->object);
    hemi_store64_relaxed(&note->size, world->size);
    for (uint32_t r = 0; r < world->size; r++)
        hemi_store32_relaxed(&trouble->words[HEMD_TROUBLE_RANKS + world->size + r],
                             world->members[r]);
}

/* The rank's words where onlookers find them, or not any more. Under the lock. */
static void show_note(const hemi_trouble *trouble, bool there) {
    hemi_root *root = trouble->room->root;
    uint64_t *notes = hemi_arena_rank(&root->arena, root->rank)->notes;
    const uint64_t offset = trouble->pinned.offset;
    for (uint32_t i = 0; i < HEMI_NOTES; i++) {
        if (hemi_load64_relaxed(&notes[i]) != (there ? 0 : offset))
            continue;
        /* Pairs with the acquire in hemi_note_seq. */
        hemi_store64_release(&notes[i], there ? offset : 0);
        return;
    }
}

static hem_status make_words(hemi_trouble *trouble) {
    hemi_root *root = trouble->room->root;
    uint64_t bytes = (HEMD_TROUBLE_RANKS + 2 * (uint64_t)trouble->world->size) * sizeof(uint32_t);
    void *address = NULL;
    hem_status status = hemi_device_pinned_alloc(root, bytes, &trouble->pinned);
    if (status == HEM_OK)
        status = hemi_device_pinned_see(root, root->rank, &trouble->pinned, &address);
    if (status != HEM_OK)
        return status;
    trouble->words = hemi_arena_at(&root->arena, trouble->pinned.offset);
    trouble->device = address;
    name_note(trouble);
    return HEM_OK;
}

static hem_status begin(hemi_trouble *trouble) {
    hemi_watch *w = &trouble->room->watch;
    hemi_lock(trouble->room->root->platform, &w->lock);
    hem_status status = w->closed
                            ? hemi_fail(HEM_ERR_CLOSED, "the rank has ended: nothing is watched")
                            : start(trouble->room);
    if (status == HEM_OK) {
        trouble->next = w->troubles;
        w->troubles = trouble;
        show_note(trouble, true);
        /* What has happened already is not told again. */
        look_at(trouble);
    }
    hemi_unlock(&w->lock);
    return status;
}

hem_status hemi_trouble_watch(hem_world *world, uint64_t object, hemi_trouble **trouble_p,
                              uint32_t **device_p) {
    hemi_device *device = NULL;
    hem_status status = hemi_device_get(world->root, &device);
    if (status != HEM_OK)
        return status;
    hemi_trouble *trouble = calloc(1, sizeof *trouble);
    if (trouble == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to watch a world");
    trouble->room = world->root->device;
    trouble->world = world;
    trouble->object = object;
    status = make_words(trouble);
    if (status == HEM_OK)
        status = begin(trouble);
    if (status != HEM_OK) {
        hemi_device_pinned_free(world->root, &trouble->pinned);
        free(trouble);
        return status;
    }
    *trouble_p = trouble;
    *device_p = trouble->device;
    return HEM_OK;
}

uint32_t *hemi_trouble_words(hemi_trouble *trouble) {
    return trouble->words;
}

static void unlist(hemi_watch *w, const hemi_trouble *trouble) {
    hemi_trouble **link = &w->troubles;
    while (*link != trouble)
        link = &(*link)->next;
    *link = trouble->next;
}

void hemi_trouble_end(hemi_trouble *trouble, bool closed) {
    if (trouble == NULL)
        return;
    hemi_watch *w = &trouble->room->watch;
    hemi_lock(trouble->room->root->platform, &w->lock);
    unlist(w, trouble);
    show_note(trouble, false);
    if (closed)
        raise_word(&trouble->words[HEMD_TROUBLE_ALL], HEM_ERR_CLOSED);
    hemi_unlock(&w->lock);
    /* Otherwise nobody knows when the kernels have seen it: the words stay as long as the chunk. */
    if (!closed)
        hemi_device_pinned_free(trouble->room->root, &trouble->pinned);
    free(trouble);
}

void hemi_watch_close(hemi_device_room *room) {
    hemi_watch *w = &room->watch;
    hemi_lock(room->root->platform, &w->lock);
    bool running = w->running;
    w->closed = true;
    w->running = false;
    for (hemi_trouble *t = w->troubles; t != NULL; t = t->next)
        raise_word(&t->words[HEMD_TROUBLE_ALL], HEM_ERR_CLOSED);
    hemi_unlock(&w->lock);
    if (running)
        stop(room);
}

/* Nobody ends any of them after the root has gone. */
void hemi_watch_free(hemi_device_room *room) {
    while (room->watch.troubles != NULL) {
        hemi_trouble *t = room->watch.troubles;
        room->watch.troubles = t->next;
        free(t);
    }
}
