/*
 * How kernels wait: poll a word, relaxed; now and then look at the clock and at what the host has
 * raised; fence once at the end. A condition that holds beats every error.
 */
#ifndef HEM_DEVICE_WAIT_H
#define HEM_DEVICE_WAIT_H

#include <hem/device/copy.h>
#include <hem/device/group.h>
#include <hem/device/note.h>

/** Polls between two looks at the clock. */
#define HEMD_POLLS 64u
/**
 * Polls before the first look at what the host has raised, on a GPU a millisecond by what a poll takes,
 * and the most between two, some 20; each look comes after twice as many as the one before. It lies across the
 * bus: where hundreds of warps ask all the time, they are in the way of everything else that the GPU
 * moves (a message took 20 times as long).
 */
#if defined(__CUDACC__)
#define HEMD_POLLS_HOST      2048u
#define HEMD_POLLS_HOST_MOST 32768u
#else
#define HEMD_POLLS_HOST      HEMD_POLLS
#define HEMD_POLLS_HOST_MOST HEMD_POLLS
#endif

/** What the host says of `peer`. @return HEM_OK, or how waits that depend on it end. */
HEM_DEV hem_status hemd_trouble_of(hem_dev_window w, int peer) {
    const uint32_t *words = HEMD_FIXED64(const uint32_t *, w.home->trouble);
    return hemd_trouble_in(words, hemd_load_four_relaxed(words), peer, w.size);
}

/** Whether it is time to look at the host, after a multiple of HEMD_POLLS. */
HEM_DEV bool hemd_asks_host(uint32_t polls) {
    return polls % HEMD_POLLS_HOST_MOST == 0 ||
           (polls >= HEMD_POLLS_HOST && (polls & (polls - 1u)) == 0);
}

/** How long somebody has waited. */
typedef struct hemd_patience {
    int64_t timeout_ns;
    uint64_t start; /**< when the clock was first looked at */
    uint32_t polls;
    bool started;
} hemd_patience;

HEM_DEV hemd_patience hemd_patience_begin(int64_t timeout_ns) {
    /* Who does not want to wait at all gets an answer after one poll. */
    hemd_patience patience = {timeout_ns, 0, timeout_ns == 0 ? HEMD_POLLS_HOST - 1u : 0, false};
    return patience;
}

/** Look at the host. */
HEM_DEV hem_status hemd_patience_look(const hemd_patience *patience, hem_dev_window w, int peer,
                                      hemd_want want, uint64_t seen) {
    want.seen = seen;
    want.since_ns = patience->start;
    return hemd_look_at_host(HEMD_FIXED64(uint32_t *, w.home->trouble), peer, w.size, &want);
}

/**
 * After a poll in vain, of a wait for `peer`: `want` is what onlookers are told, and `seen` what is there.
 * @return HEM_OK to go on; else how the wait ends, unless one more poll, after this, finds what it waits
 * for.
 */
HEM_DEV hem_status hemd_patience_poll(hemd_patience *patience, hem_dev_window w, int peer,
                                      hemd_want want, uint64_t seen) {
    if (++patience->polls % HEMD_POLLS != 0) {
        hemd_relax();
        return HEM_OK;
    }
    const bool asks = hemd_asks_host(patience->polls);
    bool late = false;
    if (asks || patience->timeout_ns >= 0) {
        uint64_t now = hemd_now_ns();
        if (!patience->started) {
            patience->started = true;
            patience->start = now;
        }
        late = patience->timeout_ns >= 0 && now - patience->start >= (uint64_t)patience->timeout_ns;
    }
    hem_status status = HEM_OK;
    if (late || asks)
        status = hemd_patience_look(patience, w, peer, want, seen);
    if (status != HEM_OK)
        hemd_fence(false); /* the poll after this must not have been before */
    else if (late)
        status = HEM_ERR_TIMEOUT;
    return status;
}

/** Both words of a slot. */
HEM_DEV hemd_slot hemd_slot_load(const hemd_slot *slot) {
    hemd_slot seen;
#if defined(__CUDACC__)
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(seen.kernel), "=l"(seen.cpu)
                 : "l"(slot)
                 : "memory");
#else
    seen.kernel = hemd_load64_relaxed(&slot->kernel);
    seen.cpu = hemd_load64_relaxed(&slot->cpu);
#endif
    return seen;
}

/**
 * What came with the words of a slot, of which `seen` is known, is seen from now on. The scope of the
 * GPU is too small once that rank's CPU has had a part in it.
 */
HEM_DEV void hemd_slot_acquire(const hemd_slot *slot, hemd_slot seen, bool near) {
    hemd_acquire(&slot->kernel, near && seen.cpu == 0);
    if (seen.cpu != 0)
        hemd_acquire(&slot->cpu, false);
}

/** Wait for one slot, by one thread; `weak`: without seeing what came with it. */
HEM_DEV hem_status hemd_wait_slot(hem_dev_window w, int peer, uint32_t id, hem_compare compare,
                                  uint64_t value, int64_t timeout_ns, bool weak) {
    const hemd_slot *slot = hemd_in(&w.peers[peer], id);
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    hem_status status = HEM_OK;
    for (;;) {
        hemd_slot seen = hemd_slot_load(slot);
        if (hemd_holds(seen.kernel + seen.cpu, compare, value)) {
            if (!weak)
                hemd_slot_acquire(slot, seen, hemd_near(&w.peers[peer]));
            return HEM_OK;
        }
        if (status != HEM_OK)
            return status;
        status = hemd_patience_poll(&patience, w, peer,
                                    hemd_want_of(HEMD_WHAT_SIGNAL_FROM, peer, id, compare, value),
                                    seen.kernel + seen.cpu);
    }
}

/** The slots of all ranks added up, several loads under way. Clears *near_p unless all are near. */
HEM_DEV uint64_t hemd_sum_slots(hem_dev_window w, uint32_t id, bool *near_p) {
    uint64_t sum = 0;
    bool near = true;
    for (int first = 0; first < w.size; first += 4) {
        hemd_slot seen[4];
        HEMD_UNROLL
        for (int k = 0; k < 4; k++) {
            const hemd_peer *peer = &w.peers[first + k < w.size ? first + k : first];
            const hemd_slot *row = HEMD_FIXED64(const hemd_slot *, peer->in);
            seen[k].kernel = seen[k].cpu = 0;
            if (first + k < w.size && row != NULL) {
                seen[k] = hemd_slot_load(row + id);
                near = near && hemd_near(peer);
            }
        }
        HEMD_UNROLL
        for (int k = 0; k < 4; k++) {
            sum += seen[k].kernel + seen[k].cpu;
            near = near && seen[k].cpu == 0;
        }
    }
    *near_p = *near_p && near;
    return sum;
}

/** What came with the slots of all ranks is seen from now on. */
HEM_DEV void hemd_slots_acquire(hem_dev_window w, uint32_t id, bool near) {
#if defined(__CUDACC__)
    (void)w;
    (void)id;
    hemd_fence(near);
#else
    (void)near;
    for (int rank = 0; rank < w.size; rank++)
        if (w.peers[rank].in != NULL) {
            hemd_acquire(&hemd_in(&w.peers[rank], id)->kernel, false);
            hemd_acquire(&hemd_in(&w.peers[rank], id)->cpu, false);
        }
#endif
}

/** Wait for the sum of all slots, by one thread. */
HEM_DEV hem_status hemd_wait_sum(hem_dev_window w, uint32_t id, hem_compare compare, uint64_t value,
                                 int64_t timeout_ns) {
    hemd_patience patience = hemd_patience_begin(timeout_ns);
    hem_status status = HEM_OK;
    for (;;) {
        bool near = true;
        const uint64_t seen = hemd_sum_slots(w, id, &near);
        if (hemd_holds(seen, compare, value)) {
            hemd_slots_acquire(w, id, near);
            return HEM_OK;
        }
        if (status != HEM_OK)
            return status;
        status = hemd_patience_poll(
            &patience, w, HEMD_ANYBODY,
            hemd_want_of(HEMD_WHAT_SIGNAL, HEMD_ANYBODY, id, compare, value), seen);
    }
}

/** Wait for `peer` until a word that only grows is at least `want.wanted`, by one thread. */
HEM_DEV hem_status hemd_wait_least(hem_dev_window w, int peer, const uint64_t *word, hemd_want want,
                                   bool near, hemd_patience *patience) {
    hem_status status = HEM_OK;
    for (;;) {
        const uint64_t seen = hemd_load64_relaxed(word);
        if ((int64_t)(seen - want.wanted) >= 0)
            break;
        if (status != HEM_OK)
            return status;
        status = hemd_patience_poll(patience, w, peer, want, seen);
    }
    hemd_acquire(word, near);
    return HEM_OK;
}

/** Give the gravest status of all threads to the whole group, and wait for it. One barrier if all
 *  is good. What each has acquired is seen by all. */
HEM_DEV hem_status hemd_agree_all(hem_group group, hem_status mine) {
    if (!hem_group_any(group, mine != HEM_OK))
        return HEM_OK;
    uint32_t code = (uint32_t)-mine;
    uint32_t most = 0;
    for (uint32_t bit = 16; bit != 0; bit /= 2) {
        bool still = (code & ~(2u * bit - 1u)) == most; /* not yet known to be less */
        if (hem_group_any(group, still && (code & bit) != 0))
            most |= bit;
    }
    return (hem_status)(-(int32_t)most);
}

#endif
