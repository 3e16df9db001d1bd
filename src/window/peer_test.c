/* The first use of a peer: what its control block says is checked, and it happens once. */
#include "window/window.h"

#include "base/testing.h"

#include <hem/hem.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define LIMIT   HEM_SEC(20)
#define BYTES   4096u
#define THREADS 6

static hem_window *open_window(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = BYTES};
    hem_window *window = NULL;
    return hem_window_create(world, &options, &window) == HEM_OK ? window : NULL;
}

static void run(hem_rank_fn fn, void *arg) {
    hem_status status = hem_world_threads(2, fn, arg, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static int finish(hem_world *world, hem_window *window) {
    RANK_CHECK(hem_window_destroy(window) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* What a broken rank 1 says of its memory, and what it has otherwise done to its block. */
typedef struct lie {
    uint32_t told; /* set when rank 1 has told it */
    uint32_t heard;
    enum hemi_name_kind kind;
    int64_t where; /* from the start of rank 1's part */
    uint64_t bytes;
    uint32_t users;
} lie;

static unsigned char private_memory[BYTES];

static void tell(hem_window *window, lie *l) {
    hemi_window_head *head = hemi_window_own_head(window);
    uint64_t part = hemi_arena_part(&window->root->arena, window->root->rank);
    uint64_t where =
        l->kind == HEMI_NAME_OWN ? (uintptr_t)private_memory : part + (uint64_t)l->where;
    head->data = hemi_name_make(window->root, l->kind, where, l->bytes);
    hemi_store32_release(&head->users, l->users);
    hemi_store32_release(&l->told, 1);
    while (hemi_load32_acquire(&l->heard) == 0)
        window->root->platform->yield(NULL);
}

static int hear(hem_world *world, void *arg) {
    hem_window *window = open_window(world);
    lie *l = arg;
    uint64_t value = 5;
    RANK_CHECK(window != NULL);
    if (hem_world_rank(world) == 1) {
        tell(window, l);
        return finish(world, window);
    }
    while (hemi_load32_acquire(&l->told) == 0)
        window->root->platform->yield(NULL);
    hem_status put = hem_put(window, 1, 0, &value, sizeof value);
    hem_status signal = hem_put_signal(window, 1, 0, &value, sizeof value, 0, 1);
    hemi_store32_release(&l->heard, 1);
    RANK_CHECK(put == HEM_ERR_RANGE || put == HEM_ERR_MISMATCH);
    RANK_CHECK(signal == put);
    RANK_CHECK(window->peers[1] == NULL);
    return finish(world, window);
}

static void memory_that_is_not_the_peers_is_refused(void **state) {
    static const lie lies[] = {
        {.kind = HEMI_NAME_LIBRARY, .where = -4096, .bytes = 4096}, /* of rank 0 */
        {.kind = HEMI_NAME_LIBRARY, .where = 0, .bytes = 4096},     /* its heap's book-keeping */
        {.kind = HEMI_NAME_LIBRARY, .where = HEMI_HEAP_META, .bytes = UINT64_MAX},
        {.kind = (enum hemi_name_kind)0, .where = HEMI_HEAP_META, .bytes = 4096},
        {.kind = (enum hemi_name_kind)3, .where = HEMI_HEAP_META, .bytes = 4096},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        lie l = lies[i];
        run(hear, &l);
    }
}

/* The window is over library memory; private memory carries no signals and may be anywhere. */
static void memory_of_another_kind_is_refused(void **state) {
    lie l = {.kind = HEMI_NAME_OWN, .bytes = BYTES};

    (void)state;
    run(hear, &l);
}

static void a_list_that_is_full_is_refused(void **state) {
    static const uint32_t counts[] = {2, 1000000, UINT32_MAX - 5};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        lie l = {
            .kind = HEMI_NAME_LIBRARY, .where = HEMI_HEAP_META, .bytes = 4096, .users = counts[i]};
        run(hear, &l);
    }
}

/* Threads of one rank that use a peer first at the same moment: one entry in its list. */
typedef struct user {
    pthread_t thread;
    hem_window *window;
    uint32_t id;
    hem_status status;
} user;

static void *use(void *arg) {
    user *u = arg;
    uint64_t value = u->id;
    u->status = hem_put_signal(u->window, 1, 8ull * u->id, &value, sizeof value, u->id, 1);
    return NULL;
}

static int use_together(hem_world *world, void *arg) {
    hem_window *window = open_window(world);
    user users[THREADS] = {0};
    (void)arg;
    RANK_CHECK(window != NULL);
    for (uint32_t i = 0; i < THREADS && hem_world_rank(world) == 0; i++) {
        users[i] = (user){.window = window, .id = i};
        RANK_CHECK(pthread_create(&users[i].thread, NULL, use, &users[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        if (hem_world_rank(world) == 0) {
            RANK_CHECK(pthread_join(users[i].thread, NULL) == 0);
            RANK_CHECK(users[i].status == HEM_OK);
        } else {
            RANK_CHECK(hem_wait_signal(window, i, HEM_EQ, 1, LIMIT) == HEM_OK);
            RANK_CHECK(((const uint64_t *)hem_window_memory(window))[i] == i);
        }
    }
    RANK_CHECK(hem_barrier(window, 0, LIMIT) == HEM_OK);
    /* Rank 0, and in the barrier each rank also itself. */
    RANK_CHECK(hemi_load32_acquire(&hemi_window_own_head(window)->users) == 2);
    return finish(world, window);
}

static void several_threads_open_a_peer_once(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++)
        run(use_together, NULL);
}

/* Looking at a rank that does not exist opens nothing. */
static int ask_for_nobody(hem_world *world, void *arg) {
    hem_window *window = open_window(world);
    uint64_t value = 0;
    (void)arg;
    RANK_CHECK(window != NULL);
    RANK_CHECK(hem_put(window, 2, 0, &value, 8) == HEM_ERR_RANGE);
    RANK_CHECK(hem_put(window, -1, 0, &value, 8) == HEM_ERR_RANGE);
    RANK_CHECK(hem_put_signal(window, INT32_MIN, 0, &value, 8, 0, 1) == HEM_ERR_RANGE);
    RANK_CHECK(hem_wait_signal_from(window, 2, 0, HEM_GE, 1, 0) == HEM_ERR_RANGE);
    RANK_CHECK(hem_window_bytes(window, 2) == 0);
    RANK_CHECK(hem_window_peer_address(window, 2, 0) == NULL);
    RANK_CHECK(hem_window_peer_address(window, 1, BYTES) == NULL);
    RANK_CHECK(hem_window_peer_address(window, 1, SIZE_MAX) == NULL);
    RANK_CHECK(hem_window_translate(window, &value, 1) == NULL);
    RANK_CHECK(hem_put(window, 1, BYTES - 7, &value, 8) == HEM_ERR_RANGE);
    RANK_CHECK(hem_put(window, 1, SIZE_MAX - 3, &value, 8) == HEM_ERR_RANGE);
    RANK_CHECK(hem_put_signal(window, 1, SIZE_MAX, &value, 8, 0, 1) == HEM_ERR_RANGE);
    RANK_CHECK(hem_put_signal(window, 1, BYTES - 31, &value, 32, 0, 1) == HEM_ERR_RANGE);
    RANK_CHECK(hem_get(window, 1, 0, &value, SIZE_MAX) == HEM_ERR_RANGE);
    return finish(world, window);
}

static void what_does_not_exist_is_refused(void **state) {
    (void)state;
    run(ask_for_nobody, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_not_the_peers_is_refused),
        cmocka_unit_test(memory_of_another_kind_is_refused),
        cmocka_unit_test(a_list_that_is_full_is_refused),
        cmocka_unit_test(several_threads_open_a_peer_once),
        cmocka_unit_test(what_does_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
