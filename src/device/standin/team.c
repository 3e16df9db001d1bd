/*
 * Teams of the stand-in: one piece of memory with a part for each member, which all of them map. What
 * a GPU's switch does is done by the kernels' threads, part by part: kernels/coll_multi.h.
 */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <signal.h>
#include <string.h>

#define PAGE 4096u

static uint64_t bound;   /* how often a member was */
static uint32_t refused; /* the step that is to fail next, once */
static uint32_t deadly;  /* 1: by a death */

HEM_API void hemi_standin_team_refuse(hemi_standin_team_step step, bool dies) {
    hemi_store32_release(&deadly, dies);
    hemi_store32_release(&refused, (uint32_t)step);
}

HEM_API uint64_t hemi_standin_team_bound(void) {
    return hemi_load64_acquire(&bound);
}

static hem_status refuse(const void *context, hemi_standin_team_step step) {
    uint32_t wanted = (uint32_t)step;
    if (hemi_load32_acquire(&refused) != wanted || !hemi_cas32_acq_rel(&refused, &wanted, 0))
        return HEM_OK;
    if (hemi_load32_acquire(&deadly) != 0)
        (void)raise(SIGKILL);
    return hemi_standin_fail(context, HEM_ERR_SYSTEM, "the stand-in was told to refuse step %d",
                             (int)step);
}

uint32_t hemi_standin_team_size(const hemi_device_host *host) {
    const char *value = host->env("HEM_CUDA_MULTICAST");
    return value != NULL && strcmp(value, "0") != 0 ? UINT32_MAX : 0;
}

static uint64_t stride_of(uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static hem_status team_make(void *context, uint32_t members, uint64_t bytes, uint64_t group,
                            hemi_device_memory *team_p) {
    (void)group;
    hem_status status = refuse(context, HEMI_STANDIN_TEAM_MAKE);
    if (status == HEM_OK)
        status = hemi_standin_memory_ops.alloc(context, members * stride_of(bytes), team_p);
    if (status != HEM_OK)
        return status;
    team_p->bytes = bytes;
    (void)hemi_standin_range_members(team_p->address, members);
    return HEM_OK;
}

static hem_status team_join(void *context, const hemi_device_memory *team) {
    (void)team;
    return refuse(context, HEMI_STANDIN_TEAM_JOIN);
}

static hem_status team_bind(void *context, const hemi_device_memory *team, uint32_t index,
                            hemd_multi *multi_p) {
    uint64_t count = hemi_standin_range_members(team->address, 0);
    uint64_t stride = stride_of(team->bytes);
    hem_status status = refuse(context, HEMI_STANDIN_TEAM_BIND);
    if (status == HEM_OK && index >= count)
        status = hemi_standin_fail(context, HEM_ERR_ARG, "no member %u of %llu", index,
                                   (unsigned long long)count);
    if (status != HEM_OK)
        return status;
    unsigned char *first = team->address;
    *multi_p =
        (hemd_multi){.own = first + index * stride, .all = first, .stride = stride, .count = count};
    hemi_add64_acq_rel(&bound, 1);
    return HEM_OK;
}

const hemi_device_team_ops hemi_standin_team_ops = {
    .make = team_make,
    .join = team_join,
    .bind = team_bind,
};
