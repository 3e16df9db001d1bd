/*
 * How this works. All boxes of a cut into p[0] x p[1] x ... parts together have a surface of
 * 2 x volume x (p[0] / extent[0] + p[1] / extent[1] + ...), so that this sum is made as small as the
 * divisors of the number of parts allow. The search goes through them dimension by dimension and
 * leaves out what cannot become better: k fractions whose product is q add up to at least k times
 * the k-th root of q, and to that only if they are equal.
 */
#include "base/status.h"
#include "halo/pattern/box.h"

#include <inttypes.h>
#include <stdlib.h>

/** The most divisors that a number below 2 to the power of 63 has. */
#define DIVISORS_MAX 161280

/* Sums that differ by less are equal; then the first dimensions are cut more: in C order, faces
 * there are contiguous. */
#define SLACK 1e-12L

typedef struct search {
    int dims;
    const int64_t *extent;
    int64_t *divisors; /* ascending */
    size_t count;
    int64_t now[HEM_DIMS];
    int64_t best[HEM_DIMS];
    long double best_sum; /* negative: none yet */
} search;

/* Whether parts of the dimensions from `dim` on, `rest` in all, can be as good as the best. */
static bool promises(const search *s, int dim, long double rest, long double sum) {
    long double room = s->best_sum * (1 + SLACK) - sum;
    long double power = 1;
    if (s->best_sum < 0)
        return true;
    for (int d = dim; d < s->dims; d++) {
        rest *= (long double)(s->dims - dim) / (long double)s->extent[d];
        power *= room;
    }
    return room >= 0 && (dim == s->dims || rest <= power);
}

/* The first divisor that is more than the parts that would be ideal for `dim`. */
static size_t find_ideal(const search *s, int dim, int64_t rest) {
    long double ideal = (long double)rest;
    size_t low = 0;
    size_t high = s->count;
    for (int d = dim; d < s->dims; d++)
        ideal /= (long double)s->extent[d];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        long double power = 1;
        for (int d = dim; d < s->dims; d++)
            power *= (long double)s->divisors[middle] / (long double)s->extent[dim];
        if (power <= ideal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether the dimensions from `dim` on have so many points at all. */
static bool has_room(const search *s, int dim, int64_t rest) {
    long double points = 1 + SLACK;
    for (int d = dim; d < s->dims; d++)
        points *= (long double)s->extent[d];
    return (long double)rest <= points;
}

/* Keep it if it is better, or as good and cuts the first dimensions more. */
static void judge(search *s, long double sum) {
    bool better = s->best_sum < 0 || sum < s->best_sum * (1 - SLACK);
    for (int d = 0; d < s->dims && !better && s->now[d] >= s->best[d]; d++)
        better = s->now[d] > s->best[d];
    if (!better)
        return;
    for (int d = 0; d < s->dims; d++)
        s->best[d] = s->now[d];
    s->best_sum = sum;
}

static bool look(search *s, int dim, int64_t rest, long double sum, int64_t parts);

/* Try all numbers of parts of a dimension, from the ideal one up and down. What they promise becomes
 * less on the way, so that each way ends with the first one that is not good enough. */
static void look_around(search *s, int dim, int64_t rest, long double sum) {
    if (dim == s->dims) {
        judge(s, sum);
    } else if (dim == s->dims - 1) {
        (void)look(s, dim, rest, sum, rest);
    } else {
        size_t ideal = find_ideal(s, dim, rest);
        for (size_t i = ideal; i < s->count && look(s, dim, rest, sum, s->divisors[i]); i++)
            continue;
        for (size_t i = ideal; i > 0 && look(s, dim, rest, sum, s->divisors[i - 1]); i--)
            continue;
    }
}

/* Try `parts` of a dimension. @return false if it does not promise anything. */
static bool look(search *s, int dim, int64_t rest, long double sum, int64_t parts) {
    sum += (long double)parts / (long double)s->extent[dim];
    if (!promises(s, dim + 1, (long double)rest / (long double)parts, sum))
        return false;
    if (rest % parts == 0 && parts <= s->extent[dim] && has_room(s, dim + 1, rest / parts)) {
        s->now[dim] = parts;
        look_around(s, dim + 1, rest / parts, sum);
    }
    return true;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Add the divisors that have `prime`, which is in the number `power` times. */
static size_t multiply(int64_t *divisors, size_t count, int64_t prime, int power) {
    size_t all = count;
    for (int k = 0; k < power; k++)
        for (size_t i = 0; i < count; i++, all++)
            divisors[all] = divisors[all - count] * prime;
    return all;
}

/* All divisors of `parts`, or 0 of them if a prime is larger than `most`. */
static size_t find_divisors(int64_t parts, int64_t most, int64_t *divisors) {
    size_t count = 1;
    divisors[0] = 1;
    for (int64_t prime = 2; parts > 1; prime += prime == 2 ? 1 : 2) {
        int power = 0;
        if (prime > parts / prime)
            prime = parts;
        if (prime > most)
            return 0;
        for (; parts % prime == 0; parts /= prime)
            power++;
        count = multiply(divisors, count, prime, power);
    }
    qsort(divisors, count, sizeof *divisors, ascending);
    return count;
}

static hem_status check(int dims, const int64_t *extent, int64_t parts, const void *cut_p) {
    if (extent == NULL || cut_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_grid_balance: extent or cut_p is NULL");
    if (dims < 1 || dims > HEM_DIMS)
        return hemi_fail(HEM_ERR_ARG, "hem_grid_balance: %d dimensions: 1 to %d can be", dims,
                         HEM_DIMS);
    if (parts < 1)
        return hemi_fail(HEM_ERR_ARG, "hem_grid_balance: %" PRId64 " parts: at least 1", parts);
    for (int d = 0; d < dims; d++)
        if (extent[d] < 1 || extent[d] > HEMI_POINTS_MAX)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_grid_balance: extent %" PRId64 " of dimension %d: 1 to 2^62",
                             extent[d], d);
    return HEM_OK;
}

hem_status hem_grid_balance(int dims, const int64_t *extent, int64_t parts, hem_grid_cut *cut_p) {
    search s = {.dims = dims, .extent = extent, .best_sum = -1};
    int64_t most = 0;
    hem_status status = check(dims, extent, parts, cut_p);
    if (status != HEM_OK)
        return status;
    s.divisors = malloc(DIVISORS_MAX * sizeof *s.divisors);
    if (s.divisors == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_grid_balance: no memory");
    for (int d = 0; d < dims; d++)
        most = extent[d] > most ? extent[d] : most;
    s.count = find_divisors(parts, most, s.divisors);
    if (s.count > 0)
        look_around(&s, 0, parts, 0);
    free(s.divisors);
    if (s.best_sum < 0)
        return hemi_fail(HEM_ERR_RANGE,
                         "hem_grid_balance: no cut into %" PRId64 " parts leaves each a point",
                         parts);
    *cut_p = (hem_grid_cut){.dims = dims};
    for (int d = 0; d < dims; d++) {
        cut_p->extent[d] = extent[d];
        cut_p->parts[d] = s.best[d];
    }
    return HEM_OK;
}

/* The number of parts, or 0 if it is no cut. */
static int64_t all_parts(const hem_grid_cut *cut) {
    int64_t all = 1;
    if (cut == NULL || cut->dims < 1 || cut->dims > HEM_DIMS)
        return 0;
    for (int d = 0; d < cut->dims; d++)
        if (cut->parts[d] < 1 || cut->parts[d] > cut->extent[d] ||
            cut->extent[d] > HEMI_POINTS_MAX || __builtin_mul_overflow(all, cut->parts[d], &all))
            return 0;
    return all;
}

hem_status hem_grid_part(const hem_grid_cut *cut, int64_t part, hem_box *box_p) {
    int64_t all = all_parts(cut);
    hem_box box = {0};
    if (all == 0 || box_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_grid_part: no cut, or box_p is NULL");
    if (part < 0 || part >= all)
        return hemi_fail(HEM_ERR_RANGE, "hem_grid_part: part %" PRId64 " of %" PRId64, part, all);
    for (int d = cut->dims - 1; d >= 0; d--) {
        int64_t at = part % cut->parts[d];
        int64_t count = cut->extent[d] / cut->parts[d];
        int64_t longer = cut->extent[d] % cut->parts[d];
        box.start[d] = at * count + (at < longer ? at : longer);
        box.count[d] = count + (at < longer);
        part /= cut->parts[d];
    }
    *box_p = box;
    return HEM_OK;
}

/* `at` moved by `step` within `parts`, or -1. */
static int64_t move(int64_t at, int64_t step, int64_t parts, bool periodic) {
    if (periodic) {
        at += step % parts;
        return at < 0 ? at + parts : at >= parts ? at - parts : at;
    }
    return step < -at || step > parts - 1 - at ? -1 : at + step;
}

int64_t hem_grid_neighbour(const hem_grid_cut *cut, const bool *periodic, int64_t part,
                           const int64_t *step) {
    int64_t all = all_parts(cut);
    int64_t neighbour = 0;
    int64_t weight = 1;
    if (all == 0 || step == NULL || part < 0 || part >= all)
        return -1;
    for (int d = cut->dims - 1; d >= 0; d--) {
        int64_t at =
            move(part % cut->parts[d], step[d], cut->parts[d], periodic != NULL && periodic[d]);
        if (at < 0)
            return -1;
        neighbour += at * weight;
        weight *= cut->parts[d];
        part /= cut->parts[d];
    }
    return neighbour;
}
