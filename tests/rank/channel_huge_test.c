/*
 * A message of 5 GiB and a few bytes arrives whole, once; and lengths beyond 4 GiB are never cut to
 * 32 bits: a room of more than that takes a short message.
 *
 * The large one runs only with HEM_TEST_FULL=1 or HEM_SOAK=1, and where the machine has the memory.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=180 labels=soak
 */
#include "channel_kit.h"

#include <sys/mman.h>
#include <unistd.h>

/* The sender's pages repeat; not in step with anything that could be mistaken for anything. */
#define PERIOD ((size_t)61 << 20)
#define HUGE   (((size_t)5 << 30) + 12345)

static bool wanted(const char *name) {
    const char *text = getenv(name);

    return text && *text && strcmp(text, "0") != 0;
}

static long available_mib(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = 0;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib / 1024;
}

/* `bytes` of address space in which one file is mapped over and over. */
static uint8_t *repeated(size_t bytes) {
    size_t whole = (bytes + PERIOD - 1) / PERIOD * PERIOD;
    uint8_t *at = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int fd = memfd_create("pattern", MFD_CLOEXEC);

    CHECK(at != MAP_FAILED && fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)PERIOD), 0);
    for (size_t i = 0; i < whole; i += PERIOD)
        CHECK(mmap(at + i, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
              at + i);
    close(fd);
    chan_fill(at, PERIOD, 1);
    return at;
}

static uint8_t *reserved(size_t bytes) {
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(at != MAP_FAILED);
    /* Fewer page faults, which are most of the time that this test takes; not to be had is no loss. */
    (void)madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

static void send_huge(hem_world *world) {
    uint8_t *data = repeated(HUGE);

    CHECK_OK(hem_send(world, 1, 0, data, HUGE, HEM_SEC(160)));
    CHECK_EQ(munmap(data, (HUGE + PERIOD - 1) / PERIOD * PERIOD), 0);
}

static void recv_huge(hem_world *world) {
    uint8_t *data = reserved(HUGE + 4096);
    size_t got = 0;

    CHECK_OK(hem_recv(world, 0, 0, data, HUGE + 10, &got, HEM_SEC(160)));
    CHECK_EQ(got, HUGE);
    for (size_t i = 0; i < HUGE; i += PERIOD) {
        harness_step("period", i / PERIOD);
        CHECK_BYTES(data + i, HUGE - i < PERIOD ? HUGE - i : PERIOD, 1);
    }
    CHECK_ALL(data + HUGE, 4096, 0);
    CHECK_EQ(munmap(data, HUGE + 4096), 0);
}

/* Room beyond 4 GiB by a little: cut to 32 bits, it would be too small. */
static void large_room(hem_world *world, size_t bytes) {
    size_t room = ((size_t)1 << 32) + 10;
    int me = hem_world_rank(world);
    chan_buffer out = chan_make(bytes);
    uint8_t *in = reserved(room);
    size_t got = 0;

    chan_load(&out, bytes, 3, bytes);
    if (me == 0)
        CHECK_OK(hem_send(world, 1, 1, out.at, bytes, LIMIT));
    else
        CHECK_OK(hem_recv(world, 0, 1, in, room, &got, LIMIT));
    if (me == 1)
        CHECK_BYTES(in, bytes, bytes);
    CHECK_EQ(got, me ? bytes : 0);
    CHECK_EQ(munmap(in, room), 0);
    chan_free(&out);
}

/* Rank 0 decides for both. */
static bool agreed(hem_world *world) {
    bool full = wanted("HEM_TEST_FULL") || wanted("HEM_SOAK");

    if (hem_world_rank(world) == 1) {
        CHECK_OK(hem_recv(world, 0, 2, &full, sizeof full, NULL, LIMIT));
        return full;
    }
    if (!full)
        printf("5 GiB left out: only with HEM_TEST_FULL=1\n");
    if (full && available_mib() < 6500) {
        printf("5 GiB left out: %ld MiB are available, and 6500 are needed\n", available_mib());
        full = false;
    }
    fflush(stdout);
    CHECK_OK(hem_send(world, 1, 2, &full, sizeof full, LIMIT));
    return full;
}

int rank_main(hem_world *world) {
    for (size_t bytes = 11; bytes < 5000000; bytes = bytes * 7 + 3)
        large_room(world, bytes);
    if (agreed(world)) {
        if (hem_world_rank(world) == 0)
            send_huge(world);
        else
            recv_huge(world);
    }
    chan_works(world, chan_partner(world), 0, 0);
    harness_close(world, HEM_OK);
    return 0;
}
