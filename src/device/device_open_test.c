/* What is found, what is said if nothing is, and that it is looked for once. */
#include "device/testing.h"

#include "base/testing.h"
#include "core/stream.h"

#include <hem/channel.h>
#include <hem/cuda.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LIMIT HEM_SEC(10)

static void run(int ranks, hem_rank_fn fn) {
    memset(&fake, 0, sizeof fake);
    hem_status status = hem_world_threads(ranks, fn, NULL, NULL);
    if (status != HEM_OK)
        print_error("%s\n", hem_last_error());
    assert_int_equal(status, HEM_OK);
}

static bool says(const char *part) {
    return strstr(hem_last_error(), part) != NULL;
}

static int see_no_file(hem_world *world, void *arg) {
    (void)arg;
    RANK_CHECK(setenv("HEM_DEVICE_MODULE", "/nowhere/libnone.so", 1) == 0);
    RANK_CHECK(hem_device_open(world, NULL) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("HEM_DEVICE_MODULE") && says("/nowhere/libnone.so"));
    RANK_CHECK(hemi_device_peek(world->root) == NULL);
    /* It stays so, and with the same sentence, whatever the environment says now. */
    RANK_CHECK(unsetenv("HEM_DEVICE_MODULE") == 0);
    hemi_fail(HEM_ERR_ARG, "something else");
    RANK_CHECK(hem_device_open(world, NULL) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("/nowhere/libnone.so"));
    hem_stream *stream = NULL;
    RANK_CHECK(hem_stream_cuda(world, &fake, &stream) == HEM_ERR_UNSUPPORTED && stream == NULL);
    RANK_CHECK(says("/nowhere/libnone.so"));
    return hem_world_close(world);
}

static void a_missing_module_is_a_sentence(void **state) {
    (void)state;
    run(1, see_no_file);
}

static int see_another_library(hem_world *world, void *arg) {
    (void)arg;
    RANK_CHECK(setenv("HEM_DEVICE_MODULE", "libm.so.6", 1) == 0);
    RANK_CHECK(hem_device_open(world, NULL) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("libm.so.6 is no device module") && says("hemi_device_module_get"));
    RANK_CHECK(unsetenv("HEM_DEVICE_MODULE") == 0);
    return hem_world_close(world);
}

static void another_library_is_no_module(void **state) {
    (void)state;
    run(1, see_another_library);
}

static int see_versions(hem_world *world, void *arg) {
    hemi_device_module other = fake_module;
    char its[32];
    char ours[32];
    (void)arg;
    other.version = HEMI_DEVICE_VERSION + 1;
    snprintf(its, sizeof its, "version %u", other.version);
    snprintf(ours, sizeof ours, "this library has %u", HEMI_DEVICE_VERSION);
    RANK_CHECK(hemi_device_use(world->root, &other) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says(its) && says(ours));
    RANK_CHECK(fake.opened == 0);
    return hem_world_close(world);
}

static int see_half_a_table(hem_world *world, void *arg) {
    hemi_device_module other = fake_module;
    (void)arg;
    other.stream = NULL;
    RANK_CHECK(hemi_device_use(world->root, &other) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("not a whole"));
    return hem_world_close(world);
}

static void other_versions_are_refused(void **state) {
    (void)state;
    run(1, see_versions);
    run(1, see_half_a_table);
}

static int see_no_gpu(hem_world *world, void *arg) {
    hemi_device *device = NULL;
    (void)arg;
    fake.refuse_open = (uint32_t)-HEM_ERR_UNSUPPORTED;
    RANK_CHECK(hemi_device_use(world->root, &fake_module) == HEM_ERR_UNSUPPORTED);
    hemi_fail(HEM_ERR_ARG, "something else");
    for (int i = 0; i < 3; i++)
        RANK_CHECK(hemi_device_get(world->root, &device) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("the fake refuses to open") && device == NULL);
    RANK_CHECK(fake.opened == 1);
    return hem_world_close(world);
}

static void a_failure_is_remembered(void **state) {
    (void)state;
    run(1, see_no_gpu);
    assert_int_equal(fake.closed, 0);
}

static int see_facts(hem_world *world, void *arg) {
    hem_device_facts facts = {.struct_size = sizeof facts};
    hem_device_facts short_facts = {.struct_size = 8};
    hem_world *half = NULL;
    (void)arg;
    RANK_CHECK(hemi_device_use(world->root, &fake_module) == HEM_OK);
    RANK_CHECK(hem_device_open(NULL, &facts) == HEM_ERR_ARG);
    RANK_CHECK(hem_device_open(world, &short_facts) == HEM_ERR_ARG);
    RANK_CHECK(hem_device_open(world, NULL) == HEM_OK);
    RANK_CHECK(hem_world_split(world, hem_world_rank(world), 0, &half) == HEM_OK);
    /* All worlds of a rank have one device. */
    RANK_CHECK(hem_device_open(half, &facts) == HEM_OK);
    RANK_CHECK(facts.struct_size == sizeof facts && strcmp(facts.name, "fake") == 0);
    RANK_CHECK(facts.ordinal == 3 && facts.processors == 5 && facts.l2_bytes == 7 &&
               facts.capability == 90);
    RANK_CHECK(hemi_device_peek(half->root) == hemi_device_peek(world->root));
    RANK_CHECK(hem_world_close(half) == HEM_OK);
    return hem_world_close(world);
}

static void each_rank_has_a_device(void **state) {
    (void)state;
    run(3, see_facts);
    assert_int_equal(fake.opened, 3);
    assert_int_equal(fake.closed, 3);
}

static void *open_it(void *arg) {
    hem_world *world = arg;
    hemi_device *device = NULL;
    hem_status status = hemi_device_use(world->root, &fake_module);
    if (status == HEM_OK)
        status = hemi_device_get(world->root, &device);
    return status == HEM_OK ? device : NULL;
}

static int open_from_threads(hem_world *world, void *arg) {
    pthread_t threads[4];
    (void)arg;
    for (int i = 0; i < 4; i++)
        RANK_CHECK(pthread_create(&threads[i], NULL, open_it, world) == 0);
    for (int i = 0; i < 4; i++) {
        void *device = NULL;
        RANK_CHECK(pthread_join(threads[i], &device) == 0);
        RANK_CHECK(device != NULL && device == hemi_device_peek(world->root));
    }
    return hem_world_close(world);
}

static void threads_open_it_once(void **state) {
    (void)state;
    run(1, open_from_threads);
    assert_int_equal(fake.opened, 1);
    assert_int_equal(fake.closed, 1);
}

static void never(hem_status status, void *arg) {
    (void)status;
    *(bool *)arg = true;
}

static int use_a_stream(hem_world *world, void *arg) {
    hem_stream *stream = NULL;
    hem_stream *host = NULL;
    hem_event *event = NULL;
    int native = 0;
    bool flag = false;
    (void)arg;
    RANK_CHECK(hemi_device_use(world->root, &fake_module) == HEM_OK);
    RANK_CHECK(hem_stream_cuda(world, NULL, &stream) == HEM_ERR_UNSUPPORTED && stream == NULL);
    RANK_CHECK(says("default stream"));
    RANK_CHECK(hem_stream_cuda(world, &native, NULL) == HEM_ERR_ARG);
    RANK_CHECK(hem_stream_cuda(world, &native, &stream) == HEM_OK);
    RANK_CHECK(hem_stream_create(world, &host) == HEM_OK);
    RANK_CHECK(hemi_stream_native(stream, &flag) == &native && flag);
    RANK_CHECK(hemi_stream_native(host, &flag) == NULL && !flag);
    RANK_CHECK(hemi_stream_world(stream) == world && !hemi_stream_is_inside(stream));
    RANK_CHECK(hem_stream_call(stream, never, &flag) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(says("hem_stream_call") && says("CUDA"));
    RANK_CHECK(hem_stream_sync(stream, 0) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(hem_stream_test(stream, &flag) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(hem_event_create(world, &event) == HEM_OK);
    RANK_CHECK(hem_event_record(event, stream) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(hem_stream_wait(stream, event) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(hem_stream_wait(host, event) == HEM_OK && hem_event_destroy(event) == HEM_OK);
    RANK_CHECK(hem_stream_sync(host, LIMIT) == HEM_OK && !flag);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_OK && hem_stream_destroy(host) == HEM_OK);
    RANK_CHECK(hem_stream_cuda(world, &native, &stream) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    RANK_CHECK(hem_stream_sync(stream, 0) == HEM_ERR_CLOSED);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    return 0;
}

static void host_calls_refuse_a_device_stream(void **state) {
    (void)state;
    run(2, use_a_stream);
}

/* Whoever has a GPU for itself may use its default stream, once that is known. */
static int use_the_default_stream(hem_world *world, void *arg) {
    hem_stream *stream = NULL;
    bool last = hem_world_rank(world) == hem_world_size(world) - 1;
    bool alone = hem_world_size(world) == 1;
    (void)arg;
    if (!last || alone)
        RANK_CHECK(hemi_device_use(world->root, &fake_module) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    if (!last) /* the last one may take this one's GPU */
        RANK_CHECK(hem_stream_cuda(world, NULL, &stream) == HEM_ERR_UNSUPPORTED);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    RANK_CHECK(hemi_device_use(world->root, &fake_module) == HEM_OK);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    hem_status wanted = alone || fake.apart != 0 ? HEM_OK : HEM_ERR_UNSUPPORTED;
    RANK_CHECK(hem_stream_cuda(world, NULL, &stream) == wanted);
    RANK_CHECK(hem_sync(world, LIMIT) == HEM_OK);
    RANK_CHECK(hem_stream_destroy(stream) == HEM_OK);
    return hem_world_close(world);
}

static void the_default_stream_is_for_who_is_alone(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        memset(&fake, 0, sizeof fake);
        assert_int_equal(hem_world_threads(ranks, use_the_default_stream, NULL, NULL), HEM_OK);
        memset(&fake, 0, sizeof fake);
        fake.apart = 1;
        assert_int_equal(hem_world_threads(ranks, use_the_default_stream, NULL, NULL), HEM_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_module_is_a_sentence),
        cmocka_unit_test(another_library_is_no_module),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(a_failure_is_remembered),
        cmocka_unit_test(each_rank_has_a_device),
        cmocka_unit_test(threads_open_it_once),
        cmocka_unit_test(host_calls_refuse_a_device_stream),
        cmocka_unit_test(the_default_stream_is_for_who_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
