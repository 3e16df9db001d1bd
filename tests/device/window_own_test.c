/*
 * A window over device memory of the caller's own: it is used in place, from anywhere inside of an
 * allocation, is not cleared and not freed, carries signals, and can be given back and used again.
 * Ranks with no bytes take part.
 *
 * hem-test: ranks=1,2,3,5 timeout=90
 */
#include "window_kit.h"

#define WORDS 5000

typedef struct send_args {
    hem_dev_window w;
    int32_t right;
    int32_t left;
    uint64_t *errors;
} send_args;

/* Put this rank's first words to the right neighbour's second half, tell it, and wait for the left. */
DEVICE_KERNEL(send, send_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t *own = (uint64_t *)hem_dev_address(w, w.rank, 0);
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

static void use(hem_world *world, uint64_t *own, uint64_t *host, uint64_t *errors) {
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
    args.errors = errors;
    device_launch(send, stream, 1, 2, &args);
    CHECK_OK(hem_wait_signal_from(window, args.right, 15, HEM_GE, 1, LIMIT));
    device_stream_sync(stream);
    uint64_t word = 0;
    device_copy(&word, errors, sizeof word);
    CHECK_EQ(word, 0);
    CHECK_OK(hem_get(window, args.right, 8 * WORDS, &word, 8));
    CHECK_EQ(word, (uint64_t)rank * 100000);
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

int rank_main(hem_world *world) {
    uint64_t *memory = (uint64_t *)device_alloc((2 * WORDS + 200) * 8);
    uint64_t *errors = (uint64_t *)device_alloc(8);
    uint64_t *host = (uint64_t *)malloc(2 * WORDS * 8);
    CHECK(host != NULL);
    use(world, memory, host, errors);
    use(world, memory + 37 + hem_world_rank(world), host, errors);
    check_none(world, memory + 11);
    free(host);
    device_free(errors);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
