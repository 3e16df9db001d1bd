#include "coll/select.h"

/* Up to this many bytes more than two ranks combine the whole vector each: one wait, not two. */
#define ONCE_BYTES (8u << 10)
/* The same for two ranks. */
#define ONCE_BYTES_TWO (64u << 10)

static const hemi_choice table[] = {
#include "coll/table.h"
    {HEM_BARRIER, UINT32_MAX, UINT64_MAX, HEMI_DIRECT},
};

static const char *const kind_names[] = {
    [HEM_BARRIER] = "barrier",
    [HEM_BROADCAST] = "broadcast",
    [HEM_REDUCE] = "reduce",
    [HEM_ALLREDUCE] = "allreduce",
    [HEM_ALLGATHER] = "allgather",
    [HEM_ALLGATHERV] = "allgatherv",
    [HEM_REDUCE_SCATTER] = "reduce_scatter",
    [HEM_REDUCE_SCATTERV] = "reduce_scatterv",
    [HEM_GATHER] = "gather",
    [HEM_GATHERV] = "gatherv",
    [HEM_SCATTER] = "scatter",
    [HEM_SCATTERV] = "scatterv",
    [HEM_ALLTOALL] = "alltoall",
    [HEM_ALLTOALLV] = "alltoallv",
    [HEMI_KIND_SPARSE] = "sparse",
};

const char *hemi_kind_name(hem_coll_kind kind) {
    return (size_t)kind < sizeof kind_names / sizeof kind_names[0] ? kind_names[kind] : NULL;
}

uint64_t hemi_select_bytes(const hemi_job *job) {
    uint64_t count = job->count;
    if (job->kind == HEM_ALLGATHERV || job->kind == HEM_REDUCE_SCATTERV) {
        count = 0;
        for (uint32_t r = 0; r < job->size; r++)
            if (job->counts[r] > count)
                count = job->counts[r];
    } else if (job->kind == HEM_GATHERV || job->kind == HEM_SCATTERV ||
               job->kind == HEM_ALLTOALLV) {
        count = 0; /* no two ranks know the same */
    }
    return count * job->element;
}

static const hemi_method *find_direct(const hemi_job *job) {
    switch ((int)job->kind) {
    case HEM_BARRIER:
        return &hemi_direct_barrier;
    case HEM_BROADCAST:
        return &hemi_direct_broadcast;
    case HEM_ALLREDUCE:
        return hemi_select_bytes(job) > (job->size > 2 ? ONCE_BYTES : ONCE_BYTES_TWO)
                   ? &hemi_direct_reduce_twice
                   : &hemi_direct_reduce_once;
    case HEM_REDUCE:
        return &hemi_direct_reduce_once;
    case HEM_ALLGATHER:
    case HEM_ALLGATHERV:
    case HEM_GATHER:
        return &hemi_direct_gather;
    case HEM_REDUCE_SCATTER:
    case HEM_REDUCE_SCATTERV:
        return &hemi_direct_reduce_scatter;
    case HEM_ALLTOALL:
        return &hemi_direct_alltoall;
    case HEM_SCATTER:
        return &hemi_direct_scatter;
    case HEMI_KIND_SPARSE:
        return &hemi_direct_sparse;
    default:
        return &hemi_direct_exchange;
    }
}

/* Whether the algorithm of this name can do the job; it is filled in then. */
static bool can(const hemi_job *job, const char *name, uint64_t stage_bytes,
                const hemi_method **method_p, const hemi_algorithm **plan_p) {
    if (strcmp(name, HEMI_DIRECT) == 0) {
        *method_p = find_direct(job);
        return (*method_p)->fits(job, stage_bytes);
    }
    *plan_p = hemi_algorithm_find(name, job->kind);
    *method_p = &hemi_planned;
    return *plan_p != NULL && (*plan_p)->fits(job);
}

/* What HEM_ALGORITHM, such as "allreduce=ring,broadcast=tree", says about this kind. */
static hem_status read_wish(const char *text, const char *kind, char *name, size_t room) {
    name[0] = '\0';
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        size_t equals = strcspn(text, "=");
        if (equals >= length || length - equals - 1 >= room)
            return hemi_fail(HEM_ERR_ARG, "HEM_ALGORITHM: \"%.*s\" is not kind=algorithm",
                             (int)length, text);
        if (strlen(kind) == equals && strncmp(text, kind, equals) == 0) {
            memcpy(name, text + equals + 1, length - equals - 1);
            name[length - equals - 1] = '\0';
        }
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return HEM_OK;
}

static hem_status follow_wish(const hem_world *world, const hemi_job *job, uint64_t stage_bytes,
                              const hemi_method **method_p, const hemi_algorithm **plan_p) {
    char name[32];
    const char *kind = hemi_kind_name(job->kind);
    *method_p = NULL;
    hem_status status = read_wish(world->root->settings.algorithm, kind, name, sizeof name);
    if (status != HEM_OK || name[0] == '\0')
        return status;
    if (strcmp(name, HEMI_DIRECT) != 0 && hemi_algorithm_find(name, job->kind) == NULL)
        return hemi_fail(HEM_ERR_ARG, "HEM_ALGORITHM: there is no %s for %s", name, kind);
    if (!can(job, name, stage_bytes, method_p, plan_p))
        *method_p = NULL;
    return HEM_OK;
}

hem_status hemi_select(const hem_world *world, const hemi_job *job, uint64_t stage_bytes,
                       const hemi_method **method_p, const hemi_algorithm **plan_p) {
    if (__builtin_expect(world->root->settings.algorithm[0] != '\0', 0)) {
        hem_status status = follow_wish(world, job, stage_bytes, method_p, plan_p);
        if (status != HEM_OK || *method_p != NULL)
            return status;
    }
    uint64_t bytes = hemi_select_bytes(job);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == job->kind && job->size <= table[i].ranks && bytes <= table[i].bytes &&
            can(job, table[i].name, stage_bytes, method_p, plan_p))
            return HEM_OK;
    if (can(job, HEMI_DIRECT, stage_bytes, method_p, plan_p))
        return HEM_OK;
    size_t count = 0;
    const hemi_algorithm *all = hemi_algorithms(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].kind == job->kind && can(job, all[i].name, stage_bytes, method_p, plan_p))
            return HEM_OK;
    return hemi_fail(HEM_ERR_UNSUPPORTED,
                     "%s of elements of %zu bytes: raise HEM_COLL_BYTES, now %llu",
                     hemi_kind_name(job->kind), job->element, (unsigned long long)stage_bytes);
}
