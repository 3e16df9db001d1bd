#include "../hem/bench_stats.h"
#include "bench.h"

/*
 * Many short batches: when something else takes a core away for a few milliseconds, one batch
 * suffers, and it is left out. With more ranks than cores the scheduler is part of what is
 * measured, so there the batches are long enough to hold many of its turns and all of them count.
 */
enum {
    MOST_BATCHES = 400,
    WANTED_BATCHES = 81,
    FEWEST_BATCHES = 9,
    FEWEST_SLOW_BATCHES = 3,
    ATTEMPTS = 3
};

static const double batch_ns = 0.7e6;
static const double crowded_batch_ns = 20e6;

/* A core may be lost this rarely without the batch being left out. */
static const double ns_per_switch = 10e6;

/* After the first, a few good batches are enough; after the second, what there is must do. */
static const double patience_ns = 0.25e9;
static const double limit_ns = 0.75e9;

/* What rank 0 saw: the mean of each batch, and the yardstick before and after it. */
struct series {
    size_t count;
    double mean[MOST_BATCHES];
    struct bench_reading reading[MOST_BATCHES + 1];
};

static uint64_t grow(const struct bench_world *world, uint64_t iters, double ns) {
    double wanted = world->ranks > bench_online() ? crowded_batch_ns : batch_ns;
    double factor = ns > 0 ? wanted / ns : 10;

    if (factor < 1.5)
        return iters;
    if (factor > 10)
        factor = 10;
    return (uint64_t)((double)iters * factor + 0.5);
}

/* Runs ever larger batches, which is the warm-up too, until one is long enough. */
static uint64_t settle(const struct bench_world *world, bench_batch batch, void *ctx) {
    uint64_t iters = 1;

    for (;;) {
        double ns = batch(ctx, iters);
        uint64_t next = world->agree(world->ctx, grow(world, iters, ns));
        if (next == iters)
            return iters;
        iters = next;
    }
}

static bool undisturbed(const struct series *series, size_t batch, double line_ns) {
    const struct bench_reading *before = &series->reading[batch];
    const struct bench_reading *after = &series->reading[batch + 1];
    double switches = (double)(after->switches - before->switches);

    /* No batch of a large size is without any, and each costs it little. */
    if (switches > 0 && switches * ns_per_switch > after->ns - before->ns)
        return false;
    return hemt_same_distance(line_ns, before->line_ns) &&
           hemt_same_distance(line_ns, after->line_ns);
}

/* The batches during which both ranks kept their cores, and these stayed where they mostly were. */
static struct bench_result summarise(const struct series *series, size_t *kept_p) {
    double lines[MOST_BATCHES + 1];
    double kept[MOST_BATCHES];
    size_t count = 0;

    for (size_t i = 0; i <= series->count; i++)
        lines[i] = series->reading[i].line_ns;
    double line_ns = hemt_median(lines, series->count + 1);
    for (size_t i = 0; i < series->count; i++) {
        if (undisturbed(series, i, line_ns))
            kept[count++] = series->mean[i];
    }
    *kept_p = count;
    return (struct bench_result){.ns = hemt_median(kept, count), .line_ns = line_ns};
}

static bool is_enough(const struct series *series, size_t kept, double elapsed_ns) {
    if (kept >= WANTED_BATCHES || series->count == MOST_BATCHES)
        return true;
    if (elapsed_ns > patience_ns && kept >= FEWEST_BATCHES)
        return true;
    return elapsed_ns > limit_ns && series->count >= FEWEST_SLOW_BATCHES;
}

struct bench_result bench_measure(const struct bench_world *world, bench_batch batch, void *ctx) {
    struct bench_result result = {0};
    struct series series = {0};
    uint64_t iters = settle(world, batch, ctx);
    double start = bench_now_ns();

    series.reading[0] = bench_yard_read(world);
    for (;;) {
        size_t kept;

        series.mean[series.count] = batch(ctx, iters) / (double)iters;
        series.reading[++series.count] = bench_yard_read(world);
        result = summarise(&series, &kept);
        bool enough = is_enough(&series, kept, bench_now_ns() - start);
        if (world->agree(world->ctx, enough) != 0)
            return result;
    }
}

struct bench_result bench_fastest(const struct bench_world *world, const bench_batch *batches,
                                  size_t count, void *ctx) {
    struct bench_result best = {0};

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        bool together = true;

        best = bench_measure(world, batches[0], ctx);
        for (size_t i = 1; i < count; i++) {
            struct bench_result next = bench_measure(world, batches[i], ctx);
            together = together && hemt_same_distance(best.line_ns, next.line_ns);
            if (best.ns <= 0 || (next.ns > 0 && next.ns < best.ns))
                best = next;
        }
        if (world->agree(world->ctx, together) != 0)
            break;
    }
    return best;
}
