/*
 * The head of an arena, as a rank gets it from its launcher: how long the file is (0: as long as
 * the head says), then patches to a good head as offset, length and bytes. What the check accepts
 * is made for real, mapped, and touched wherever the layout says that something lies.
 */
#include "input.h"

#include "core/root.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PART      (16ull << 20)
#define BYTES_MAX (1ull << 30)

static void good_head(hemi_arena_head *head, uint32_t ranks) {
    uint64_t align = 2ull << 20;
    memset(head, 0, sizeof *head);
    head->magic = HEMI_ARENA_MAGIC;
    head->version = HEMI_LAYOUT_VERSION;
    head->kind = HEMI_KIND_LAUNCHED;
    head->ranks = ranks;
    head->ranks_offset = HEMI_PAGE;
    head->team_offset = HEMI_PAGE + (uint64_t)ranks * sizeof(hemi_rank_block);
    head->parts_offset = (head->team_offset + hemi_team_bytes(ranks) + align - 1) / align * align;
    head->part_bytes = PART;
    head->total_bytes = head->parts_offset + (uint64_t)ranks * PART;
}

static int make_file(const hemi_arena_head *head) {
    int fd = memfd_create("fuzz-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(ftruncate(fd, (off_t)head->total_bytes) == 0);
    FUZZ_CHECK(pwrite(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head);
    FUZZ_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    return fd;
}

static void touch(const hemi_arena *arena) {
    uint32_t last = arena->ranks - 1;
    hemi_team *team = hemi_arena_at(arena, arena->team_offset);
    hemi_arena_rank(arena, 0)->host = 1;
    hemi_arena_rank(arena, last)->flights[HEMI_FLIGHTS - 1].fingerprint = 1;
    hemi_team_init(team, 0, HEMI_MAX_RANKS, NULL, arena->ranks);
    *(unsigned char *)hemi_arena_at(arena, hemi_arena_part(arena, last)) = 0;
    *(unsigned char *)hemi_arena_at(arena, arena->total_bytes - 1) = 1;
    FUZZ_CHECK(hemi_arena_in_part(arena, last, arena->total_bytes - 1, 1));
}

/* A rank that attaches to it prepares its heap, which lies in its part. */
static void attach(hemi_arena *arena, uint32_t rank) {
    hemi_root *root = NULL;
    if (hemi_root_attach(arena, hemi_platform_real(), rank, &root) == HEM_OK)
        hemi_root_drop(root);
}

static void map(const hemi_arena_head *head, uint32_t rank) {
    int fd = make_file(head);
    hemi_arena arena;
    hem_status status = hemi_arena_map(fd, true, &arena);
    close(fd);
    FUZZ_CHECK(status == HEM_OK || status == HEM_ERR_ARG || status == HEM_ERR_LIMIT);
    if (status != HEM_OK)
        return;
    touch(&arena);
    attach(&arena, rank % head->ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    hemi_arena_head head;
    uint64_t file_bytes = fuzz_u64(&in);
    uint32_t rank = fuzz_u8(&in);
    good_head(&head, 1 + rank % 8);
    while (in.left > 0) {
        size_t offset = fuzz_u8(&in) % (offsetof(hemi_arena_head, command) + 8);
        size_t n = 1 + fuzz_u8(&in) % 8;
        fuzz_take(&in, (uint8_t *)&head + offset, n);
    }
    if (hemi_arena_check(&head, file_bytes == 0 ? head.total_bytes : file_bytes) != NULL)
        return 0;
    FUZZ_CHECK(head.ranks >= 1 && head.ranks <= HEMI_MAX_RANKS);
    FUZZ_CHECK(head.total_bytes == head.parts_offset + head.part_bytes * head.ranks);
    if (head.total_bytes <= BYTES_MAX)
        map(&head, rank);
    return 0;
}
