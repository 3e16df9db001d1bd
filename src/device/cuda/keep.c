/*
 * Device memory that nobody needs at the moment.
 *
 * Freeing and unmapping wait until all kernels of the context have ended, and keep everybody else off
 * the device meanwhile. A kernel of another rank of this process may be waiting for what this rank
 * does next, so that it would wait for ever. Therefore memory is kept, and given out again: own memory
 * to the next who wants about as much, a peer's when the same allocation is shown again. It is really
 * freed, and then that wait takes place, when the last rank gives the context up, and when memory
 * cannot be had in any other way: better to wait than to fail.
 */
#include "base/platform.h"
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** What the ranks that share a context keep. */
struct hemi_cuda_shelf {
    struct hemi_cuda_shelf *next;
    CUcontext context;
    uint32_t users;
    hemi_cuda_piece *pieces;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hemi_cuda_shelf *shelves;
static uint64_t token; /* no other process has it */
static uint64_t created;

static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* Of two processes with the same number, in two containers, one was there earlier. */
static uint64_t make_token(void) {
    const hemi_platform *platform = hemi_platform_real();
    return mix(platform->now(platform->ctx) + mix((uint64_t)getpid())) | 1;
}

uint64_t hemi_cuda_serial(uint64_t buffer) {
    pthread_mutex_lock(&lock);
    if (token == 0)
        token = make_token();
    uint64_t value = buffer != 0 ? 2 * buffer : 2 * ++created + 1;
    uint64_t serial = mix(token + value);
    pthread_mutex_unlock(&lock);
    return serial;
}

hem_status hemi_cuda_keep_open(hemi_cuda *cuda) {
    pthread_mutex_lock(&lock);
    struct hemi_cuda_shelf *shelf = shelves;
    while (shelf != NULL && shelf->context != cuda->context)
        shelf = shelf->next;
    if (shelf == NULL) {
        shelf = calloc(1, sizeof *shelf);
        if (shelf != NULL) {
            shelf->context = cuda->context;
            shelf->next = shelves;
            shelves = shelf;
        }
    }
    if (shelf != NULL)
        shelf->users++;
    cuda->shelf = shelf;
    pthread_mutex_unlock(&lock);
    return shelf != NULL ? HEM_OK
                         : cuda->host.fail(HEM_ERR_MEMORY, "No memory for a GPU's context");
}

static void free_pieces(const hemi_cuda *cuda, hemi_cuda_piece *pieces) {
    while (pieces != NULL) {
        hemi_cuda_piece *piece = pieces;
        pieces = piece->next;
        hemi_cuda_drop(cuda, piece);
    }
}

void hemi_cuda_keep_close(hemi_cuda *cuda) {
    struct hemi_cuda_shelf *shelf = cuda->shelf;
    if (shelf == NULL)
        return;
    cuda->shelf = NULL;
    pthread_mutex_lock(&lock);
    bool last = --shelf->users == 0;
    if (last) {
        struct hemi_cuda_shelf **link = &shelves;
        while (*link != shelf)
            link = &(*link)->next;
        *link = shelf->next;
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    free_pieces(cuda, shelf->pieces);
    hemi_cuda_ipc_close_idle(cuda);
    free(shelf);
}

void hemi_cuda_keep(const hemi_cuda *cuda, hemi_cuda_piece *piece, bool again) {
    piece->again = again;
    pthread_mutex_lock(&lock);
    piece->next = cuda->shelf->pieces;
    cuda->shelf->pieces = piece;
    pthread_mutex_unlock(&lock);
}

bool hemi_cuda_keep_empty(const hemi_cuda *cuda) {
    pthread_mutex_lock(&lock);
    hemi_cuda_piece *pieces = cuda->shelf->pieces;
    cuda->shelf->pieces = NULL;
    pthread_mutex_unlock(&lock);
    bool some = pieces != NULL;
    free_pieces(cuda, pieces);
    return hemi_cuda_ipc_close_idle(cuda) || some;
}

static bool is_own(const hemi_cuda_piece *piece) {
    return piece->how == HEMI_CUDA_CREATED || piece->how == HEMI_CUDA_MALLOCED;
}

hemi_cuda_piece *hemi_cuda_keep_take_own(const hemi_cuda *cuda, uint64_t bytes) {
    hemi_cuda_piece **best = NULL;
    pthread_mutex_lock(&lock);
    for (hemi_cuda_piece **link = &cuda->shelf->pieces; *link != NULL; link = &(*link)->next) {
        const hemi_cuda_piece *piece = *link;
        /* To lose more than half of it would not be better than another allocation. */
        if (piece->again && is_own(piece) && piece->room >= bytes &&
            piece->room / 2 <= (bytes > HEMI_CUDA_ALIGN ? bytes : HEMI_CUDA_ALIGN) &&
            (best == NULL || piece->room < (*best)->room))
            best = link;
    }
    hemi_cuda_piece *taken = best != NULL ? *best : NULL;
    if (taken != NULL)
        *best = taken->next;
    pthread_mutex_unlock(&lock);
    return taken;
}

static bool is_named(const hemi_cuda_piece *piece, const hemi_device_name *name) {
    return piece->how == HEMI_CUDA_IMPORTED && piece->again && piece->kind == name->kind &&
           piece->serial == name->serial && piece->whole == name->whole;
}

hemi_cuda_piece *hemi_cuda_keep_take_import(const hemi_cuda *cuda, const hemi_device_name *name) {
    hemi_cuda_piece **link = &cuda->shelf->pieces;
    if (name->serial == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    while (*link != NULL && !is_named(*link, name))
        link = &(*link)->next;
    hemi_cuda_piece *taken = *link;
    if (taken != NULL)
        *link = taken->next;
    pthread_mutex_unlock(&lock);
    return taken;
}

static bool is_team(const hemi_cuda_piece *piece, uint64_t serial, uint64_t group, uint64_t bytes) {
    if (piece->how != HEMI_CUDA_TEAM || !piece->again)
        return false;
    if (serial != 0)
        return piece->serial == serial;
    return piece->group == group && group != 0 && piece->whole >= bytes &&
           piece->whole / 2 <= (bytes > HEMI_CUDA_ALIGN ? bytes : HEMI_CUDA_ALIGN);
}

hemi_cuda_piece *hemi_cuda_keep_take_team(const hemi_cuda *cuda, uint64_t serial, uint64_t group,
                                          uint64_t bytes) {
    hemi_cuda_piece **link = &cuda->shelf->pieces;
    pthread_mutex_lock(&lock);
    while (*link != NULL && !is_team(*link, serial, group, bytes))
        link = &(*link)->next;
    hemi_cuda_piece *taken = *link;
    if (taken != NULL)
        *link = taken->next;
    pthread_mutex_unlock(&lock);
    return taken;
}
