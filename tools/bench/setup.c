#include "setup.h"

#include "meet.h"
#include "turns.h"

/* A mesh has as many points as all ranks together; boxes have edges of about the right length. */
static size_t problem_size(const struct bench_setup *setup, const struct hemt_shape *shape) {
    size_t edge = 1;

    if (shape->value[HEMT_MESH] != 0)
        return setup->size * (size_t)setup->halo.world->ranks;
    while ((edge + 1) * (edge + 1) * (shape->value[HEMT_DIMS] == 3 ? edge + 1 : 1) <= setup->size)
        edge++;
    if (edge < (size_t)shape->value[HEMT_HALO])
        edge = (size_t)shape->value[HEMT_HALO];
    return edge;
}

static void begin(void *ctx) {
    (void)ctx;
}

static void run(void *ctx) {
    struct bench_setup *setup = ctx;

    setup->find(setup, &setup->found);
}

static void check(void *ctx) {
    const struct bench_setup *setup = ctx;
    const struct bench_found *found = &setup->found;
    size_t send_points = 0;
    size_t recv_points = 0;

    for (size_t p = 0; p < setup->halo.peers; p++) {
        send_points += setup->halo.peer[p].send_points;
        recv_points += setup->halo.peer[p].recv_points;
    }
    if (found->neighbours != setup->halo.peers || found->send_points != send_points ||
        found->recv_points != recv_points)
        bench_die("rank %d found %zu neighbours, %zu points to send and %zu to receive, not %zu, "
                  "%zu and %zu",
                  setup->halo.world->rank, found->neighbours, found->send_points,
                  found->recv_points, setup->halo.peers, send_points, recv_points);
}

static size_t most(const struct bench_halo *halo, size_t value) {
    return bench_meet_most(halo->meet, halo->world, halo->help, value);
}

void bench_setup_measure(struct bench_setup *setup, const struct bench_args *args, size_t size) {
    struct bench_halo *halo = &setup->halo;

    setup->size = size;
    bench_halo_make(halo, args->shape.value[HEMT_MESH] != 0 ? BENCH_MESH : BENCH_GRID, &args->shape,
                    problem_size(setup, &args->shape));
    struct bench_turns turns = {.world = halo->world,
                                .meet = halo->meet,
                                .help = halo->help,
                                .begin = begin,
                                .run = run,
                                .check = check,
                                .ctx = setup,
                                .touched = SIZE_MAX};
    struct bench_result result = bench_turns_measure(&turns);
    struct bench_more more = {.moved = most(halo, setup->found.bytes),
                              .messages = most(halo, setup->found.messages),
                              .peak = most(halo, setup->found.peak)};
    bench_print_more(halo->world, NULL, args->kind, size, result, &more);
    bench_halo_free(halo);
}
