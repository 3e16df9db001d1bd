#include "link_check.h"

/* Two words per link, about itself, and one per point. */
struct names {
    int64_t *words;
    size_t count;
    size_t room;
    link_name name;
    void *arg;
};

void link_each_point(const hem_pattern *pattern, const hemi_link *link, link_visit visit,
                     void *arg) {
    const hemi_points *points = &link->points;
    int64_t index[HEM_DIMS] = {0};
    int64_t at[HEM_DIMS] = {0};

    for (uint64_t i = 0; i < points->total; i++) {
        uint64_t left = i;

        for (int k = pattern->dims - 1; k >= 0; k--) {
            index[k] = (int64_t)(left % (uint64_t)points->count[k]);
            left /= (uint64_t)points->count[k];
            at[points->axis[k]] = points->start[k] + index[k] * points->step[k];
        }
        visit(arg, link, at);
    }
}

static void add_word(struct names *names, int64_t word) {
    if (names->count == names->room) {
        names->room = 2 * names->room + 64;
        names->words = realloc(names->words, names->room * sizeof *names->words);
        CHECK(names->words != NULL);
    }
    names->words[names->count++] = word;
}

static void add_name(void *arg, const hemi_link *link, const int64_t *at) {
    struct names *names = arg;

    add_word(names, names->name(names->arg, link->here, at));
}

static void check_shape(const hem_pattern *pattern, const hemi_link *link) {
    uint64_t total = 1;
    unsigned axes = 0;

    CHECK(link->points.list == NULL && link->here < pattern->domain_count);
    for (int k = 0; k < pattern->dims; k++) {
        CHECK(link->points.count[k] > 0);
        CHECK(link->points.step[k] == 1 || link->points.step[k] == -1);
        axes |= 1u << link->points.axis[k];
        total *= (uint64_t)link->points.count[k];
    }
    CHECK_EQ(axes, (1u << pattern->dims) - 1);
    CHECK_EQ(link->points.total, total);
}

/* What one side of the links with `peer` says. Sender's domain, receiver's domain and sides first. */
static void tell(const hem_pattern *pattern, const hemi_links *links, uint32_t peer, bool sending,
                 struct names *names) {
    for (size_t i = 0; i < links->count; i++) {
        const hemi_link *link = &links->links[i];
        uint32_t from = sending ? link->here : link->there;
        uint32_t to = sending ? link->there : link->here;

        if (link->peer != peer)
            continue;
        check_shape(pattern, link);
        add_word(names, (int64_t)from << 32 | to);
        add_word(names, (int64_t)link->points.total << 32 | link->sides);
        link_each_point(pattern, link, add_name, names);
    }
}

static void check_order(const hemi_links *links, int size) {
    for (size_t i = 0; i < links->count; i++)
        CHECK(links->links[i].peer < (uint32_t)size &&
              (i == 0 || links->links[i - 1].peer <= links->links[i].peer));
}

static uint64_t total_points(const hemi_links *links, uint32_t me, bool own) {
    uint64_t all = 0;

    for (size_t i = 0; i < links->count; i++)
        all += (links->links[i].peer == me) == own ? links->links[i].points.total : 0;
    return all;
}

static void check_facts(const hem_pattern *pattern, uint32_t me) {
    hem_pattern_facts facts = {.struct_size = sizeof facts};

    CHECK_OK(hem_pattern_info(pattern, &facts));
    CHECK_EQ(facts.send_points, total_points(&pattern->sends, me, false));
    CHECK_EQ(facts.recv_points, total_points(&pattern->recvs, me, false));
    CHECK_EQ(facts.local_points, total_points(&pattern->recvs, me, true));
    CHECK_EQ(facts.local_points, total_points(&pattern->sends, me, true));
    CHECK_EQ(facts.holes, pattern->holes);
    CHECK_EQ(facts.domains, pattern->domain_count);
    CHECK_EQ(facts.dims, pattern->dims);
}

void link_check_sides(hem_world *world, const hem_pattern *pattern, link_name name, void *arg) {
    int size = hem_world_size(world);
    hem_parcel *parcels = calloc((size_t)size, sizeof *parcels);
    struct names names = {.name = name, .arg = arg};
    hem_sparse_result result = {0};

    CHECK(parcels != NULL);
    check_order(&pattern->sends, size);
    check_order(&pattern->recvs, size);
    check_facts(pattern, (uint32_t)hem_world_rank(world));
    for (int r = 0; r < size; r++) {
        names.words = NULL;
        names.count = names.room = 0;
        tell(pattern, &pattern->sends, (uint32_t)r, true, &names);
        parcels[r] = (hem_parcel){r, names.count * sizeof *names.words, names.words};
    }
    CHECK_OK(hem_sparse(world, parcels, (size_t)size, &result, LIMIT));
    CHECK_EQ(result.count, size);
    names.words = NULL;
    names.room = 0;
    for (int r = 0; r < size; r++) {
        const hem_parcel *parcel = &result.parcels[r];

        names.count = 0;
        tell(pattern, &pattern->recvs, (uint32_t)r, false, &names);
        CHECK_EQ(parcel->peer, r);
        CHECK_EQ(parcel->bytes, names.count * sizeof *names.words);
        CHECK(parcel->bytes == 0 || memcmp(parcel->data, names.words, parcel->bytes) == 0);
        free((void *)(uintptr_t)parcels[r].data);
    }
    free(names.words);
    free(parcels);
    hem_sparse_free(&result);
}
