#include "core/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long an onlooker waits for a record that is being written: up to 20 ms. */
#define TRIES  1000
#define NAPS   20
#define NAP_NS 1000000

static const char *const call_names[HEMI_CALL_COUNT] = {
    [HEMI_CALL_NONE] = "nothing",
    [HEMI_CALL_OPEN] = "hem_world_open",
    [HEMI_CALL_CLOSE] = "hem_world_close",
    [HEMI_CALL_SPLIT] = "hem_world_split",
    [HEMI_CALL_SHRINK] = "hem_world_shrink",
    [HEMI_CALL_WINDOW_CREATE] = "hem_window_create",
    [HEMI_CALL_WINDOW_DESTROY] = "hem_window_destroy",
    [HEMI_CALL_WAIT_SIGNAL] = "hem_wait_signal",
    [HEMI_CALL_WAIT_SIGNAL_FROM] = "hem_wait_signal_from",
    [HEMI_CALL_WAIT_SIGNAL_ANY] = "hem_wait_signal_any",
    [HEMI_CALL_WAIT_COUNTER] = "hem_wait_counter",
    [HEMI_CALL_BARRIER] = "hem_barrier",
    [HEMI_CALL_BARRIER_PEER] = "hem_barrier_peer",
    [HEMI_CALL_FLUSH] = "hem_flush",
    [HEMI_CALL_OP_WAIT] = "hem_op_wait_any",
    [HEMI_CALL_COLL] = "a collective",
    [HEMI_CALL_COLL + 1] = "hem_sync",
    [HEMI_CALL_COLL + 2] = "hem_broadcast",
    [HEMI_CALL_COLL + 3] = "hem_reduce",
    [HEMI_CALL_COLL + 4] = "hem_allreduce",
    [HEMI_CALL_COLL + 5] = "hem_allgather",
    [HEMI_CALL_COLL + 6] = "hem_allgatherv",
    [HEMI_CALL_COLL + 7] = "hem_reduce_scatter",
    [HEMI_CALL_COLL + 8] = "hem_reduce_scatterv",
    [HEMI_CALL_COLL + 9] = "hem_gather",
    [HEMI_CALL_COLL + 10] = "hem_gatherv",
    [HEMI_CALL_COLL + 11] = "hem_scatter",
    [HEMI_CALL_COLL + 12] = "hem_scatterv",
    [HEMI_CALL_COLL + 13] = "hem_alltoall",
    [HEMI_CALL_COLL + 14] = "hem_alltoallv",
    [HEMI_CALL_SPARSE] = "hem_sparse",
    [HEMI_CALL_SEND] = "hem_send",
    [HEMI_CALL_RECV] = "hem_recv",
    [HEMI_CALL_SENDRECV] = "hem_sendrecv",
    [HEMI_CALL_CHANNEL_PREPARE] = "hem_channel_prepare",
    [HEMI_CALL_PATTERN_GRID] = "hem_pattern_grid",
    [HEMI_CALL_PATTERN_MESH] = "hem_pattern_mesh",
    [HEMI_CALL_PATTERN_SPHERE] = "hem_pattern_sphere",
    [HEMI_CALL_PATTERN_EXPLICIT] = "hem_pattern_explicit",
    [HEMI_CALL_PATTERN_VALIDATE] = "hem_pattern_validate",
    [HEMI_CALL_PATTERN_DRAW] = "hem_pattern_draw",
    [HEMI_CALL_EXCHANGE_CREATE] = "hem_exchange_create",
    [HEMI_CALL_EXCHANGE] = "hem_exchange_finish",
    [HEMI_CALL_LINE_CREATE] = "hem_line_create",
    [HEMI_CALL_LINE] = "hem_line_exchange",
    [HEMI_CALL_REACH_PLAN] = "hem_reach_plan",
    [HEMI_CALL_REACH] = "hem_reach_run",
    [HEMI_CALL_STREAM_SYNC] = "hem_stream_sync",
    [HEMI_CALL_EVENT_SYNC] = "hem_event_sync",
    [HEMI_CALL_PIPE_CREATE] = "hem_pipe_create",
    [HEMI_CALL_PIPE_DESTROY] = "hem_pipe_destroy",
    [HEMI_CALL_COLL_PLAN] = "hem_coll_plan",
    [HEMI_CALL_KERNEL] = "a kernel",
    [HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL_FROM] = "hem_dev_wait_signal_from",
    [HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL] = "hem_dev_wait_signal",
    [HEMI_CALL_KERNEL + HEMD_WHAT_COUNTER] = "hem_dev_wait_counter",
    [HEMI_CALL_KERNEL + HEMD_WHAT_BARRIER] = "hem_dev_barrier",
    [HEMI_CALL_KERNEL + HEMD_WHAT_BARRIER_PEER] = "hem_dev_barrier_peer",
    [HEMI_CALL_KERNEL + HEMD_WHAT_STAMPED] = "hem_dev_take_stamped",
    [HEMI_CALL_KERNEL + HEMD_WHAT_ROOM] = "hem_dev_put",
    [HEMI_CALL_KERNEL + HEMD_WHAT_SEND] = "hem_pipe_sendrecv (send)",
    [HEMI_CALL_KERNEL + HEMD_WHAT_RECV] = "hem_pipe_sendrecv (recv)",
    [HEMI_CALL_KERNEL + HEMD_WHAT_HALO_START] = "hem_exchange_start_on",
    [HEMI_CALL_KERNEL + HEMD_WHAT_HALO_FINISH] = "hem_exchange_finish_on",
    [HEMI_CALL_KERNEL + HEMD_WHAT_COLL] = "hem_op_start_on",
    [HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_START] = "hem_exchange_start_on (engines)",
    [HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_FINISH] = "hem_exchange_finish_on (engines)",
};

const char *hemi_call_name(uint32_t call) {
    return call < HEMI_CALL_COUNT ? call_names[call] : "a call of a newer version";
}

static uint64_t offset_of(const hemi_arena *arena, const void *word) {
    return word == NULL ? 0 : (uint64_t)((const unsigned char *)word - arena->base);
}

/* Every member is stored atomically: an onlooker may read at any moment. */
static void write_begin(hemi_flight *flight) {
    hemi_add32_acq_rel(&flight->seq, 1);
}

static void write_end(hemi_flight *flight) {
    /* Pairs with the acquire in hemi_flight_read. */
    hemi_add32_acq_rel(&flight->seq, 1);
}

hemi_flight *hemi_flight_enter(const hemi_arena *arena, uint32_t root_rank,
                               const hemi_flight_note *note, uint64_t now_ns) {
    hemi_rank_block *block = hemi_arena_rank(arena, root_rank);
    for (uint32_t i = 0; i < HEMI_FLIGHTS; i++) {
        hemi_flight *flight = &block->flights[i];
        uint32_t free_slot = 0;
        if (!hemi_cas32_acq_rel(&flight->owner, &free_slot, 1))
            continue;
        write_begin(flight);
        hemi_store32_relaxed(&flight->call, note->call);
        hemi_store32_relaxed((uint32_t *)&flight->peer, (uint32_t)note->peer);
        hemi_store32_relaxed(&flight->id, note->id);
        hemi_store32_relaxed(&flight->compare, note->compare);
        hemi_store64_relaxed(&flight->wanted, note->wanted);
        hemi_store64_relaxed(&flight->word, offset_of(arena, note->word));
        hemi_store64_relaxed(&flight->window, note->window);
        hemi_store64_relaxed(&flight->world, note->world);
        hemi_store64_relaxed(&flight->since_ns, now_ns);
        hemi_store64_relaxed(&flight->fingerprint, note->fingerprint);
        write_end(flight);
        return flight;
    }
    return NULL;
}

void hemi_flight_update(const hemi_arena *arena, hemi_flight *flight, int32_t peer,
                        const void *word, uint64_t wanted) {
    if (flight == NULL)
        return;
    write_begin(flight);
    hemi_store32_relaxed((uint32_t *)&flight->peer, (uint32_t)peer);
    hemi_store64_relaxed(&flight->word, offset_of(arena, word));
    hemi_store64_relaxed(&flight->wanted, wanted);
    write_end(flight);
}

void hemi_flight_leave(hemi_flight *flight) {
    if (flight == NULL)
        return;
    write_begin(flight);
    hemi_store32_relaxed(&flight->call, HEMI_CALL_NONE);
    write_end(flight);
    /* Pairs with the compare-and-swap of the next thread that takes the slot. */
    hemi_store32_release(&flight->owner, 0);
}

/* Acquiring loads keep the second look at `seq` behind them. */
static void copy_members(const hemi_flight *from, hemi_flight *copy_p) {
    copy_p->call = hemi_load32_acquire(&from->call);
    copy_p->peer = (int32_t)hemi_load32_acquire((const uint32_t *)&from->peer);
    copy_p->id = hemi_load32_acquire(&from->id);
    copy_p->compare = hemi_load32_acquire(&from->compare);
    copy_p->wanted = hemi_load64_acquire(&from->wanted);
    copy_p->word = hemi_load64_acquire(&from->word);
    copy_p->window = hemi_load64_acquire(&from->window);
    copy_p->world = hemi_load64_acquire(&from->world);
    copy_p->since_ns = hemi_load64_acquire(&from->since_ns);
    copy_p->fingerprint = hemi_load64_acquire(&from->fingerprint);
}

bool hemi_flight_read(const hemi_arena *arena, uint32_t root_rank, uint32_t slot,
                      hemi_flight *copy_p, uint64_t *seen_p) {
    const hemi_flight *flight = &hemi_arena_rank(arena, root_rank)->flights[slot];
    memset(copy_p, 0, sizeof *copy_p);
    /* A writer may be off its core just now, and one that died in the middle leaves an odd number
     * behind: some tries, some naps, then the half-written record is shown: better than none. */
    for (int i = 0; i < TRIES + NAPS; i++) {
        if (i >= TRIES)
            hemi_platform_real()->nap(NULL, NAP_NS);
        uint32_t before = hemi_load32_acquire(&flight->seq);
        copy_members(flight, copy_p);
        if ((before & 1) == 0 && hemi_load32_relaxed(&flight->seq) == before)
            break;
    }
    *seen_p = 0;
    uint64_t word = copy_p->word;
    if (word != 0 && word % sizeof(uint64_t) == 0 && word <= arena->total_bytes - sizeof(uint64_t))
        *seen_p = hemi_load64_relaxed(hemi_arena_at(arena, word));
    return copy_p->call != HEMI_CALL_NONE;
}

static const char *compare_text(uint32_t compare) {
    static const char *const signs[] = {">=", "==", "!=", ">", ">=", "<", "<="};
    return compare < sizeof signs / sizeof signs[0] ? signs[compare] : "?";
}

static const char *id_word(uint32_t call) {
    switch (call) {
    case HEMI_CALL_WAIT_SIGNAL:
    case HEMI_CALL_WAIT_SIGNAL_FROM:
    case HEMI_CALL_WAIT_SIGNAL_ANY:
    case HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL_FROM:
    case HEMI_CALL_KERNEL + HEMD_WHAT_SIGNAL:
        return "signal";
    case HEMI_CALL_WAIT_COUNTER:
    case HEMI_CALL_KERNEL + HEMD_WHAT_COUNTER:
        return "counter";
    case HEMI_CALL_BARRIER:
    case HEMI_CALL_BARRIER_PEER:
    case HEMI_CALL_KERNEL + HEMD_WHAT_BARRIER:
    case HEMI_CALL_KERNEL + HEMD_WHAT_BARRIER_PEER:
        return "barrier";
    case HEMI_CALL_SEND:
    case HEMI_CALL_RECV:
    case HEMI_CALL_SENDRECV:
    case HEMI_CALL_CHANNEL_PREPARE:
        return "channel";
    default:
        return NULL;
    }
}

/* What a kernel waits for, where it is no word that has a value. `object_p`: what it waits in. NULL: a word. */
static const char *kernel_text(const hemi_flight *flight, const char **object_p, char *text,
                               size_t size) {
    *object_p = "window";
    switch (flight->call) {
    case HEMI_CALL_KERNEL + HEMD_WHAT_STAMPED:
        snprintf(text, size, ", data with stamp %" PRIu64 " from", flight->wanted);
        return text;
    case HEMI_CALL_KERNEL + HEMD_WHAT_ROOM:
        return ", what was ordered to be done by";
    case HEMI_CALL_KERNEL + HEMD_WHAT_SEND:
    case HEMI_CALL_KERNEL + HEMD_WHAT_RECV:
        *object_p = "pipe";
        snprintf(text, size, ", %" PRIu64 " bytes %s", flight->wanted,
                 flight->call == HEMI_CALL_KERNEL + HEMD_WHAT_SEND ? "to" : "from");
        return text;
    case HEMI_CALL_KERNEL + HEMD_WHAT_HALO_START:
    case HEMI_CALL_KERNEL + HEMD_WHAT_HALO_FINISH:
    case HEMI_CALL_KERNEL + HEMD_WHAT_COLL:
        *object_p = flight->call == HEMI_CALL_KERNEL + HEMD_WHAT_COLL ? "collective" : "exchange";
        snprintf(text, size, ", run %" PRIu64 " %s", flight->wanted,
                 flight->call == HEMI_CALL_KERNEL + HEMD_WHAT_HALO_START ? "of" : "from");
        return text;
    case HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_START:
        *object_p = "exchange";
        return ", halos of";
    case HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_FINISH:
        *object_p = "exchange";
        return ", values from";
    default:
        return NULL;
    }
}

static const char *who_waits(uint32_t call) {
    if (call >= HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_START)
        return "a stream in ";
    return call > HEMI_CALL_KERNEL ? "a kernel in " : "";
}

void hemi_flight_describe(const hemi_flight *flight, uint64_t seen, uint64_t now_ns, char *text,
                          size_t size) {
    char what[96] = "";
    char whom[48] = "";
    char value[96] = "";
    char words[80];
    const char *object = NULL;
    const char *kernels = kernel_text(flight, &object, words, sizeof words);
    const char *id = id_word(flight->call);
    if (id != NULL)
        snprintf(what, sizeof what, ", %s %u", id, flight->id);
    else if (kernels != NULL)
        snprintf(what, sizeof what, "%s", kernels);
    if (flight->peer >= 0)
        snprintf(whom, sizeof whom, "%s rank %d", kernels == NULL ? " from" : "", flight->peer);
    else if (flight->call != HEMI_CALL_KERNEL + HEMD_WHAT_COUNTER)
        snprintf(whom, sizeof whom, "%s all ranks", kernels == NULL ? " from" : "");
    if (flight->word != 0)
        snprintf(value, sizeof value, ": is %" PRIu64 ", wants %s %" PRIu64, seen,
                 compare_text(flight->compare), flight->wanted);
    double seconds = now_ns > flight->since_ns ? (double)(now_ns - flight->since_ns) * 1e-9 : 0.0;
    char place[64];
    if (flight->window != 0)
        snprintf(place, sizeof place, "world %" PRIu64 ", %s %" PRIu64, flight->world, object,
                 flight->window);
    else
        snprintf(place, sizeof place, "world %" PRIu64, flight->world);
    snprintf(text, size, "%s%s: %s%s%s%s, for %.3f s", who_waits(flight->call),
             hemi_call_name(flight->call), place, what, whom, value, seconds);
}
