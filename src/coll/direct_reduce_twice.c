/*
 * All-reduce in two goes: each rank combines one part of the vector from all, then everybody reads the
 * parts.
 *
 * The vector is cut into segments of a stage. Segment s has step A(s), in which everybody posts its
 * input and combines its own part of it, and step B(s), in which everybody posts its combined part and
 * reads those of the others. The steps come in the order A0 A1 B0 A2 B1 A3 B2 ..., so that the next
 * segment is being staged while the others still combine this one.
 *
 * In place is safe: part q of this rank's input is read by rank q alone, which posts B(s) after that,
 * and part q of this rank's output is written after that post.
 */
#include "coll/pieces.h"
#include "coll/sources.h"

static bool fits(const hemi_job *job, uint64_t stage_bytes) {
    return job->kind == HEM_ALLREDUCE && job->element <= stage_bytes;
}

static size_t bytes_of(const hemi_collective *c) {
    return c->job.count * c->job.element;
}

static uint64_t segments(const hemi_collective *c) {
    return hemi_pieces(bytes_of(c), c->width);
}

static uint64_t lay_out(hemi_collective *c) {
    size_t element = c->job.element;
    hemi_collective_cut(c, bytes_of(c), bytes_of(c), c->context->stage_bytes / element * element);
    return 2 * segments(c);
}

/* Which segment step k is about, and whether it is its first or second step. */
static bool is_first(const hemi_collective *c, uint64_t k, uint64_t *segment_p) {
    if (k == 0 || (k % 2 == 1 && k != 2 * segments(c) - 1)) {
        *segment_p = (k + 1) / 2;
        return true;
    }
    *segment_p = k % 2 == 1 ? k / 2 : k / 2 - 1;
    return false;
}

/* Part `r` of a segment, in bytes from the start of the vector. */
static size_t part(const hemi_collective *c, uint64_t segment, uint32_t r, size_t *n_p) {
    size_t element = c->job.element;
    size_t count = hemi_piece(bytes_of(c), c->width, segment) / element;
    size_t each = count / c->job.size;
    size_t more = count % c->job.size;
    size_t start = each * r + (r < more ? r : more);
    *n_p = (each + (r < more ? 1 : 0)) * element;
    return (size_t)segment * c->width + start * element;
}

/* The second step of a segment can be posted when its first has been pulled. */
static hem_status ready(hemi_collective *c, uint64_t k) {
    uint64_t segment = 0;
    if (is_first(c, k, &segment))
        return HEM_OK;
    return hemi_collective_has_pulled(c, segment == 0 ? 0 : 2 * segment - 1) ? HEM_OK : HEMI_AGAIN;
}

/* Step A: the whole segment, but for this rank's own part, which nobody else wants. */
static void post_input(hemi_collective *c, uint64_t k, uint64_t segment) {
    const hemi_job *job = &c->job;
    size_t bytes = hemi_piece(bytes_of(c), c->width, segment);
    const unsigned char *data = job->send + segment * c->width;
    uint64_t flags = 0;
    uint64_t where = hemi_collective_place(c, data, bytes, &flags);
    if (where != 0) {
        hemi_collective_refer(c, k, where, bytes | flags);
        return;
    }
    size_t mine = 0;
    size_t before = part(c, segment, job->rank, &mine) - (size_t)segment * c->width;
    size_t after = before + mine;
    unsigned char *room = hemi_collective_room(c, k, bytes);
    hemi_move(room, data, before);
    hemi_move(room + after, data + after, bytes - after);
    hemi_collective_publish(c, k, bytes);
}

static void post(hemi_collective *c, uint64_t k) {
    uint64_t segment = 0;
    if (is_first(c, k, &segment)) {
        post_input(c, k, segment);
        return;
    }
    size_t n = 0;
    size_t start = part(c, segment, c->job.rank, &n);
    hemi_collective_post_data(c, k, c->job.recv + start, n);
}

static hem_status combine(hemi_collective *c, uint64_t k, uint64_t segment) {
    const hemi_job *job = &c->job;
    const hemi_sources_room *room = c->state;
    size_t bytes = hemi_piece(bytes_of(c), c->width, segment);
    size_t n = 0;
    size_t start = part(c, segment, job->rank, &n);
    for (uint32_t r = 0; r < job->size; r++) {
        room->offsets[r] = start - (size_t)segment * c->width;
        room->found[r] = hemi_found_own(c, job->send + segment * c->width);
        hem_status status =
            r == job->rank ? HEM_OK : hemi_collective_find(c, k, r, bytes, bytes, &room->found[r]);
        if (status != HEM_OK)
            return status;
    }
    return n == 0 ? HEM_OK
                  : hemi_collective_combine(c, room->found, room->offsets, job->recv + start, n);
}

static hem_status collect(hemi_collective *c, uint64_t k, uint64_t segment) {
    for (uint32_t r = 0; r < c->job.size; r++) {
        size_t n = 0;
        size_t start = part(c, segment, r, &n);
        hemi_found found;
        if (r == c->job.rank)
            continue;
        hem_status status = hemi_collective_find(c, k, r, n, n, &found);
        if (status == HEM_OK)
            status = hemi_collective_copy(c, &found, 0, c->job.recv + start, n);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

static hem_status pull(hemi_collective *c, uint64_t k) {
    uint64_t segment = 0;
    return is_first(c, k, &segment) ? combine(c, k, segment) : collect(c, k, segment);
}

const hemi_method hemi_direct_reduce_twice = {
    .name = "direct",
    .fits = fits,
    .lay_out = lay_out,
    .ready = ready,
    .post = post,
    .pull = pull,
    .prepare = hemi_sources_prepare,
    .release = hemi_sources_release,
};
