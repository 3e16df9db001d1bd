/*
 * All-gather by recursive doubling, at any rank count, for equal blocks.
 *
 * Groups as in doubling_allreduce.c: the odd one of each pair gives its block to the even one and gets
 * all blocks at the end. In round k a group exchanges the blocks of its 2^k groups, which lie one
 * after the other, with those of the group whose number differs in bit k.
 */
#include "coll/plans.h"

bool hemi_fits_doubling_allgather(const hemi_job *job) {
    return job->kind == HEM_ALLGATHER;
}

/* The first rank of a group. */
static uint32_t first_rank(uint32_t group, uint32_t pairs) {
    return group < pairs ? 2 * group : group + pairs;
}

/* The blocks of `count` groups from `group` on. */
static hemi_block span(const hemi_job *job, uint32_t group, uint32_t count, uint32_t pairs) {
    size_t block = job->count * job->element;
    uint32_t first = first_rank(group, pairs);
    uint32_t end = first_rank(group + count, pairs);
    return (hemi_block){first * block, (end - first) * block};
}

static void exchange_all(const hemi_job *job, hemi_plan *plan, uint32_t power, uint32_t pairs) {
    uint32_t rank = job->rank;
    uint32_t group = rank < 2 * pairs ? rank / 2 : rank - pairs;
    for (uint32_t bit = 1; bit < power; bit *= 2) {
        uint32_t peer = first_rank(group ^ bit, pairs);
        hemi_block in = span(job, (group ^ bit) & ~(bit - 1), bit, pairs);
        hemi_block out = span(job, group & ~(bit - 1), bit, pairs);
        hemi_plan_recv(plan, peer, hemi_place_at(HEMI_OUTPUT, in.offset), in.bytes);
        hemi_plan_send(plan, peer, hemi_place_at(HEMI_OUTPUT, out.offset), out.bytes);
        hemi_plan_round(plan);
    }
}

/* The odd one of a pair. Its own block comes back to where it is: so it is not put there before. */
static void plan_odd(const hemi_job *job, hemi_plan *plan, hemi_place from) {
    size_t block = job->count * job->element;
    hemi_plan_send(plan, job->rank - 1, from, block);
    hemi_plan_round(plan);
    hemi_plan_recv(plan, job->rank - 1, hemi_place_at(HEMI_OUTPUT, 0), block * job->size);
}

hem_status hemi_plan_doubling_allgather(const hemi_job *job, hemi_plan *plan_p) {
    uint32_t rank = job->rank;
    uint32_t power = 1;
    while (power <= job->size / 2)
        power *= 2;
    uint32_t pairs = job->size - power;
    hemi_block mine = hemi_job_block(job, rank);
    bool in_place = hemi_job_in_place(job, mine.offset);
    hemi_place own = hemi_place_at(HEMI_OUTPUT, mine.offset);
    hemi_job_begin_plan(job, plan_p);
    if (rank < 2 * pairs && rank % 2 == 1) {
        plan_odd(job, plan_p, in_place ? own : hemi_place_at(HEMI_INPUT, 0));
        return hemi_plan_finish(plan_p);
    }
    if (!in_place)
        hemi_plan_copy(plan_p, own, hemi_place_at(HEMI_INPUT, 0), mine.bytes);
    if (rank < 2 * pairs)
        hemi_plan_recv(plan_p, rank + 1, hemi_place_add(own, mine.bytes), mine.bytes);
    hemi_plan_round(plan_p);
    exchange_all(job, plan_p, power, pairs);
    if (rank < 2 * pairs)
        hemi_plan_send(plan_p, rank + 1, hemi_place_at(HEMI_OUTPUT, 0), mine.bytes * job->size);
    return hemi_plan_finish(plan_p);
}
