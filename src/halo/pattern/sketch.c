#include "halo/pattern/sketch.h"

#include <stdlib.h>
#include <string.h>

/* One end of a link, to be put into the order of owners, then readers. */
typedef struct loose_end {
    uint32_t owner;
    uint32_t reader;
    size_t number; /* as it came */
    hemi_sketch_side side;
} loose_end;

typedef struct loose_ends {
    loose_end *ends;
    size_t count;
} loose_ends;

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_pattern_draw: no memory for the picture");
}

static hem_status tell_domain(const hem_pattern *pattern, const hemi_domain *domain,
                              const double *coordinates, hemi_bag *bag) {
    hemi_sketch_domain say = {.what = HEMI_SKETCH_DOMAIN,
                              .rank = pattern->rank,
                              .id = domain->id,
                              .points = domain->points,
                              .halo_points = domain->halo_points};
    size_t rest = coordinates != NULL ? domain->points * 2 * sizeof(double) : 0;
    void *data = NULL;
    memcpy(say.start, domain->box.start, sizeof say.start);
    memcpy(say.count, domain->box.count, sizeof say.count);
    hem_status status = hemi_bag_make(bag, pattern->rank, 0, sizeof say + rest, &data);
    if (status != HEM_OK)
        return status;
    memcpy(data, &say, sizeof say);
    if (rest > 0)
        memcpy((unsigned char *)data + sizeof say, coordinates, rest);
    return HEM_OK;
}

static hem_status tell_link(const hem_pattern *pattern, const hemi_link *link, uint32_t what,
                            hemi_bag *bag) {
    const hemi_points *points = &link->points;
    hemi_sketch_end say = {.what = what,
                           .peer = link->peer,
                           .domain = link->here,
                           .sides = link->sides,
                           .total = points->total};
    for (int k = 0; points->list == NULL && k < 2; k++) {
        int64_t last = points->count[k] - 1;
        say.start[points->axis[k]] = points->start[k] - (points->step[k] < 0 ? last : 0);
        say.count[points->axis[k]] = points->count[k];
    }
    size_t rest = points->list != NULL ? points->total * sizeof *points->list : 0;
    void *data = NULL;
    hem_status status = hemi_bag_make(bag, pattern->rank, 0, sizeof say + rest, &data);
    if (status != HEM_OK)
        return status;
    memcpy(data, &say, sizeof say);
    if (rest > 0)
        memcpy((unsigned char *)data + sizeof say, points->list, rest);
    return HEM_OK;
}

static hem_status tell_links(const hem_pattern *pattern, const hemi_links *links, uint32_t what,
                             hemi_bag *bag) {
    hem_status status = HEM_OK;
    for (size_t i = 0; i < links->count && status == HEM_OK; i++)
        status = tell_link(pattern, &links->links[i], what, bag);
    return status;
}

hem_status hemi_sketch_tell(const hem_pattern *pattern, const double *const *coordinates,
                            hemi_bag *bag) {
    hem_status status = HEM_OK;
    for (size_t i = 0; i < pattern->domain_count && status == HEM_OK; i++)
        status = tell_domain(pattern, &pattern->domains[i],
                             coordinates != NULL ? coordinates[i] : NULL, bag);
    if (status == HEM_OK)
        status = tell_links(pattern, &pattern->sends, HEMI_SKETCH_SEND, bag);
    if (status == HEM_OK)
        status = tell_links(pattern, &pattern->recvs, HEMI_SKETCH_RECV, bag);
    return status;
}

static hem_status nonsense(uint32_t rank) {
    return hemi_fail(HEM_ERR_MISMATCH, "hem_pattern_draw: rank %u described its part wrongly",
                     rank);
}

/* Where the domains of each rank begin, and how many things there are in all. */
static hem_status count_all(hemi_sketch *sketch, const hemi_bag *bag, size_t *firsts,
                            size_t *links_p) {
    size_t links = 0;
    uint32_t rank = 0;
    for (const hemi_record *at = hemi_bag_next(bag, NULL); at != NULL;
         at = hemi_bag_next(bag, at)) {
        uint32_t what = 0;
        if (at->bytes < sizeof what)
            return nonsense(at->from);
        memcpy(&what, hemi_record_data(at), sizeof what);
        for (; rank < at->from; rank++)
            firsts[rank + 1] = sketch->domain_count;
        sketch->domain_count += what == HEMI_SKETCH_DOMAIN;
        links += what == HEMI_SKETCH_RECV;
    }
    for (; rank < sketch->ranks; rank++)
        firsts[rank + 1] = sketch->domain_count;
    *links_p = links;
    return HEM_OK;
}

static hem_status take_domain(hemi_sketch *sketch, const hemi_record *record, size_t number) {
    const hemi_sketch_domain *domain = hemi_record_data(record);
    bool mesh = sketch->pattern->kind == HEMI_PATTERN_MESH;
    if (record->bytes < sizeof *domain)
        return nonsense(record->from);
    uint64_t rest = record->bytes - sizeof *domain;
    if (domain->rank != record->from || rest != (mesh ? rest / 16 * 16 : 0) ||
        (mesh && domain->points != rest / 16))
        return nonsense(record->from);
    sketch->domains[number] = domain;
    sketch->coordinates[number] = (const double *)(const void *)(domain + 1);
    return HEM_OK;
}

static hem_status take_end(const hemi_sketch *sketch, const hemi_record *record,
                           const size_t *firsts, loose_ends *into) {
    const hemi_sketch_end *end = hemi_record_data(record);
    bool mesh = sketch->pattern->kind == HEMI_PATTERN_MESH;
    if (record->bytes < sizeof *end)
        return nonsense(record->from);
    uint64_t rest = record->bytes - sizeof *end;
    size_t domain = firsts[record->from] + end->domain;
    if (end->peer >= sketch->ranks || domain >= firsts[record->from + 1] || rest % 8 != 0 ||
        rest / 8 != (mesh ? end->total : 0))
        return nonsense(record->from);
    const int64_t *list = (const int64_t *)(const void *)(end + 1);
    for (uint64_t i = 0; i < rest / 8; i++)
        if (list[i] < 0 || (uint64_t)list[i] >= sketch->domains[domain]->points)
            return nonsense(record->from);
    bool sends = end->what == HEMI_SKETCH_SEND;
    into->ends[into->count] = (loose_end){sends ? record->from : end->peer,
                                          sends ? end->peer : record->from,
                                          into->count,
                                          {end, list, domain}};
    into->count++;
    return HEM_OK;
}

static hem_status take_all(hemi_sketch *sketch, const hemi_bag *bag, const size_t *firsts,
                           size_t links, loose_ends *sends, loose_ends *recvs) {
    size_t domains = 0;
    hem_status status = HEM_OK;
    for (const hemi_record *at = hemi_bag_next(bag, NULL); at != NULL && status == HEM_OK;
         at = hemi_bag_next(bag, at)) {
        uint32_t what = 0;
        memcpy(&what, hemi_record_data(at), sizeof what);
        loose_ends *into = what == HEMI_SKETCH_SEND ? sends : recvs;
        if (what == HEMI_SKETCH_DOMAIN)
            status = take_domain(sketch, at, domains++);
        else
            status = into->count < links ? take_end(sketch, at, firsts, into) : nonsense(at->from);
    }
    return status;
}

static int compare(const void *left, const void *right) {
    const loose_end *a = left;
    const loose_end *b = right;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    if (a->reader != b->reader)
        return a->reader < b->reader ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The k-th link that a rank sends to another is the k-th that this one receives from it. */
static hem_status join_ends(hemi_sketch *sketch, loose_ends *sends, loose_ends *recvs) {
    if (sends->count != recvs->count)
        return nonsense(0);
    if (sends->count == 0)
        return HEM_OK;
    qsort(sends->ends, sends->count, sizeof *sends->ends, compare);
    qsort(recvs->ends, recvs->count, sizeof *recvs->ends, compare);
    for (size_t i = 0; i < sends->count; i++) {
        const loose_end *s = &sends->ends[i];
        const loose_end *r = &recvs->ends[i];
        if (s->owner != r->owner || s->reader != r->reader ||
            s->side.end->total != r->side.end->total)
            return nonsense(s->owner);
        sketch->links[sketch->link_count++] = (hemi_sketch_link){s->side, r->side};
    }
    return HEM_OK;
}

static hem_status put_together(hemi_sketch *sketch, const hemi_bag *bag, size_t *firsts) {
    size_t links = 0;
    hem_status status = count_all(sketch, bag, firsts, &links);
    if (status != HEM_OK)
        return status;
    size_t domains = sketch->domain_count + 1;
    loose_ends sends = {calloc(links + 1, sizeof *sends.ends), 0};
    loose_ends recvs = {calloc(links + 1, sizeof *recvs.ends), 0};
    sketch->domains = calloc(domains, sizeof(hemi_sketch_domain *));
    sketch->coordinates = calloc(domains, sizeof(double *));
    sketch->links = calloc(links + 1, sizeof *sketch->links);
    if (sends.ends == NULL || recvs.ends == NULL || sketch->domains == NULL ||
        sketch->coordinates == NULL || sketch->links == NULL)
        status = no_memory();
    if (status == HEM_OK)
        status = take_all(sketch, bag, firsts, links, &sends, &recvs);
    if (status == HEM_OK)
        status = join_ends(sketch, &sends, &recvs);
    free(sends.ends);
    free(recvs.ends);
    return status;
}

hem_status hemi_sketch_make(const hem_pattern *pattern, const hemi_bag *bag, hemi_sketch *sketch) {
    sketch->pattern = pattern;
    sketch->ranks = pattern->world->size;
    size_t *firsts = calloc((size_t)sketch->ranks + 1, sizeof *firsts);
    hem_status status = firsts != NULL ? put_together(sketch, bag, firsts) : no_memory();
    free(firsts);
    if (status != HEM_OK)
        hemi_sketch_free(sketch);
    return status;
}

void hemi_sketch_free(hemi_sketch *sketch) {
    free(sketch->domains);
    free(sketch->coordinates);
    free(sketch->links);
    sketch->domains = NULL;
    sketch->coordinates = NULL;
    sketch->links = NULL;
}
