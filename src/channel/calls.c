/* The public calls. */
#include "channel/direct.h"
#include "device/touch.h"

#include <stdlib.h>

/* What a short message takes is expanded into its call, and nothing else is. */
#define SHORT static inline __attribute__((always_inline))
#define LONG  static __attribute__((noinline))

/* Lines of the ring that are asked for while waiting for a slot. */
#define AHEAD 8

/* In one glance: the world is well and nobody has died, arguments are good, and there is no device whose
 * memory they could be. Else look closely. */
SHORT bool is_well(const hem_world *world, int64_t timeout_ns) {
    return world != NULL && timeout_ns >= HEM_FOREVER && !hemi_device_is_asked_for(world->root) &&
           hemi_load32_acquire(&world->root->arena.head->alarm) ==
               hemi_load32_relaxed(&world->alarm_seen);
}

SHORT bool is_good(const hem_world *world, int peer, uint32_t channel, const void *data,
                   size_t bytes) {
    return (uint32_t)peer < world->size && channel < HEM_CHANNELS && (data != NULL || bytes == 0) &&
           bytes <= UINTPTR_MAX - (uintptr_t)data;
}

LONG hem_status check(hem_world *world, int peer, uint32_t channel, const void *data, size_t bytes,
                      int64_t timeout_ns, const char *call) {
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, call);
    if (status != HEM_OK)
        return status;
    if (peer < 0 || (uint32_t)peer >= world->size)
        return hemi_fail(HEM_ERR_RANGE, "%s: there is no rank %d", call, peer);
    if (channel >= HEM_CHANNELS)
        return hemi_fail(HEM_ERR_RANGE, "%s: there is no channel %u, only 0 to %d", call, channel,
                         HEM_CHANNELS - 1);
    if (!is_good(world, peer, channel, data, bytes))
        return hemi_fail(HEM_ERR_ARG, "%s: there cannot be %zu bytes at %p", call, bytes, data);
    return hemi_device_check_host(world->root, data, bytes, call,
                                  "copy it, or use a pipe (hem_pipe_sendrecv)");
}

LONG hem_status check_send(hem_world *world, int peer, uint32_t channel, const void *data,
                           size_t bytes, int64_t timeout_ns, const char *call) {
    hem_status status = check(world, peer, channel, data, bytes, timeout_ns, call);
    return status != HEM_OK ? status : hemi_world_check_peer(world, (uint32_t)peer, call);
}

/* The lane, made if it must be. Under the lock. */
static hem_status find_lane(hem_world *world, uint32_t peer, uint32_t channel, hemi_lane **lane_p) {
    *lane_p = hemi_lane_find(world, peer, channel);
    if (__builtin_expect(*lane_p != NULL, 1))
        return HEM_OK;
    hem_status status = hemi_lane_ready(world, peer, channel);
    if (status == HEM_OK)
        *lane_p = hemi_lane_find(world, peer, channel);
    return status;
}

static hem_status late(const hemi_letter *letter) {
    return hemi_fail(HEM_ERR_TIMEOUT, "%s: no message of channel %u went %s rank %u in time",
                     hemi_call_name(letter->op.call), letter->channel,
                     letter->sends ? "to" : "from", letter->peer);
}

/* Wait for a letter of a blocking call; when time is up, take it back. Another thread may have brought it to
 * its end since: then that counts, or the message would be lost. */
static hem_status finish(hem_world *world, hemi_letter *letter, int64_t timeout_ns) {
    hem_status status = hemi_engine_wait(world, &letter->op, timeout_ns);
    if (status == HEM_ERR_TIMEOUT) {
        hemi_engine_lock(world);
        if (!hemi_op_is_done(&letter->op))
            hemi_letter_cancel(letter, late(letter));
        hemi_engine_unlock(world);
        status = hemi_op_result(&letter->op);
    }
    hemi_engine_settle(world);
    return status;
}

LONG hem_status send_letter(hem_world *world, uint32_t peer, uint32_t channel, const void *data,
                            size_t bytes, int64_t timeout_ns) {
    hemi_letter letter;
    hemi_letter_fill(&letter, world, HEMI_CALL_SEND, true, peer, channel, (void *)(uintptr_t)data,
                     bytes);
    hemi_op_begin(&letter.op);
    hemi_engine_unlock(world);
    return finish(world, &letter, timeout_ns);
}

hem_status hem_send(hem_world *world, int peer, uint32_t channel, const void *data, size_t bytes,
                    int64_t timeout_ns) {
    if (!is_well(world, timeout_ns) || !is_good(world, peer, channel, data, bytes)) {
        hem_status status = check_send(world, peer, channel, data, bytes, timeout_ns, "hem_send");
        if (status != HEM_OK)
            return status;
    }
    hemi_engine_lock(world);
    hemi_lane *lane = hemi_lane_find(world, (uint32_t)peer, channel);
    if (lane == NULL || !hemi_direct_send(lane, data, bytes))
        return send_letter(world, (uint32_t)peer, channel, data, bytes, timeout_ns);
    hemi_engine_unlock(world);
    hemi_lane_wake(lane);
    return HEM_OK;
}

/* The time that is left. */
static int64_t left_of(const hem_world *world, uint64_t start, int64_t timeout_ns) {
    if (timeout_ns < 0)
        return timeout_ns;
    const hemi_platform *platform = world->root->platform;
    uint64_t gone = platform->now(platform->ctx) - start;
    return gone < (uint64_t)timeout_ns ? timeout_ns - (int64_t)gone : 0;
}

/* A slot is there that is more than a short message: go on with a letter, first in the queue. */
static hem_status go_on_with_letter(hemi_lane *lane, hemi_letter *letter, int64_t timeout_ns) {
    hem_world *world = lane->world;
    hemi_engine_lock(world);
    letter->lane = lane;
    hemi_store32_relaxed(&letter->op.state, HEMI_OP_RUNNING);
    hemi_queue_prepend(&lane->rx.queue, letter);
    hemi_store32_release(&lane->rx.busy, 0);
    hemi_engine_list(world, &lane->task);
    hemi_engine_unlock(world);
    return finish(world, letter, timeout_ns);
}

/*
 * Poll as long as a wait would before it looks at the clock. If the message is not a short one, it
 * lies where the ring goes on, most likely; having asked for those lines in every round lets them
 * come together with the slot, not after it (64 bytes: 0.38, not 0.51 us between distant cores).
 */
SHORT bool spin(const hemi_lane *lane) {
    const hem_world *world = lane->world;
    const hemi_track *track = &lane->rx.cursor.track;
    const unsigned char *next = track->ring + track->ring_at;
    for (uint32_t i = world->root->spin; i > 0; i--) {
        if (hemi_rx_ready(&lane->rx.cursor))
            return true;
        if (hemi_load32_relaxed(&world->engine.listed) != 0)
            return false; /* there is other work as well */
        for (size_t line = 0; line < AHEAD; line++)
            __builtin_prefetch(next + line * HEMI_LINE);
        hemi_pause();
    }
    return false;
}

/* Receive on a lane that is claimed, the slot not being there yet or not being short. */
LONG hem_status receive_slowly(hemi_lane *lane, uint32_t call, void *data, size_t room,
                               size_t *bytes_p, int64_t timeout_ns) {
    hem_world *world = lane->world;
    const hemi_platform *platform = world->root->platform;
    uint64_t start = timeout_ns > 0 ? platform->now(platform->ctx) : 0;
    hem_status status = hemi_direct_wait(lane, call, timeout_ns);
    if (status == HEM_OK && hemi_direct_take(lane, data, room, bytes_p)) {
        hemi_direct_release(lane);
        hemi_lane_wake(lane);
        return HEM_OK;
    }
    hemi_letter letter;
    hemi_letter_fill(&letter, world, call, false, lane->peer, lane->channel, data, room);
    if (status == HEM_OK) {
        status = go_on_with_letter(lane, &letter, left_of(world, start, timeout_ns));
        if (status == HEM_OK)
            *bytes_p = letter.op.bytes;
        return status;
    }
    hemi_direct_release(lane);
    return status == HEM_ERR_TIMEOUT ? late(&letter) : status;
}

/* Receive on a lane that is claimed. */
SHORT hem_status receive(hemi_lane *lane, uint32_t call, void *data, size_t room, size_t *bytes_p,
                         int64_t timeout_ns) {
    if (!spin(lane) || !hemi_direct_take(lane, data, room, bytes_p))
        return receive_slowly(lane, call, data, room, bytes_p, timeout_ns);
    hemi_direct_release(lane);
    hemi_lane_wake(lane);
    return HEM_OK;
}

LONG hem_status recv_letter(hem_world *world, uint32_t peer, uint32_t channel, void *data,
                            size_t room, size_t *bytes_p, int64_t timeout_ns) {
    hemi_letter letter;
    hemi_letter_fill(&letter, world, HEMI_CALL_RECV, false, peer, channel, data, room);
    hemi_op_begin(&letter.op);
    hemi_engine_unlock(world);
    hem_status status = finish(world, &letter, timeout_ns);
    if (status == HEM_OK)
        *bytes_p = letter.op.bytes;
    return status;
}

hem_status hem_recv(hem_world *world, int peer, uint32_t channel, void *data, size_t room,
                    size_t *bytes_p, int64_t timeout_ns) {
    size_t bytes = 0;
    hem_status status = HEM_OK;
    if (!is_well(world, timeout_ns) || !is_good(world, peer, channel, data, room))
        status = check(world, peer, channel, data, room, timeout_ns, "hem_recv");
    if (status != HEM_OK)
        return status;
    hemi_engine_lock(world);
    hemi_lane *lane = NULL;
    status = find_lane(world, (uint32_t)peer, channel, &lane);
    if (status != HEM_OK) {
        hemi_engine_unlock(world);
        return status;
    }
    if (hemi_direct_claim(lane)) {
        hemi_engine_unlock(world);
        status = receive(lane, HEMI_CALL_RECV, data, room, &bytes, timeout_ns);
    } else {
        status = recv_letter(world, (uint32_t)peer, channel, data, room, &bytes, timeout_ns);
    }
    if (status == HEM_OK && bytes_p != NULL)
        *bytes_p = bytes;
    return status;
}

/* Both halves as letters. Under the lock, which it gives back. */
LONG hem_status exchange(hem_world *world, uint32_t channel, const hem_message *send,
                         hem_message *recv, int64_t timeout_ns) {
    hemi_letter out;
    hemi_letter in;
    const hemi_platform *platform = world->root->platform;
    uint64_t start = timeout_ns > 0 ? platform->now(platform->ctx) : 0;
    hemi_letter_fill(&in, world, HEMI_CALL_SENDRECV, false, (uint32_t)recv->peer, channel,
                     recv->data, recv->bytes);
    hemi_letter_fill(&out, world, HEMI_CALL_SENDRECV, true, (uint32_t)send->peer, channel,
                     send->data, send->bytes);
    hemi_op_begin(&out.op);
    hemi_op_begin(&in.op);
    hemi_engine_unlock(world);
    hem_status status = finish(world, &in, timeout_ns);
    hem_status sent = finish(world, &out, left_of(world, start, timeout_ns));
    if (status == HEM_OK)
        recv->bytes = in.op.bytes;
    return status != HEM_OK ? hemi_op_result(&in.op) : sent;
}

static hem_status check_halves(hem_world *world, uint32_t channel, const hem_message *send,
                               const hem_message *recv, int64_t timeout_ns) {
    static const char call[] = "hem_sendrecv";
    hem_status status = hemi_engine_check(world, call);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, call);
    if (status == HEM_OK && recv != NULL)
        status = check(world, recv->peer, channel, recv->data, recv->bytes, timeout_ns, call);
    if (status == HEM_OK && send != NULL)
        status = check_send(world, send->peer, channel, send->data, send->bytes, timeout_ns, call);
    return status;
}

/* Both halves are there, and good. */
SHORT hem_status send_and_receive(hem_world *world, uint32_t channel, const hem_message *send,
                                  hem_message *recv, int64_t timeout_ns) {
    hemi_engine_lock(world);
    hemi_lane *out = hemi_lane_find(world, (uint32_t)send->peer, channel);
    hemi_lane *in = hemi_lane_find(world, (uint32_t)recv->peer, channel);
    if (__builtin_expect(out == NULL || in == NULL, 0) || !hemi_direct_claim(in))
        return exchange(world, channel, send, recv, timeout_ns);
    if (!hemi_direct_send(out, send->data, send->bytes)) {
        hemi_store32_relaxed(&in->rx.busy, 0);
        return exchange(world, channel, send, recv, timeout_ns);
    }
    hemi_engine_unlock(world);
    hemi_lane_wake(out);
    return receive(in, HEMI_CALL_SENDRECV, recv->data, recv->bytes, &recv->bytes, timeout_ns);
}

/* With a look at everything, and perhaps with one half only. */
LONG hem_status sendrecv_closely(hem_world *world, uint32_t channel, const hem_message *send,
                                 hem_message *recv, int64_t timeout_ns) {
    if (send != NULL && send->peer < 0)
        send = NULL;
    if (recv != NULL && recv->peer < 0)
        recv = NULL;
    hem_status status = check_halves(world, channel, send, recv, timeout_ns);
    if (status != HEM_OK)
        return status;
    if (send != NULL && recv != NULL)
        return send_and_receive(world, channel, send, recv, timeout_ns);
    if (send != NULL)
        return hem_send(world, send->peer, channel, send->data, send->bytes, timeout_ns);
    if (recv != NULL)
        return hem_recv(world, recv->peer, channel, recv->data, recv->bytes, &recv->bytes,
                        timeout_ns);
    return HEM_OK;
}

hem_status hem_sendrecv(hem_world *world, uint32_t channel, const hem_message *send,
                        hem_message *recv, int64_t timeout_ns) {
    if (__builtin_expect(send == NULL || recv == NULL || !is_well(world, timeout_ns) ||
                             !is_good(world, send->peer, channel, send->data, send->bytes) ||
                             !is_good(world, recv->peer, channel, recv->data, recv->bytes),
                         0))
        return sendrecv_closely(world, channel, send, recv, timeout_ns);
    return send_and_receive(world, channel, send, recv, timeout_ns);
}

static hem_status make(hem_world *world, bool sends, int peer, uint32_t channel, void *data,
                       size_t bytes, bool persistent, hem_op **op_p) {
    uint32_t number = sends ? HEMI_CALL_SEND : HEMI_CALL_RECV;
    const char *call = hemi_call_name(number);
    hem_status status = sends ? check_send(world, peer, channel, data, bytes, HEM_FOREVER, call)
                              : check(world, peer, channel, data, bytes, HEM_FOREVER, call);
    if (status == HEM_OK && op_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: op_p is NULL", call);
    if (status != HEM_OK)
        return status;
    hemi_letter *letter = calloc(1, sizeof *letter);
    if (letter == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for an operation", call);
    hemi_letter_fill(letter, world, number, sends, (uint32_t)peer, channel, data, bytes);
    hemi_engine_lock(world);
    status = find_lane(world, (uint32_t)peer, channel, &letter->lane);
    if (status != HEM_OK) {
        hemi_engine_unlock(world);
        free(letter);
        return status;
    }
    hemi_op_init(&letter->op, world, letter->op.type, persistent, true);
    if (!persistent)
        hemi_op_begin(&letter->op);
    hemi_engine_unlock(world);
    *op_p = &letter->op;
    hemi_engine_settle(world);
    return HEM_OK;
}

hem_status hem_send_start(hem_world *world, int peer, uint32_t channel, const void *data,
                          size_t bytes, hem_op **op_p) {
    return make(world, true, peer, channel, (void *)(uintptr_t)data, bytes, false, op_p);
}

hem_status hem_recv_start(hem_world *world, int peer, uint32_t channel, void *data, size_t room,
                          hem_op **op_p) {
    return make(world, false, peer, channel, data, room, false, op_p);
}

hem_status hem_send_plan(hem_world *world, int peer, uint32_t channel, const void *data,
                         size_t bytes, hem_op **op_p) {
    return make(world, true, peer, channel, (void *)(uintptr_t)data, bytes, true, op_p);
}

hem_status hem_recv_plan(hem_world *world, int peer, uint32_t channel, void *data, size_t room,
                         hem_op **op_p) {
    return make(world, false, peer, channel, data, room, true, op_p);
}
