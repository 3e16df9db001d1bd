/*
 * How this works. The caller's all-gather is used twice: first everybody says on which machine and
 * as which process it runs, then rank 0, which has made the arena, says under which abstract
 * socket name it hands out the descriptor. From there on nothing depends on the all-gather: a rank
 * that does not fetch the arena in time is declared ended in it, and the others find that when
 * they open the world over it.
 */
#include "base/status.h"
#include "core/bootstrap/bootstrap.h"
#include "core/bootstrap/handout.h"
#include "core/monitor.h"
#include "core/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Round one: who I am. */
typedef struct who_say {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    char machine[48]; /* the kernel's boot id */
} who_say;

/* Round two: where rank 0 hands out the arena. */
typedef struct where_say {
    uint64_t magic;
    int32_t status;
    uint32_t unused;
    hemi_handout_name name;
    char text[160];
} where_say;

static void read_machine(char *text, size_t size) {
    memset(text, 0, size);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (got <= 0)
        gethostname(text, size - 1);
    if (fd >= 0)
        close(fd);
}

static hem_status gather(const hem_world_options *options, const void *mine, void *all,
                         size_t bytes) {
    int result = options->allgather(options->allgather_ctx, mine, all, bytes);
    if (result != 0)
        return hemi_fail(HEM_ERR_SYSTEM, "hem_world_open: the allgather returned %d on rank %d",
                         result, options->rank);
    return HEM_OK;
}

/* Everything that came from the others is checked before it is used. */
static hem_status check_who(const who_say *all, int size) {
    for (int r = 0; r < size; r++) {
        if (all[r].magic != HEMI_ARENA_MAGIC || all[r].version != HEMI_LAYOUT_VERSION)
            return hemi_fail(HEM_ERR_MISMATCH, "rank %d has another version of Hem", r);
        if (strncmp(all[r].machine, all[0].machine, sizeof all[r].machine) != 0)
            return hemi_fail(HEM_ERR_UNSUPPORTED,
                             "rank %d is on another machine than rank 0, and this build has no "
                             "transport between machines",
                             r);
    }
    return HEM_OK;
}

static hem_status exchange_who(const hem_world_options *options, uint32_t **pids_p) {
    size_t size = (size_t)options->size;
    who_say *all = calloc(size, sizeof *all);
    uint32_t *pids = calloc(size, sizeof *pids);
    hem_status status = HEM_OK;
    if (all == NULL || pids == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for %zu ranks", size);
    who_say mine = {
        .magic = HEMI_ARENA_MAGIC, .version = HEMI_LAYOUT_VERSION, .pid = (uint32_t)getpid()};
    read_machine(mine.machine, sizeof mine.machine);
    if (status == HEM_OK)
        status = gather(options, &mine, all, sizeof mine);
    if (status == HEM_OK)
        status = check_who(all, options->size);
    for (size_t r = 0; status == HEM_OK && r < size; r++)
        pids[r] = all[r].pid;
    free(all);
    if (status != HEM_OK) {
        free(pids);
        return status;
    }
    *pids_p = pids;
    return HEM_OK;
}

/* Rank 0: make the arena and a place to fetch it from. */
static hem_status prepare(const hem_world_options *options, const uint32_t *pids,
                          hemi_arena *arena_p, hemi_handout **handout_p) {
    hemi_arena_plan plan = {.ranks = (uint32_t)options->size,
                            .kind = HEMI_KIND_CALLBACK,
                            .part_bytes = options->arena_bytes};
    hemi_arena arena;
    hem_status status = hemi_arena_make(&plan, hemi_platform_real(), &arena);
    if (status != HEM_OK)
        return status;
    for (uint32_t r = 0; r < arena.ranks; r++) {
        /* Known to the monitor from the start, so that nobody can die unseen. */
        hemi_rank_block *block = hemi_arena_rank(&arena, r);
        block->pid = pids[r];
        block->state = HEMI_STATE_ALIVE;
    }
    status = hemi_handout_open(hemi_platform_real(), handout_p);
    if (status != HEM_OK) {
        hemi_arena_unmap(&arena);
        return status;
    }
    *arena_p = arena;
    return HEM_OK;
}

static hem_status exchange_where(const hem_world_options *options, hem_status status,
                                 const hemi_handout *handout, hemi_handout_name *name_p) {
    where_say mine = {.magic = HEMI_ARENA_MAGIC, .status = status};
    if (status != HEM_OK)
        snprintf(mine.text, sizeof mine.text, "%s", hem_last_error());
    else if (handout != NULL)
        mine.name = *hemi_handout_where(handout);
    where_say *all = calloc((size_t)options->size, sizeof *all);
    if (all == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %d ranks", options->size);
    hem_status said = gather(options, &mine, all, sizeof mine);
    if (said == HEM_OK && all[0].magic != HEMI_ARENA_MAGIC)
        said = hemi_fail(HEM_ERR_MISMATCH, "rank 0 said something else in hem_world_open");
    if (said == HEM_OK && all[0].status != 0) {
        all[0].text[sizeof all[0].text - 1] = '\0';
        said = hemi_fail((hem_status)all[0].status, "rank 0: %s", all[0].text);
    }
    *name_p = all[0].name;
    free(all);
    return said;
}

static hem_status serve(const hem_world_options *options, int64_t timeout_ns, const uint32_t *pids,
                        hemi_arena *arena_p) {
    hemi_handout *handout = NULL;
    hem_status status = prepare(options, pids, arena_p, &handout);
    hemi_handout_name name;
    hem_status said = exchange_where(options, status, handout, &name);
    if (status == HEM_OK && said == HEM_OK)
        hemi_handout_serve(handout, arena_p, timeout_ns);
    hemi_handout_close(handout);
    if (status == HEM_OK && said != HEM_OK)
        hemi_arena_unmap(arena_p);
    return status != HEM_OK ? status : said;
}

static hem_status fetch(const hem_world_options *options, int64_t timeout_ns, hemi_arena *arena_p) {
    hemi_handout_name name;
    hem_status status = exchange_where(options, HEM_OK, NULL, &name);
    int fd = -1;
    if (status == HEM_OK)
        status = hemi_handout_fetch(&name, (uint32_t)options->rank, timeout_ns, &fd);
    if (status != HEM_OK)
        return status;
    status = hemi_arena_map(fd, true, arena_p);
    close(fd);
    if (status == HEM_OK && arena_p->ranks != (uint32_t)options->size) {
        hemi_arena_unmap(arena_p);
        return hemi_fail(HEM_ERR_MISMATCH, "rank 0 opened a world of %u ranks, this one of %d",
                         arena_p->ranks, options->size);
    }
    return status;
}

hem_status hemi_open_callback(const hem_world_options *options, hem_world **world_p) {
    int64_t timeout = 0;
    uint32_t *pids = NULL;
    hem_status status = hemi_open_timeout(options, &timeout);
    if (status == HEM_OK)
        status = exchange_who(options, &pids);
    if (status != HEM_OK)
        return status;
    hemi_arena arena;
    status = options->rank == 0 ? serve(options, timeout, pids, &arena)
                                : fetch(options, timeout, &arena);
    free(pids);
    if (status != HEM_OK)
        return status;
    hemi_root *root = NULL;
    status = hemi_root_attach(&arena, hemi_platform_real(), (uint32_t)options->rank, &root);
    if (status != HEM_OK)
        return status;
    if (options->size > 1)
        status = hemi_monitor_start(root, &root->monitor);
    if (status == HEM_OK)
        /* Twice the limit: rank 0 may have spent one on handing the arena out. */
        status = hemi_root_open_world(root, timeout < 0 ? timeout : 2 * timeout, timeout, world_p);
    hemi_root_drop(root);
    return status;
}
