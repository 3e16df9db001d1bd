#include "core/team.h"

#include <stdio.h>
#include <string.h>

/* A settle word: epoch in the upper half, the rank at fault, and the status as a positive code. */
static uint64_t settle_word(uint64_t epoch, uint32_t rank, hem_status status) {
    return epoch << 32 | (uint64_t)rank << 8 | (uint64_t)(-(int)status & 0xff);
}

typedef struct step {
    hem_world *world;
    uint64_t epoch;
    uint32_t next; /* the first member that has not been seen to publish */
} step;

static bool is_revoked(const hem_world *world) {
    return hemi_load32_acquire(&world->team->revoked) != 0;
}

static bool settled(const step *s, uint64_t *word_p) {
    *word_p = hemi_load64_acquire(&s->world->team->settle[s->epoch % 4]);
    return (*word_p >> 32) == (s->epoch & UINT32_MAX);
}

/* A member that is dead or has left, or the size of the world. */
static uint32_t find_gone(const hem_world *world) {
    uint32_t r = 0;
    while (r < world->size && hemi_world_may_come(world, r))
        r++;
    return r;
}

/* What a step is to a rank that the others left behind in it long ago, so that nobody can say any more
 * how it ended. If somebody has died, then for that reason. */
static uint64_t left_behind_word(const step *s) {
    uint32_t gone = find_gone(s->world);
    return gone < s->world->size ? settle_word(s->epoch, gone, HEM_ERR_PEER)
                                 : settle_word(s->epoch, s->world->rank, HEM_ERR_TIMEOUT);
}

/* Propose how the step ended, and return what holds. */
static uint64_t settle(const step *s, uint32_t rank, hem_status status) {
    uint64_t *word = &s->world->team->settle[s->epoch % 4];
    uint64_t mine = settle_word(s->epoch, rank, status);
    uint64_t seen = hemi_load64_acquire(word);
    do {
        int32_t ahead = (int32_t)((uint32_t)(seen >> 32) - (uint32_t)s->epoch);
        if (ahead == 0)
            return seen;
        if (ahead > 0)
            /* The others have given this step up long ago: they could not have gone on otherwise. */
            return left_behind_word(s);
    } while (!hemi_cas64_acq_rel(word, &seen, mine));
    return mine;
}

static hem_status poll_step(void *arg) {
    step *s = arg;
    while (s->next < s->world->size) {
        /* Pairs with the release of seq in publish(). */
        if (hemi_load64_acquire(&s->world->cells[s->next].seq) < s->epoch)
            break;
        s->next++;
    }
    if (s->next == s->world->size)
        return HEM_OK;
    uint64_t word = 0;
    /* Somebody else gave up. What it was is read again by the caller. */
    if (settled(s, &word) && (word & 0xff) != 0)
        return HEM_ERR_TIMEOUT;
    return HEMI_AGAIN;
}

static hem_status doomed_step(void *arg) {
    step *s = arg;
    for (uint32_t r = s->next; r < s->world->size; r++) {
        if (hemi_world_may_come(s->world, r))
            continue;
        if (hemi_load64_acquire(&s->world->cells[r].seq) >= s->epoch)
            continue;
        s->next = r;
        return HEM_ERR_PEER;
    }
    return HEM_OK;
}

static void where_step(void *arg, hemi_flight_note *note) {
    const step *s = arg;
    if (s->next >= s->world->size)
        return;
    note->peer = (int32_t)s->world->members[s->next];
    note->word = &s->world->cells[s->next].seq;
}

/* Before step e is written over e - 2: whoever may still be reading that one, and is alive. */
static hem_status poll_readers(void *arg) {
    step *s = arg;
    for (; s->next < s->world->size; s->next++) {
        const hemi_cell *cell = &s->world->cells[s->next];
        uint64_t seq = hemi_load64_acquire(&cell->seq);
        /* Pairs with the release in hemi_team_done. */
        if (seq + 2 == s->epoch && hemi_load64_acquire(&cell->heard) < seq &&
            hemi_world_may_come(s->world, s->next))
            return HEMI_AGAIN;
    }
    return HEM_OK;
}

static void await_readers(hem_world *world, uint64_t epoch, uint32_t call, int64_t timeout_ns) {
    step s = {.world = world, .epoch = epoch};
    hemi_wait_for wait = {
        .poll = poll_readers,
        .where = where_step,
        .arg = &s,
        .also_revoked = true,
        .note = {.call = call, .peer = -1, .world = world->id, .wanted = epoch},
    };
    /* One that is stopped there for that long finds out by itself: see judge(). */
    hem_status status = hemi_wait(world, &wait, timeout_ns);
    (void)status;
}

static void publish(hem_world *world, uint64_t epoch, const hemi_say *say) {
    hemi_cell *cell = &world->cells[world->rank];
    memcpy(cell->blobs[epoch % 2], say, sizeof *say);
    HEMI_POINT();
    hemi_store64_release(&cell->seq, epoch);
    hemi_team_wake(world);
}

void hemi_team_wake(const hem_world *world) {
    for (uint32_t r = 0; r < world->size; r++)
        if (r != world->rank)
            hemi_wake(world->root, hemi_arena_rank(&world->root->arena, world->members[r]));
}

static void hear(const hem_world *world, uint32_t rank, hemi_say *say_p) {
    uint64_t epoch = world->cells[world->rank].seq;
    memcpy(say_p, world->cells[rank].blobs[epoch % 2], sizeof *say_p);
    say_p->text[sizeof say_p->text - 1] = '\0';
}

static hem_status explain(const hem_world *world, uint32_t call, uint64_t word) {
    hem_status status = (hem_status)(-(int)(word & 0xff));
    uint32_t rank = (uint32_t)(word >> 8) & 0xffffff;
    const char *name = hemi_call_name(call);
    if (status == HEM_ERR_REVOKED)
        return hemi_world_fail_revoked(world, name);
    if (status == HEM_ERR_PEER && rank < world->size)
        return hemi_world_fail_peer(world, rank, name);
    return hemi_fail(HEM_ERR_TIMEOUT, "%s: rank %u did not come in time", name, rank);
}

/* Rank `ahead` went on without this one. If somebody has died, then for that reason. */
static hem_status fail_left_behind(const hem_world *world, uint32_t ahead, const char *call) {
    uint32_t gone = find_gone(world);
    if (gone < world->size)
        return hemi_world_fail_peer(world, gone, call);
    return hemi_fail(HEM_ERR_TIMEOUT, "%s: rank %u has given up waiting for this one", call, ahead);
}

/* All have spoken: does it fit together? Everybody computes the same from the same blobs. */
static hem_status judge(const hem_world *world, const hemi_say *mine) {
    hemi_say first;
    hear(world, 0, &first);
    hem_status fingerprints = HEM_OK;
    uint32_t differs = 0;
    for (uint32_t r = 0; r < world->size; r++) {
        hemi_say say;
        hear(world, r, &say);
        if (hemi_load64_acquire(&world->cells[r].seq) > world->cells[world->rank].seq + 1)
            /* It has waited for us in vain since, and its blob may hold something newer. */
            return fail_left_behind(world, r, hemi_call_name(mine->call));
        if (say.call != first.call)
            return hemi_fail(HEM_ERR_MISMATCH, "rank %u called %s where rank 0 called %s", r,
                             hemi_call_name(say.call), hemi_call_name(first.call));
        if (say.status < HEM_ERR_LIMIT)
            return hemi_fail(HEM_ERR_MISMATCH, "rank %u names no status: %d", r, (int)say.status);
        if (say.status < 0)
            return hemi_fail((hem_status)say.status, "rank %u: %s", r,
                             r == world->rank ? hem_last_error() : say.text);
        if (say.fingerprint != first.fingerprint && fingerprints == HEM_OK) {
            fingerprints = HEM_ERR_MISMATCH;
            differs = r;
        }
    }
    if (fingerprints != HEM_OK)
        return hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u passed other arguments than rank 0",
                         hemi_call_name(mine->call), differs);
    return HEM_OK;
}

static hem_status wait_for_step(step *s, const hemi_say *say, int64_t timeout_ns) {
    hem_world *world = s->world;
    hemi_wait_for wait = {
        .poll = poll_step,
        .doomed = doomed_step,
        .where = where_step,
        .arg = s,
        .note = {.call = say->call,
                 .peer = -1,
                 .world = world->id,
                 .fingerprint = say->fingerprint,
                 .wanted = s->epoch},
    };
    hem_status status = hemi_wait(world, &wait, timeout_ns);
    uint64_t word = settle(s, s->next < world->size ? s->next : 0, status);
    if ((word & 0xff) == 0)
        return HEM_OK;
    if (status != HEM_OK)
        /* Others may sleep in a wait that this failure ends. */
        hemi_liveness_alarm(&world->root->arena, world->root->platform);
    return explain(world, say->call, word);
}

hem_status hemi_team_agree(hem_world *world, uint32_t call, hem_status status, uint64_t fingerprint,
                           const void *data, size_t bytes, int64_t timeout_ns) {
    hemi_say say = {.call = call, .status = status, .fingerprint = fingerprint};
    if (bytes > 0)
        memcpy(say.data, data, bytes);
    if (status == HEM_OK && is_revoked(world)) {
        status = hemi_world_fail_revoked(world, hemi_call_name(call));
        say.status = status;
    }
    if (status != HEM_OK)
        snprintf(say.text, sizeof say.text, "%s", hem_last_error());
    step s = {.world = world, .epoch = world->cells[world->rank].seq + 1};
    hemi_team_done(world);
    await_readers(world, s.epoch, call, timeout_ns);
    publish(world, s.epoch, &say);
    hem_status ended = wait_for_step(&s, &say, timeout_ns);
    if (ended == HEM_OK)
        ended = judge(world, &say);
    if (ended != HEM_OK || bytes == 0)
        hemi_team_done(world);
    /* On a revoked world ranks give up at different places; that is why, not what they disagree on. */
    return ended != HEM_OK && is_revoked(world)
               ? hemi_world_fail_revoked(world, hemi_call_name(call))
               : ended;
}

void hemi_team_done(hem_world *world) {
    hemi_cell *cell = &world->cells[world->rank];
    if (cell->heard == cell->seq)
        return;
    /* Pairs with the acquire in poll_readers. */
    hemi_store64_release(&cell->heard, cell->seq);
    hemi_team_wake(world);
}

typedef struct meeting {
    hem_world *world;
    uint64_t number;
    uint64_t tag;
    uint32_t next;
    uint32_t dead; /* a rank that is, or the size of the world */
    bool mixed;    /* somebody came for something else */
} meeting;

static bool has_come(const meeting *m) {
    /* Pairs with the release in hemi_team_meet. */
    return hemi_load64_acquire(&m->world->cells[m->next].meet) >= m->number;
}

static hem_status poll_meeting(void *arg) {
    meeting *m = arg;
    for (; m->next < m->world->size; m->next++) {
        const hemi_cell *cell = &m->world->cells[m->next];
        bool come = has_come(m);
        if (!come && hemi_world_may_come(m->world, m->next))
            return HEMI_AGAIN;
        /* It may have come and left between the two looks. */
        if (!come && !has_come(m))
            m->dead = m->next;
        /* One that is ahead has met this rank here already, with the same tag. */
        else if (hemi_load64_acquire(&cell->meet) == m->number &&
                 hemi_load64_relaxed(&cell->meet_tags[m->number % 2]) != m->tag)
            m->mixed = true;
    }
    return HEM_OK;
}

static void where_meeting(void *arg, hemi_flight_note *note) {
    const meeting *m = arg;
    if (m->next >= m->world->size)
        return;
    note->peer = (int32_t)m->world->members[m->next];
    note->word = &m->world->cells[m->next].meet;
}

hem_status hemi_team_meet(hem_world *world, uint32_t call, uint64_t tag, int64_t timeout_ns) {
    hemi_cell *mine = &world->cells[world->rank];
    meeting m = {.world = world, .number = mine->meet + 1, .tag = tag, .dead = world->size};
    hemi_store64_relaxed(&mine->meet_tags[m.number % 2], tag);
    hemi_store64_release(&mine->meet, m.number);
    hemi_team_wake(world);
    hemi_wait_for wait = {
        .poll = poll_meeting,
        .where = where_meeting,
        .arg = &m,
        .note =
            {.call = call, .peer = -1, .world = world->id, .fingerprint = tag, .wanted = m.number},
    };
    hem_status status = hemi_wait(world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "%s: rank %u did not come in time", hemi_call_name(call), m.next);
    if (status == HEM_OK && m.mixed && is_revoked(world))
        return hemi_world_fail_revoked(world, hemi_call_name(call));
    if (status == HEM_OK && m.mixed)
        return hemi_fail(HEM_ERR_MISMATCH, "%s: not all ranks gave up the same thing",
                         hemi_call_name(call));
    if (status == HEM_OK && m.dead < world->size)
        return hemi_world_fail_peer(world, m.dead, hemi_call_name(call));
    return status;
}

void hemi_team_heard(const hem_world *world, uint32_t rank, void *data_p, size_t bytes) {
    hemi_say say;
    hear(world, rank, &say);
    memcpy(data_p, say.data, bytes);
}

typedef struct flag_wait {
    hem_world *world;
    size_t which;
    uint32_t next;
    uint32_t dead; /* a rank that is, or the size of the world */
} flag_wait;

static bool is_up(const flag_wait *f) {
    const unsigned char *cell = (const unsigned char *)&f->world->cells[f->next];
    return hemi_load32_acquire((const uint32_t *)(const void *)(cell + f->which)) != 0;
}

static hem_status poll_flag(void *arg) {
    flag_wait *f = arg;
    for (; f->next < f->world->size; f->next++) {
        if (is_up(f))
            continue;
        if (hemi_liveness_may_come(&f->world->root->arena, f->world->members[f->next]))
            return HEMI_AGAIN;
        /* It may have raised it and ended between the two looks. */
        if (!is_up(f))
            f->dead = f->next;
    }
    return HEM_OK;
}

hem_status hemi_team_await_flag(hem_world *world, uint32_t call, size_t which, int64_t timeout_ns) {
    flag_wait f = {.world = world, .which = which, .dead = world->size};
    hemi_wait_for wait = {
        .poll = poll_flag,
        .arg = &f,
        .also_revoked = true,
        .note = {.call = call, .peer = -1, .world = world->id},
    };
    hem_status status = hemi_wait(world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "%s: rank %u did not come in time", hemi_call_name(call), f.next);
    if (status == HEM_OK && f.dead < world->size)
        return hemi_world_fail_peer(world, f.dead, hemi_call_name(call));
    return status;
}
