/*
 * hem-test: timeout=180 labels=soak,single
 *
 * The plans of all algorithms, run for all ranks in one thread against a naive reference: results,
 * what is around them, what is only read, in place or not.
 */
#include "base/env.h"
#include "base/status.h"
#include "coll/plans_testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17};
static const size_t counts[] = {0, 1, 2, 3, 16, 17, 18, 65, 300};

/* Say which trial it was, then fail. */
static void fail_trial(const trial *t, size_t count, const char *what) {
    fail_msg("%s, kind %d, %u ranks, count %zu, root %u%s: %s (%s)", t->algorithm->name,
             (int)t->algorithm->kind, t->size, count, t->jobs[0].root,
             t->in_place ? ", in place" : "", what, hem_last_error());
}

static void build(trial *t, size_t count) {
    for (uint32_t r = 0; r < t->size; r++) {
        if (!t->algorithm->fits(&t->jobs[r]))
            fail_trial(t, count, "it does not fit");
        if (t->algorithm->plan(&t->jobs[r], &t->plans[r]) != HEM_OK)
            fail_trial(t, count, "no plan");
        size_t input = t->send_bytes[r] + (size_t)(t->sends[r] + EDGE - t->jobs[r].send);
        size_t output = t->recv_bytes[r] + (size_t)(t->recvs[r] + EDGE - t->jobs[r].recv);
        if (t->plans[r].rooms[HEMI_INPUT] > input || t->plans[r].rooms[HEMI_OUTPUT] > output)
            fail_trial(t, count, "the plan goes beyond the buffers");
        bool both = t->plans[r].rooms[HEMI_INPUT] > 0 && t->plans[r].rooms[HEMI_OUTPUT] > 0;
        if (t->recvs[r] == t->sends[r] && both)
            fail_trial(t, count, "in place, the plan names both input and output");
    }
    if (hemi_plans_check(t->plans, t->size) != HEM_OK)
        fail_trial(t, count, "the plans are not good");
}

static void run_trial(const hemi_algorithm *algorithm, uint32_t size, size_t count, uint32_t root,
                      bool in_place, flavour f, bool buffered) {
    trial t = {.algorithm = algorithm, .size = size, .in_place = in_place};
    unsigned char *inputs[MOST];
    unsigned char *outputs[MOST];
    t.random = size * 1000003ull + count * 31 + root;
    make_trial(&t, count, root, f);
    build(&t, count);
    for (uint32_t r = 0; r < size; r++) {
        /* Only the interpreter writes, and not to the input: the checker has looked. */
        inputs[r] = (unsigned char *)(uintptr_t)t.jobs[r].send;
        outputs[r] = t.jobs[r].recv;
    }
    const char *what = testing_run(t.plans, size, inputs, outputs, buffered, t.random);
    for (uint32_t r = 0; r < size && what == NULL; r++)
        what = judge(&t, r);
    if (what != NULL)
        fail_trial(&t, count, what);
    free_trial(&t);
}

static bool full(void) {
    return hemi_env_text("HEM_TEST_FULL") != NULL;
}

/* All eight ways with HEM_TEST_FULL=1, else two opposite ones, others for the next count. */
static void run_all_ways(const hemi_algorithm *algorithm, uint32_t size, size_t count,
                         uint32_t root) {
    int turn = (int)((size + count + root) % 4);
    for (int way = 0; way < 8; way++) {
        flavour f = way & 2 ? FLOATS : MATRICES;
        if (suits(algorithm, f) && (full() || way == turn || way == 7 - turn))
            run_trial(algorithm, size, count, root, way & 1, f, way & 4);
    }
}

static bool has_root(hem_coll_kind kind) {
    return kind == HEM_BROADCAST || kind == HEM_REDUCE || kind == HEM_GATHER ||
           kind == HEM_GATHERV || kind == HEM_SCATTER || kind == HEM_SCATTERV;
}

static void every_algorithm_gives_the_reference(void **state) {
    (void)state;
    size_t algorithm_count;
    const hemi_algorithm *algorithms = hemi_algorithms(&algorithm_count);
    for (size_t a = 0; a < algorithm_count; a++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
                for (uint32_t root = 0; root < (has_root(algorithms[a].kind) ? sizes[s] : 1);
                     root += 1 + root / 3)
                    run_all_ways(&algorithms[a], sizes[s], counts[c], root);
}

/* Long enough to be cut into many pieces. */
static void long_vectors_go_in_pieces(void **state) {
    (void)state;
    static const uint32_t some[] = {2, 3, 5, 8};
    size_t algorithm_count;
    const hemi_algorithm *algorithms = hemi_algorithms(&algorithm_count);
    for (size_t a = 0; a < algorithm_count; a++)
        for (size_t s = 0; s < sizeof some / sizeof some[0]; s++)
            for (int way = 0; way < 4; way++)
                if (full() || (size_t)way == (a + s) % 4)
                    run_trial(&algorithms[a], some[s], 30011, some[s] / 2, way & 1, MATRICES,
                              way & 2);
}

static bool is_one_of(const hemi_algorithm *algorithm, const char *a, const char *b) {
    return strcmp(algorithm->name, a) == 0 || strcmp(algorithm->name, b) == 0;
}

static bool combines(hem_coll_kind kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

/*
 * Sums of halves are rounded once, not wherever a partial result travels; and floating point is never
 * grouped otherwise than rank after rank.
 */
static void what_would_change_bits_does_not_fit(void **state) {
    (void)state;
    size_t algorithm_count;
    const hemi_algorithm *algorithms = hemi_algorithms(&algorithm_count);
    for (size_t a = 0; a < algorithm_count; a++) {
        const hemi_algorithm *it = &algorithms[a];
        bool moves = !combines(it->kind);
        bool once = moves || is_one_of(it, "pairwise", "pairwise");
        bool chain = once || is_one_of(it, "ring", "ring");
        hemi_job job = {.kind = it->kind, .size = 4, .element = 2};
        const struct {
            hem_dtype dtype;
            hem_reduction op;
            bool fits;
        } cases[] = {
            {HEM_BF16, HEM_SUM, once},  {HEM_F16, HEM_PROD, once}, {HEM_F16, HEM_MAX, chain},
            {HEM_F32, HEM_SUM, chain},  {HEM_F64, HEM_MIN, chain}, {HEM_C64, HEM_PROD, chain},
            {HEM_C128, HEM_SUM, chain}, {HEM_I32, HEM_SUM, true},  {HEM_BOOL, HEM_LAND, true},
            {0, HEM_USER, true},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            job.dtype = cases[i].dtype;
            job.op = cases[i].op;
            assert_int_equal(it->fits(&job), cases[i].fits);
        }
        job.kind = job.kind == HEM_BARRIER ? HEM_REDUCE : HEM_BARRIER;
        assert_false(it->fits(&job));
    }
}

static void algorithms_are_found_by_name(void **state) {
    (void)state;
    assert_ptr_equal(hemi_algorithm_find("ring", HEM_ALLREDUCE)->plan, hemi_plan_ring_allreduce);
    assert_ptr_equal(hemi_algorithm_find("linear", HEM_SCATTERV)->plan, hemi_plan_linear_scatter);
    assert_null(hemi_algorithm_find("ring", HEM_BARRIER));
    assert_null(hemi_algorithm_find("rin", HEM_ALLREDUCE));
}

/* All ranks together move what the files say. */
static size_t bytes_sent(const hemi_algorithm *algorithm, uint32_t size, size_t count) {
    trial t = {.algorithm = algorithm, .size = size};
    size_t bytes = 0;
    make_trial(&t, count, 0, MATRICES);
    build(&t, count);
    for (uint32_t r = 0; r < size; r++)
        for (size_t i = 0; i < t.plans[r].step_count; i++)
            if (t.plans[r].steps[i].kind == HEMI_STEP_SEND)
                bytes += t.plans[r].steps[i].bytes;
    free_trial(&t);
    return bytes;
}

static void no_byte_moves_more_often_than_it_must(void **state) {
    (void)state;
    const size_t n = 840 * sizeof(matrix);
    for (uint32_t p = 2; p < 8; p++) {
        size_t others = p - 1;
        const hemi_algorithm *ring = hemi_algorithm_find("ring", HEM_ALLREDUCE);
        const hemi_algorithm *pairs = hemi_algorithm_find("pairwise", HEM_ALLREDUCE);
        const hemi_algorithm *tree = hemi_algorithm_find("tree", HEM_REDUCE);
        const hemi_algorithm *down = hemi_algorithm_find("tree", HEM_BROADCAST);
        const hemi_algorithm *scatter = hemi_algorithm_find("pairwise", HEM_REDUCE_SCATTER);
        assert_int_equal(bytes_sent(ring, p, 840), 2 * others * n);
        assert_int_equal(bytes_sent(pairs, p, 840), 2 * others * n);
        assert_int_equal(bytes_sent(tree, p, 840), others * n);
        assert_int_equal(bytes_sent(down, p, 840), others * n);
        assert_int_equal(bytes_sent(scatter, p, 840), others * p * n);
    }
}

/* Nobody has the result of everybody, or leaves a barrier, before all have come. */
static void nobody_is_done_before_all_have_come(void **state) {
    (void)state;
    static const hem_coll_kind kinds[] = {HEM_BARRIER, HEM_ALLREDUCE, HEM_ALLGATHER, HEM_ALLTOALL};
    static const char *const names[] = {"dissemination", "ring", "doubling", "pairwise"};
    for (int way = 0; way < 16; way++) {
        const hemi_algorithm *algorithm = hemi_algorithm_find(names[way / 4], kinds[way % 4]);
        for (uint32_t size = 2; size <= MOST && algorithm != NULL; size++) {
            trial t = {.algorithm = algorithm, .size = size};
            make_trial(&t, 20, 0, MATRICES);
            build(&t, 20);
            for (uint32_t held = 0; held < size; held++) {
                unsigned char *data[MOST];
                for (uint32_t r = 0; r < size; r++)
                    data[r] = t.recvs[r] + EDGE;
                assert_int_equal(testing_finishers(t.plans, size, data, data, held), 0);
            }
            free_trial(&t);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_the_reference),
        cmocka_unit_test(long_vectors_go_in_pieces),
        cmocka_unit_test(what_would_change_bits_does_not_fit),
        cmocka_unit_test(algorithms_are_found_by_name),
        cmocka_unit_test(no_byte_moves_more_often_than_it_must),
        cmocka_unit_test(nobody_is_done_before_all_have_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
