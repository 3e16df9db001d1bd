/*
 * For tests: a collective of all ranks as jobs with buffers, and what its result must be, computed
 * naively. Buffers have edges, so that whatever is written around a result is found out.
 */
#ifndef HEMI_COLL_PLANS_TESTING_H
#define HEMI_COLL_PLANS_TESTING_H

#include "coll/plans.h"
#include "plan/testing.h"

#include <math.h>

#define MOST 17
/* Bytes before and behind each buffer that nobody may touch. */
#define EDGE ((size_t)64)

/* What is combined. */
typedef enum flavour {
    MATRICES, /* products of 2 x 2 matrices: associative, not commutative */
    FLOATS    /* sums where the order shows in the bits */
} flavour;

typedef struct matrix {
    uint32_t m[4];
} matrix;

static inline matrix product(matrix a, matrix b) {
    matrix c;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            c.m[2 * i + k] = a.m[2 * i] * b.m[k] + a.m[2 * i + 1] * b.m[2 + k];
    return c;
}

static inline void combine_matrices(const hemi_reducer *reducer, void *out,
                                    const void *const *sources, size_t source_count, size_t count) {
    (void)reducer;
    for (size_t i = 0; i < count; i++) {
        matrix all;
        memcpy(&all, (const matrix *)sources[0] + i, sizeof all);
        for (size_t s = 1; s < source_count; s++) {
            matrix next;
            memcpy(&next, (const matrix *)sources[s] + i, sizeof next);
            all = product(all, next);
        }
        memcpy((matrix *)out + i, &all, sizeof all);
    }
}

static inline void combine_floats(const hemi_reducer *reducer, void *out,
                                  const void *const *sources, size_t source_count, size_t count) {
    (void)reducer;
    for (size_t i = 0; i < count; i++) {
        float all;
        memcpy(&all, (const float *)sources[0] + i, sizeof all);
        for (size_t s = 1; s < source_count; s++) {
            float next;
            memcpy(&next, (const float *)sources[s] + i, sizeof next);
            all += next;
        }
        memcpy((float *)out + i, &all, sizeof all);
    }
}

/* One collective of all ranks. */
typedef struct trial {
    const hemi_algorithm *algorithm;
    hemi_job jobs[MOST];
    hemi_plan plans[MOST];
    uint32_t size;
    bool in_place;
    bool own_reducer;           /* the library's, not the naive one */
    unsigned char *sends[MOST]; /* with edges around them */
    unsigned char *recvs[MOST];
    unsigned char *wants[MOST];   /* what `recv` is to be */
    unsigned char *befores[MOST]; /* what `send` was */
    size_t send_bytes[MOST];
    size_t recv_bytes[MOST];
    uint64_t random;
} trial;

static inline bool is_v(hem_coll_kind kind) {
    return kind == HEM_ALLGATHERV || kind == HEM_REDUCE_SCATTERV || kind == HEM_GATHERV ||
           kind == HEM_SCATTERV || kind == HEM_ALLTOALLV;
}

/* Elements that rank `from` has for rank `to`. Some are 0. */
static inline size_t pair_count(size_t count, uint32_t from, uint32_t to) {
    return (count * (from * 3 + to * 5 + 1) + from) % (2 * count + 1);
}

/* Which block lies at place i: with odd counts the blocks lie in another order than the ranks. */
static inline uint32_t block_at(uint32_t i, uint32_t size, size_t count) {
    if (count % 2 == 0)
        return i;
    return size % 2 == 0 ? size - 1 - i : (2 * i + 1) % size;
}

/* Counts and displacements of one side; with gaps, unless the count is a multiple of 4. */
static inline void fill_arrays(const trial *t, size_t count, uint32_t rank, bool send_side,
                               size_t **counts_p, size_t **displs_p) {
    *counts_p = calloc(t->size, sizeof(size_t));
    *displs_p = calloc(t->size, sizeof(size_t));
    size_t at = 0;
    bool each = t->algorithm->kind == HEM_ALLTOALLV;
    for (uint32_t i = 0; i < t->size; i++) {
        uint32_t r = block_at(i, t->size, count);
        uint32_t from = each ? (send_side ? rank : r) : 0;
        uint32_t to = each ? (send_side ? r : rank) : r;
        (*counts_p)[r] = pair_count(count, from, to);
        (*displs_p)[r] = at;
        at += (*counts_p)[r] + (count % 4 != 0 && r % 3 == 1 ? 2 : 0);
    }
    if (count % 4 != 0)
        return;
    /* The blocks follow each other: this need not be said. */
    free(*displs_p);
    *displs_p = NULL;
}

static inline void make_job(trial *t, uint32_t rank, size_t count, uint32_t root, size_t element) {
    hemi_job *job = &t->jobs[rank];
    hem_coll_kind kind = t->algorithm->kind;
    memset(job, 0, sizeof *job);
    job->kind = kind;
    job->rank = rank;
    job->size = t->size;
    job->root = root;
    job->element = element;
    job->count = count;
    if (!is_v(kind))
        return;
    size_t *table;
    size_t *places;
    fill_arrays(t, count, rank, false, &table, &places);
    job->count = table[rank];
    if ((kind == HEM_GATHERV || kind == HEM_SCATTERV) && rank != root) {
        free(table);
        free(places);
        return;
    }
    job->counts = table;
    job->displs = places;
    if (kind == HEM_ALLTOALLV)
        fill_arrays(t, count, rank, true, &job->send_counts, &job->send_displs);
}

/* The end of the last block. */
static inline size_t extent(const hemi_job *job, bool send_side) {
    size_t end = 0;
    for (uint32_t r = 0; r < job->size; r++) {
        hemi_block block = send_side ? hemi_job_send_block(job, r) : hemi_job_block(job, r);
        end = block.offset + block.bytes > end ? block.offset + block.bytes : end;
    }
    return end;
}

static inline void measure(trial *t, uint32_t r) {
    const hemi_job *job = &t->jobs[r];
    size_t one = job->count * job->element;
    bool root = r == job->root;
    size_t send = one;
    size_t recv = one;
    switch (job->kind) {
    default:
        break;
    case HEM_REDUCE:
        recv = root ? one : 0;
        break;
    case HEM_ALLGATHER:
    case HEM_ALLGATHERV:
        recv = extent(job, false);
        break;
    case HEM_REDUCE_SCATTER:
    case HEM_REDUCE_SCATTERV:
        send = extent(job, false);
        break;
    case HEM_GATHER:
    case HEM_GATHERV:
        recv = root ? extent(job, false) : 0;
        break;
    case HEM_SCATTER:
    case HEM_SCATTERV:
        send = root ? extent(job, false) : 0;
        break;
    case HEM_ALLTOALL:
    case HEM_ALLTOALLV:
        send = extent(job, true);
        recv = extent(job, false);
        break;
    }
    t->send_bytes[r] = send;
    t->recv_bytes[r] = recv;
}

static inline unsigned char *make_buffer(trial *t, size_t bytes, bool floats) {
    unsigned char *buffer = malloc(bytes + 2 * EDGE);
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes + 2 * EDGE; i++) {
        bits = i % 8 == 0 ? testing_random(&t->random) : bits >> 8;
        buffer[i] = (unsigned char)bits;
    }
    for (size_t i = 0; floats && i + sizeof(float) <= bytes; i += sizeof(float)) {
        int power = (int)(testing_random(&t->random) % 16);
        float value = ldexpf((float)(testing_random(&t->random) % 10000) - 5000, power);
        memcpy(buffer + EDGE + i, &value, sizeof value);
    }
    return buffer;
}

/* Where the send buffer is in the other one, or the other way round, when it works in place. */
static inline size_t shift_of(const hemi_job *job) {
    switch (job->kind) {
    case HEM_ALLGATHER:
    case HEM_ALLGATHERV:
    case HEM_GATHER:
    case HEM_GATHERV:
    case HEM_SCATTER:
    case HEM_SCATTERV:
        return hemi_job_block(job, job->rank).offset;
    default:
        return 0;
    }
}

/* Whether this rank has both buffers, so that they can be one. */
static inline bool can_share(const hemi_job *job) {
    switch (job->kind) {
    case HEM_REDUCE:
    case HEM_GATHER:
    case HEM_GATHERV:
    case HEM_SCATTER:
    case HEM_SCATTERV:
        return job->rank == job->root;
    default:
        return true;
    }
}

static inline void make_buffers(trial *t, uint32_t r, flavour f) {
    hemi_job *job = &t->jobs[r];
    bool floats = f == FLOATS;
    bool scatters = job->kind == HEM_SCATTER || job->kind == HEM_SCATTERV;
    bool shared = t->in_place && can_share(job);
    size_t most = t->send_bytes[r] > t->recv_bytes[r] ? t->send_bytes[r] : t->recv_bytes[r];
    if (shared)
        t->send_bytes[r] = t->recv_bytes[r] = most;
    t->sends[r] = make_buffer(t, t->send_bytes[r], floats);
    t->recvs[r] = shared ? t->sends[r] : make_buffer(t, t->recv_bytes[r], floats);
    job->send = t->sends[r] + EDGE;
    job->recv = t->recvs[r] + EDGE;
    if (shared && scatters)
        job->recv += shift_of(job);
    else if (shared)
        job->send += shift_of(job);
}

static inline void *copy_of(const void *data, size_t bytes) {
    void *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    return copy;
}

/* The reference. Reads what the buffers were and writes what they are to be. */

/* Byte `offset` of what rank r sends, as it was. */
static const unsigned char *sent(const trial *t, uint32_t r, size_t offset) {
    return t->befores[r] + (t->jobs[r].send - t->sends[r]) + offset;
}

static inline unsigned char *wanted(const trial *t, uint32_t r, size_t offset) {
    return t->wants[r] + (t->jobs[r].recv - t->recvs[r]) + offset;
}

/* Combine everybody's bytes from `offset` on for rank r. */
static inline void want_combined(const trial *t, uint32_t r, size_t offset, size_t bytes) {
    const void *sources[MOST];
    for (uint32_t s = 0; s < t->size; s++)
        sources[s] = sent(t, s, offset);
    if (bytes > 0)
        hemi_reduce(&t->jobs[r].reducer, wanted(t, r, 0), sources, t->size,
                    bytes / t->jobs[r].element);
}

static inline void want_copy(const trial *t, uint32_t to, size_t at, uint32_t from, size_t offset,
                             size_t bytes) {
    if (bytes > 0)
        memcpy(wanted(t, to, at), sent(t, from, offset), bytes);
}

static inline void want_blocks(const trial *t, uint32_t r) {
    const hemi_job *job = &t->jobs[r];
    const hemi_job *root = &t->jobs[job->root];
    bool all = job->kind == HEM_ALLTOALL || job->kind == HEM_ALLTOALLV;
    if (job->kind == HEM_SCATTER || job->kind == HEM_SCATTERV) {
        hemi_block block = hemi_job_block(root, r);
        want_copy(t, r, 0, job->root, block.offset, block.bytes);
        return;
    }
    if ((job->kind == HEM_GATHER || job->kind == HEM_GATHERV) && r != job->root)
        return;
    for (uint32_t s = 0; s < t->size; s++) {
        hemi_block block = hemi_job_block(job, s);
        size_t from = all ? hemi_job_send_block(&t->jobs[s], r).offset : 0;
        want_copy(t, r, block.offset, s, from, block.bytes);
    }
}

static inline void want(const trial *t, uint32_t r) {
    const hemi_job *job = &t->jobs[r];
    size_t total = job->count * job->element;
    switch (job->kind) {
    case HEM_BARRIER:
        break;
    case HEM_BROADCAST:
        want_copy(t, r, 0, job->root, 0, total);
        break;
    case HEM_REDUCE:
        want_combined(t, r, 0, r == job->root ? total : 0);
        break;
    case HEM_ALLREDUCE:
        want_combined(t, r, 0, total);
        break;
    case HEM_REDUCE_SCATTER:
    case HEM_REDUCE_SCATTERV:
        want_combined(t, r, hemi_job_block(job, r).offset, hemi_job_block(job, r).bytes);
        break;
    default:
        want_blocks(t, r);
    }
}

static inline void multiply(void *into, const void *from, size_t count, void *arg) {
    const void *sources[] = {into, from};
    (void)arg;
    combine_matrices(NULL, into, sources, 2, count);
}

/* The naive one here, or the library's own. */
static inline void set_reduction(hemi_job *job, flavour f, bool own) {
    job->op = f == FLOATS ? HEM_SUM : HEM_USER;
    job->dtype = f == FLOATS ? HEM_F32 : 0;
    job->reducer.run = f == FLOATS ? combine_floats : combine_matrices;
    job->reducer.element = job->element;
    if (own && hemi_reducer_find(job->dtype, job->op, f == FLOATS ? NULL : multiply, NULL,
                                 job->element, &job->reducer) != HEM_OK)
        abort();
}

/** Jobs, buffers and what is wanted. The algorithm, size, in_place and seed are set. */
static inline void make_trial(trial *t, size_t count, uint32_t root, flavour f) {
    for (uint32_t r = 0; r < t->size; r++) {
        make_job(t, r, count, root, f == FLOATS ? sizeof(float) : sizeof(matrix));
        set_reduction(&t->jobs[r], f, false);
        measure(t, r);
        make_buffers(t, r, f);
        t->befores[r] = copy_of(t->sends[r], t->send_bytes[r] + 2 * EDGE);
        t->wants[r] = copy_of(t->recvs[r], t->recv_bytes[r] + 2 * EDGE);
    }
    for (uint32_t r = 0; r < t->size; r++)
        want(t, r);
    for (uint32_t r = 0; r < t->size; r++)
        set_reduction(&t->jobs[r], f, t->own_reducer);
}

static inline void free_trial(trial *t) {
    for (uint32_t r = 0; r < t->size; r++) {
        if (t->recvs[r] != t->sends[r])
            free(t->recvs[r]);
        free(t->sends[r]);
        free(t->befores[r]);
        free(t->wants[r]);
        free(t->jobs[r].counts);
        free(t->jobs[r].displs);
        free(t->jobs[r].send_counts);
        free(t->jobs[r].send_displs);
        hemi_plan_free(&t->plans[r]);
    }
}

/** NULL, or what is wrong with what rank `r` has now. */
static inline const char *judge(const trial *t, uint32_t r) {
    bool shared = t->recvs[r] == t->sends[r];
    if (!shared && memcmp(t->sends[r], t->befores[r], t->send_bytes[r] + 2 * EDGE) != 0)
        return "the input was written";
    if (memcmp(t->recvs[r], t->wants[r], t->recv_bytes[r] + 2 * EDGE) != 0)
        return "the output is not what it should be";
    return NULL;
}

/** Whether the algorithm does what a flavour stands for. */
static inline bool suits(const hemi_algorithm *algorithm, flavour f) {
    hemi_job job = {.kind = algorithm->kind, .size = 2};
    set_reduction(&job, f, false);
    return algorithm->fits(&job);
}

#endif
