#include "core/arena.h"

#include "base/env.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_MIN (16u << 20)
#define PART_MAX (1ull << 40)
/* Address space for all parts together: well inside of the 47 bits that a process has. */
#define TOTAL_MAX (1ull << 45)
/* Parts start at multiples of this, so that huge pages could back them. */
#define PART_ALIGN (2ull << 20)

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static uint64_t machine_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0)
        return 4ull << 30;
    return (uint64_t)pages * (uint64_t)page;
}

/* Where the parts begin: behind the head, the rank blocks and the team of all. */
static uint64_t team_offset(uint32_t ranks) {
    return HEMI_PAGE + (uint64_t)ranks * sizeof(hemi_rank_block);
}

static uint64_t parts_offset(uint32_t ranks) {
    return round_up(team_offset(ranks) + hemi_team_bytes(ranks), PART_ALIGN);
}

/* How much address space one part gets: what was asked for, or the machine's memory within limits. */
static hem_status choose_part(const hemi_arena_plan *plan, uint64_t *part_p) {
    uint64_t part = plan->part_bytes;
    if (part == 0) {
        hem_status status = hemi_env_number("HEM_ARENA_SIZE", PART_MIN, PART_MAX, &part);
        if (status != HEM_OK)
            return status;
    }
    bool asked = part != 0;
    if (!asked)
        part = machine_bytes();
    uint64_t limit = TOTAL_MAX;
    const char *whose = "RLIMIT_AS, ulimit -v";
    struct rlimit bound;
    if (getrlimit(RLIMIT_AS, &bound) == 0 && bound.rlim_cur / 2 < limit)
        limit = bound.rlim_cur / 2;
    /* Shared memory is a file to the kernel, and one that is too large ends the process. */
    if (getrlimit(RLIMIT_FSIZE, &bound) == 0 && bound.rlim_cur < limit) {
        uint64_t before = parts_offset(plan->ranks);
        limit = bound.rlim_cur > before ? bound.rlim_cur - before : 0;
        whose = "RLIMIT_FSIZE, ulimit -f";
    }
    uint64_t most = limit / plan->ranks / PART_ALIGN * PART_ALIGN;
    part = round_up(part, PART_ALIGN);
    if (part > most && !asked)
        part = most;
    if (part > most || part < PART_MIN)
        return hemi_fail(
            HEM_ERR_LIMIT,
            "%u ranks with %" PRIu64 " MiB of address space each do not fit: at most "
            "%" PRIu64 " MiB are allowed in all (%s), and each needs %u MiB; raise the "
            "limit or set HEM_ARENA_SIZE",
            plan->ranks, (asked ? part : PART_MIN) >> 20, limit >> 20, whose, PART_MIN >> 20);
    *part_p = part;
    return HEM_OK;
}

static void lay_out(hemi_arena_head *head, const hemi_arena_plan *plan, uint64_t part,
                    const hemi_platform *platform) {
    head->magic = HEMI_ARENA_MAGIC;
    head->version = HEMI_LAYOUT_VERSION;
    head->kind = plan->kind;
    head->ranks = plan->ranks;
    head->maker_pid = (uint32_t)getpid();
    head->ranks_offset = HEMI_PAGE;
    head->team_offset = team_offset(plan->ranks);
    head->parts_offset = parts_offset(plan->ranks);
    head->part_bytes = part;
    head->reserve_bytes = round_up(plan->reserve_bytes, HEMI_PAGE);
    if (head->reserve_bytes > part / 2)
        head->reserve_bytes = part / 2;
    head->total_bytes = head->parts_offset + part * plan->ranks;
    head->job = platform->random(platform->ctx);
    head->start_ns = platform->now(platform->ctx);
    snprintf(head->command, sizeof head->command, "%s", plan->command ? plan->command : "");
}

static void init_root_team(hemi_arena *arena) {
    hemi_team *team = hemi_arena_at(arena, arena->team_offset);
    hemi_team_init(team, 0, HEMI_MAX_RANKS, NULL, arena->ranks);
}

void hemi_team_init(hemi_team *team, uint64_t id, uint32_t owner, const uint32_t *members,
                    uint32_t size) {
    team->magic = HEMI_TEAM_MAGIC;
    team->id = id;
    team->size = size;
    team->owner = owner;
    team->bytes = hemi_team_bytes(size);
    uint32_t *table = hemi_team_members(team, size);
    for (uint32_t i = 0; i < size; i++)
        table[i] = members != NULL ? members[i] : i;
}

/* Reserve and fill in what every arena has from the start. */
static hem_status fill(hemi_arena *arena, const hemi_arena_plan *plan,
                       const hemi_arena_head *head) {
    hem_status status =
        hemi_arena_reserve(arena, 0, head->team_offset + hemi_team_bytes(plan->ranks));
    for (uint32_t r = 0; status == HEM_OK && head->reserve_bytes > 0 && r < plan->ranks; r++)
        status = hemi_arena_reserve(arena, hemi_arena_part(arena, r) + HEMI_HEAP_META,
                                    head->reserve_bytes);
    if (status != HEM_OK)
        return status;
    memcpy(arena->head, head, sizeof *head);
    init_root_team(arena);
    return HEM_OK;
}

static hem_status map_file(int fd, bool writable, uint64_t bytes, unsigned char **base_p) {
    int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *base = mmap(NULL, bytes, access, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        int error = errno;
        return hemi_fail(error == ENOMEM ? HEM_ERR_LIMIT : HEM_ERR_SYSTEM,
                         "cannot map %" PRIu64 " MiB of shared memory: %s (raise RLIMIT_AS, ulimit "
                         "-v, or set HEM_ARENA_SIZE lower)",
                         bytes >> 20, strerror(error));
    }
    /* A core file should not hold the ranks' shared memory once per rank. */
    madvise(base, bytes, MADV_DONTDUMP);
    *base_p = base;
    return HEM_OK;
}

static void adopt(hemi_arena *arena, const hemi_arena_head *head) {
    arena->head = (hemi_arena_head *)(void *)arena->base;
    arena->total_bytes = head->total_bytes;
    arena->ranks_offset = head->ranks_offset;
    arena->team_offset = head->team_offset;
    arena->parts_offset = head->parts_offset;
    arena->part_bytes = head->part_bytes;
    arena->reserve_bytes = head->reserve_bytes;
    arena->ranks = head->ranks;
    arena->kind = head->kind;
}

static hem_status make_file(uint64_t bytes, int *fd_p) {
    int fd = memfd_create("hem-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return hemi_fail_errno(errno, "cannot make shared memory (memfd_create)");
    if (ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int error = errno;
        close(fd);
        return hemi_fail_errno(error, "cannot size shared memory to %" PRIu64 " MiB", bytes >> 20);
    }
    *fd_p = fd;
    return HEM_OK;
}

hem_status hemi_arena_make(const hemi_arena_plan *plan, const hemi_platform *platform,
                           hemi_arena *arena_p) {
    if (plan->ranks < 1 || plan->ranks > HEMI_MAX_RANKS)
        return hemi_fail(HEM_ERR_LIMIT, "a world has 1 to %d ranks, not %u", HEMI_MAX_RANKS,
                         plan->ranks);
    uint64_t part = 0;
    hem_status status = choose_part(plan, &part);
    if (status != HEM_OK)
        return status;
    hemi_arena_head head = {0};
    lay_out(&head, plan, part, platform);
    hemi_arena arena = {.fd = -1};
    status = make_file(head.total_bytes, &arena.fd);
    if (status == HEM_OK)
        status = map_file(arena.fd, true, head.total_bytes, &arena.base);
    if (status == HEM_OK) {
        adopt(&arena, &head);
        status = fill(&arena, plan, &head);
    }
    if (status != HEM_OK) {
        hemi_arena_unmap(&arena);
        return status;
    }
    *arena_p = arena;
    return HEM_OK;
}

const char *hemi_arena_check(const hemi_arena_head *head, uint64_t file_bytes) {
    if (head->magic != HEMI_ARENA_MAGIC)
        return "not an arena";
    if (head->version != HEMI_LAYOUT_VERSION)
        return "an arena of another version of Hem";
    if (head->kind < HEMI_KIND_LAUNCHED || head->kind > HEMI_KIND_ALONE)
        return "an arena of an unknown kind";
    if (head->ranks < 1 || head->ranks > HEMI_MAX_RANKS)
        return "an arena with an impossible number of ranks";
    if (head->total_bytes != file_bytes || head->total_bytes > 2 * TOTAL_MAX)
        return "an arena whose length is not what it says";
    if (head->ranks_offset != HEMI_PAGE || head->team_offset != team_offset(head->ranks) ||
        head->parts_offset != parts_offset(head->ranks))
        return "an arena whose blocks lie in the wrong place";
    if (head->part_bytes < PART_MIN || head->part_bytes % PART_ALIGN != 0 ||
        head->part_bytes > TOTAL_MAX / head->ranks ||
        head->total_bytes != head->parts_offset + head->part_bytes * head->ranks ||
        head->reserve_bytes % HEMI_PAGE != 0 || head->reserve_bytes > head->part_bytes / 2)
        return "an arena whose parts do not add up";
    return NULL;
}

hem_status hemi_arena_map(int fd, bool writable, hemi_arena *arena_p) {
    struct stat file;
    if (fstat(fd, &file) != 0)
        return hemi_fail_errno(errno, "descriptor %d is not shared memory", fd);
    /* Otherwise a peer could make it shorter under our feet. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return hemi_fail(HEM_ERR_ARG, "descriptor %d is not sealed shared memory", fd);
    hemi_arena_head head;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return hemi_fail(HEM_ERR_ARG, "descriptor %d is not an arena", fd);
    const char *wrong = hemi_arena_check(&head, (uint64_t)file.st_size);
    if (wrong != NULL)
        return hemi_fail(HEM_ERR_ARG, "descriptor %d is %s", fd, wrong);
    hemi_arena arena = {.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    if (arena.fd < 0)
        return hemi_fail_errno(errno, "cannot keep the arena's descriptor (RLIMIT_NOFILE, ulimit "
                                      "-n)");
    hem_status status = map_file(arena.fd, writable, head.total_bytes, &arena.base);
    if (status != HEM_OK) {
        hemi_arena_unmap(&arena);
        return status;
    }
    adopt(&arena, &head);
    *arena_p = arena;
    return HEM_OK;
}

void hemi_arena_unmap(hemi_arena *arena) {
    if (arena->base != NULL && !arena->borrowed)
        munmap(arena->base, arena->total_bytes);
    if (arena->fd >= 0 && !arena->borrowed)
        close(arena->fd);
    arena->base = NULL;
    arena->head = NULL;
    arena->fd = -1;
}

hem_status hemi_arena_reserve(const hemi_arena *arena, uint64_t offset, uint64_t bytes) {
    int result = 0;
    do {
        HEMI_POINT();
        result = fallocate(arena->fd, 0, (off_t)offset, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        return hemi_fail(HEM_ERR_MEMORY, "cannot reserve %" PRIu64 " bytes of shared memory: %s",
                         bytes, strerror(errno));
    return HEM_OK;
}

void hemi_arena_release(const hemi_arena *arena, uint64_t offset, uint64_t bytes) {
    int result = 0;
    do {
        HEMI_POINT();
        result = fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                           (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        /* Where the kernel cannot punch holes, at least what was there must read as zero. */
        memset(hemi_arena_at(arena, offset), 0, bytes);
}

bool hemi_arena_in_part(const hemi_arena *arena, uint32_t root_rank, uint64_t offset,
                        uint64_t bytes) {
    if (root_rank >= arena->ranks)
        return false;
    uint64_t start = hemi_arena_part(arena, root_rank) + HEMI_HEAP_META;
    uint64_t most = arena->part_bytes - HEMI_HEAP_META;
    return offset >= start && bytes <= most && offset - start <= most - bytes;
}
