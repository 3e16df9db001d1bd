/* Streams that are lent: nobody shares one, few are made, and none is left. */
#include "device/testing.h"

#include "base/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST = HEMI_DEVICE_IDLE + 8,
    THREADS = 4,
    ROUNDS = 20000
};

static uint32_t made;
static uint32_t destroyed;
static uint32_t refuse;

static hem_status make(void *context, void **stream_p) {
    hem_status status = fake_refuse(context, &refuse, "make a stream");
    if (status != HEM_OK)
        return status;
    *stream_p = calloc(1, sizeof(uint32_t));
    hemi_add32_acq_rel(&made, 1);
    return *stream_p != NULL ? HEM_OK : HEM_ERR_MEMORY;
}

static void destroy(void *context, void *stream) {
    (void)context;
    free(stream);
    hemi_add32_acq_rel(&destroyed, 1);
}

static const hemi_device_stream_ops stream_ops = {
    .check = fake_check, .make = make, .destroy = destroy};

static hem_status open_device(hem_world *world, hemi_device **device_p) {
    static hemi_device_module module;
    module = fake_module;
    module.stream = &stream_ops;
    made = destroyed = refuse = 0;
    hem_status status = hemi_device_use(world->root, &module);
    return status == HEM_OK ? hemi_device_get(world->root, device_p) : status;
}

static void run(hem_rank_fn fn) {
    memset(&fake, 0, sizeof fake);
    hem_status status = hem_world_threads(1, fn, NULL, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
    assert_int_equal(destroyed, made);
    assert_int_equal(fake.closed, 1);
}

static int see_few(hem_world *world, void *arg) {
    hemi_device *device = NULL;
    void *stream = NULL, *other = NULL, *first, *second;
    (void)arg;
    RANK_CHECK(open_device(world, &device) == HEM_OK);
    for (int i = 0; i < 100; i++) {
        RANK_CHECK(hemi_device_stream_take(world->root, device, &stream) == HEM_OK);
        hemi_device_stream_give(world->root, device, &stream);
        RANK_CHECK(stream == NULL && made == 1);
    }
    hemi_device_stream_give(world->root, device, &stream); /* there is none */
    RANK_CHECK(hemi_device_stream_take(world->root, device, &stream) == HEM_OK);
    RANK_CHECK(hemi_device_stream_take(world->root, device, &other) == HEM_OK);
    RANK_CHECK(stream != other && made == 2);
    first = stream;
    second = other;
    hemi_device_stream_give(world->root, device, &other);
    hemi_device_stream_give(world->root, device, &stream);
    /* The last that came is lent first. */
    RANK_CHECK(hemi_device_stream_take(world->root, device, &stream) == HEM_OK);
    RANK_CHECK(hemi_device_stream_take(world->root, device, &other) == HEM_OK);
    RANK_CHECK(stream == first && other == second && made == 2 && destroyed == 0);
    hemi_device_stream_give(world->root, device, &other);
    hemi_device_stream_give(world->root, device, &stream);
    return hem_world_close(world);
}

static int see_common(hem_world *world, void *arg) {
    hemi_device *device = NULL;
    void *stream = NULL, *common = NULL, *again = NULL;
    (void)arg;
    RANK_CHECK(open_device(world, &device) == HEM_OK);
    RANK_CHECK(hemi_device_stream_common(world->root, device, &common) == HEM_OK && made == 1);
    RANK_CHECK(hemi_device_stream_take(world->root, device, &stream) == HEM_OK);
    RANK_CHECK(stream != common && made == 2);
    RANK_CHECK(hemi_device_stream_common(world->root, device, &again) == HEM_OK);
    RANK_CHECK(again == common && made == 2);
    hemi_device_stream_give(world->root, device, &stream);
    return hem_world_close(world);
}

static void what_waits_for_nobody_shares_a_stream(void **state) {
    (void)state;
    run(see_common);
}

static void runs_one_after_another_have_one_stream(void **state) {
    (void)state;
    run(see_few);
}

static int see_many(hem_world *world, void *arg) {
    hemi_device *device = NULL;
    void *streams[MOST], *more = &fake;
    (void)arg;
    RANK_CHECK(open_device(world, &device) == HEM_OK);
    for (int i = 0; i < MOST; i++)
        RANK_CHECK(hemi_device_stream_take(world->root, device, &streams[i]) == HEM_OK);
    RANK_CHECK(made == MOST);
    hemi_store32_release(&refuse, (uint32_t)-HEM_ERR_SYSTEM);
    RANK_CHECK(hemi_device_stream_take(world->root, device, &more) == HEM_ERR_SYSTEM);
    RANK_CHECK(more == &fake);
    for (int i = 0; i < MOST; i++)
        hemi_device_stream_give(world->root, device, &streams[i]);
    RANK_CHECK(destroyed == MOST - HEMI_DEVICE_IDLE);
    /* What is there is lent, whether one more could be made or not. */
    RANK_CHECK(hemi_device_stream_take(world->root, device, &more) == HEM_OK);
    hemi_device_stream_give(world->root, device, &more);
    return hem_world_close(world);
}

static void more_than_are_kept_are_destroyed(void **state) {
    (void)state;
    run(see_many);
}

typedef struct borrower {
    hemi_root *root;
    hemi_device *device;
    bool shared;
} borrower;

/* A stream is a word here, which only its user counts. */
static void *borrow(void *arg) {
    borrower *b = arg;
    for (int i = 0; i < ROUNDS; i++) {
        void *stream = NULL;
        if (hemi_device_stream_take(b->root, b->device, &stream) != HEM_OK)
            return NULL;
        uint32_t *word = stream;
        b->shared |= (*word)++ != 0;
        b->shared |= --(*word) != 0;
        hemi_device_stream_give(b->root, b->device, &stream);
    }
    return NULL;
}

static int see_threads(hem_world *world, void *arg) {
    borrower borrowers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    hemi_device *device = NULL;
    (void)arg;
    RANK_CHECK(open_device(world, &device) == HEM_OK);
    for (int i = 0; i < THREADS; i++) {
        borrowers[i] = (borrower){world->root, device, false};
        RANK_CHECK(pthread_create(&threads[i], NULL, borrow, &borrowers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        RANK_CHECK(!borrowers[i].shared);
    }
    RANK_CHECK(made >= 1 && made <= THREADS);
    return hem_world_close(world);
}

static void threads_do_not_share(void **state) {
    (void)state;
    run(see_threads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_one_after_another_have_one_stream),
        cmocka_unit_test(what_waits_for_nobody_shares_a_stream),
        cmocka_unit_test(more_than_are_kept_are_destroyed),
        cmocka_unit_test(threads_do_not_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
