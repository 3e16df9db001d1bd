/*
 * A window over device memory of the caller's own: it is used in place, from anywhere inside of an
 * allocation, a pool or a mapping that the program has made, is not cleared and not freed, carries signals, and can
 * be given back and used again. Ranks with no bytes take part. Other processes map it, but for a piece of two
 * mappings side by side, which they reach through the host.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=90
 */
#include "window_kit.h"

#define WORDS 5000

typedef struct send_args {
    hem_dev_window w;
    int32_t right;
    int32_t left;
    uint32_t mapped; /* whether kernels have an address for what the peer adopted */
    uint64_t *errors;
} send_args;

/* Put this rank's first words to the right neighbour's second half, tell it, and wait for the left. */
DEVICE_KERNEL(send, send_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t *own = (uint64_t *)hem_dev_address(w, w.rank, 0);
    if ((hem_dev_address(w, args->right, 0) != NULL) != (args->mapped != 0) && block.rank == 0)
        hemd_add64_relaxed(args->errors, 100000000);
    hem_status status = hem_dev_put_signal(w, block, args->right, WORDS * 8, own, WORDS * 8, 1, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(w, block, args->left, 1, HEM_GE, 1, HEM_FOREVER);
    if (status != HEM_OK && block.rank == 0)
        hemd_add64_relaxed(args->errors, 1000000);
    for (uint64_t i = block.rank; i < WORDS && status == HEM_OK; i += block.size)
        if (own[WORDS + i] != (uint64_t)args->left * 100000 + i)
            hemd_add64_relaxed(args->errors, 1);
    hem_status told = hem_dev_signal(w, block, args->left, 15, HEM_SIGNAL_ADD, 1);
    if (told != HEM_OK && block.rank == 0)
        hemd_add64_relaxed(args->errors, 1000);
}

static void fill_own(uint64_t *own, int rank, uint64_t *host) {
    for (uint64_t i = 0; i < 2 * WORDS; i++)
        host[i] = (uint64_t)rank * 100000 + i;
    device_copy(own, host, 2 * WORDS * 8);
}

/* `mapped`: by other ranks. If not, it is reached through the host. */
static void use_as(hem_world *world, uint64_t *own, uint64_t *host, uint64_t *errors, bool mapped) {
    int rank = hem_world_rank(world);
    send_args args;
    hem_window_options o = window_kit_options(2 * WORDS * 8);
    device_stream stream = device_stream_create();
    fill_own(own, rank, host);
    o.memory = own;
    hem_window *window = window_kit_create(world, &o);
    CHECK(hem_window_memory(window) == own);
    CHECK(hem_window_peer_address(window, rank, 8) == own + 1);
    args.w = window_kit_dev(window);
    args.left = harness_left(world);
    args.right = harness_right(world);
    args.mapped = mapped;
    args.errors = errors;
    device_launch(send, stream, 1, 2, &args);
    CHECK_OK(hem_wait_signal_from(window, args.right, 15, HEM_GE, 1, LIMIT));
    device_stream_sync(stream);
    uint64_t word = 0;
    device_copy(&word, errors, sizeof word);
    CHECK_EQ(word, 0);
    if (mapped) {
        CHECK_OK(hem_get(window, args.right, 8 * WORDS, &word, 8));
        CHECK_EQ(word, (uint64_t)rank * 100000);
    } else {
        CHECK_STATUS(hem_get(window, args.right, 8 * WORDS, &word, 8), HEM_ERR_UNSUPPORTED);
    }
    harness_barrier(window);
    CHECK_OK(hem_window_destroy(window));
    /* It is still the caller's, with what was put there. */
    device_copy(host, own, 2 * WORDS * 8);
    for (uint64_t i = 0; i < WORDS; i++) {
        CHECK_EQ(host[i], (uint64_t)rank * 100000 + i);
        CHECK_EQ(host[WORDS + i], (uint64_t)args.left * 100000 + i);
    }
    device_stream_destroy(stream);
}

static void use(hem_world *world, uint64_t *own, uint64_t *host, uint64_t *errors) {
    use_as(world, own, host, errors, true);
}

/* Every second rank has nothing, and says so with any address. */
static void check_none(hem_world *world, uint64_t *own) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    uint64_t word = 3000 + (uint64_t)rank;
    hem_window_options o = window_kit_options(rank % 2 == 0 ? 8 * (size_t)size : 0);
    o.memory = rank % 2 == 0 ? own : &word;
    hem_window *window = window_kit_create(world, &o);
    for (int r = 0; r < size; r += 2) {
        CHECK_EQ(hem_window_bytes(window, r), 8 * (size_t)size);
        CHECK_OK(hem_put(window, r, 8 * (size_t)rank, &word, 8));
    }
    if (size > 1) {
        CHECK_EQ(hem_window_bytes(window, 1), 0);
        CHECK(hem_window_peer_address(window, 1, 0) == NULL);
        CHECK_STATUS(hem_put(window, 1, 0, &word, 1), HEM_ERR_RANGE);
        CHECK_OK(hem_put(window, 1, 0, &word, 0));
    }
    CHECK_OK(hem_signal_all(window, 12, HEM_SIGNAL_ADD, 1));
    CHECK_OK(hem_wait_signal(window, 12, HEM_GE, (uint64_t)size - 1, LIMIT));
    harness_barrier(window);
    for (int r = 0; rank % 2 == 0 && r < size; r++) {
        device_copy(&word, own + r, 8);
        CHECK_EQ(word, 3000 + (uint64_t)r);
    }
    CHECK_OK(hem_window_destroy(window));
}

/* Memory of a pool, several pieces of it at a time and again. */
static void check_pool(hem_world *world, uint64_t *host, uint64_t *errors) {
    uint64_t *pieces[3];
    for (int i = 0; i < 3; i++)
        pieces[i] = (uint64_t *)device_pool_alloc((2 * WORDS + 200) * 8);
    for (int i = 0; i < 6; i++)
        use(world, pieces[i % 3] + (size_t)(i * 7 + hem_world_rank(world)), host, errors);
    check_none(world, pieces[1] + 5);
    for (int i = 0; i < 3; i++)
        device_pool_free(pieces[i]);
    uint64_t *again = (uint64_t *)device_pool_alloc((2 * WORDS + 200) * 8);
    use(world, again, host, errors);
    device_pool_free(again);
}

/* A mapping of the program's own, and two that meet inside of the window: where words are put, and where
 * they are put from. */
static void check_vmm(hem_world *world, uint64_t *host, uint64_t *errors) {
    int rank = hem_world_rank(world);
    bool pointers = harness_threads() || hem_world_size(world) == 1;
    uint64_t *one = (uint64_t *)device_vmm_alloc((2 * WORDS + 200) * 8);
    harness_step("one mapping", 0);
    for (int i = 0; i < 3; i++)
        use(world, one + 7 * i + rank, host, errors);
    check_none(world, one + 3);
    uint64_t *seam = (uint64_t *)device_vmm_seam(2 * WORDS * 8);
    harness_step("two mappings", 0);
    use_as(world, seam - WORDS - 7 - rank, host, errors, pointers);
    use_as(world, seam - WORDS / 2, host, errors, pointers);
    check_none(world, seam - 1);
}

int rank_main(hem_world *world) {
    uint64_t *memory = (uint64_t *)device_alloc((2 * WORDS + 200) * 8);
    uint64_t *errors = (uint64_t *)device_alloc(8);
    uint64_t *host = (uint64_t *)malloc(2 * WORDS * 8);
    CHECK(host != NULL);
    use(world, memory, host, errors);
    use(world, memory + 37 + hem_world_rank(world), host, errors);
    check_none(world, memory + 11);
    check_pool(world, host, errors);
    check_vmm(world, host, errors);
    free(host);
    device_free(errors);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
