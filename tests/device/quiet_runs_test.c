/*
 * After its first runs, an exchange, a planned collective and a pipe run on streams without allocating
 * host memory, and so do runs that the host starts, and the first one of an exchange in a new way that was
 * prepared. What the device's module or the driver does for a launch does not count: the stand-in
 * allocates what it puts into its queues.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "setup_kit.h"

/* The allocator of this program counts what the library asks for, unless a sanitizer has its own. */
#define COUNTS (!HARNESS_SANITIZED)

/* Volatile, since compilers think that they know what malloc touches. */
static __thread volatile bool counting;
static __thread volatile uint64_t allocations;

#if COUNTS
#ifdef __cplusplus
extern "C" {
#endif

/* The library is linked into the program, the module is not. */
extern const char __executable_start[]; /* NOLINT(*-reserved-identifier) */
extern const char etext[];

/* glibc's own names of what is wrapped here; free is left as it is. */
void *__libc_malloc(size_t bytes);             /* NOLINT(*-reserved-identifier) */
void *__libc_calloc(size_t n, size_t bytes);   /* NOLINT(*-reserved-identifier) */
void *__libc_realloc(void *old, size_t bytes); /* NOLINT(*-reserved-identifier) */
void *__libc_memalign(size_t, size_t bytes);   /* NOLINT(*-reserved-identifier) */

/* Only the linker knows them by those names: to nvcc, malloc is a function of kernels, too. */
void *counted_malloc(size_t bytes) __asm__("malloc");
void *counted_calloc(size_t n, size_t bytes) __asm__("calloc");
void *counted_realloc(void *old, size_t bytes) __asm__("realloc");
void *counted_aligned_alloc(size_t align, size_t bytes) __asm__("aligned_alloc");

static void count(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    allocations += counting && at >= (uintptr_t)__executable_start && at < (uintptr_t)etext;
}

void *counted_malloc(size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *counted_calloc(size_t n, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}

void *counted_realloc(void *old, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}

void *counted_aligned_alloc(size_t align, size_t bytes) {
    count(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

#ifdef __cplusplus
}
#endif
#endif

/* One run, of which only the library's calls count. */
typedef void (*run_fn)(const setup_site *s, const setup_object *o);

static void coll_on_stream(const setup_site *s, const setup_object *o) {
    counting = true;
    CHECK_OK(hem_op_start_on(o->op, s->ring.handle));
    counting = false;
    device_stream_sync(s->ring.stream);
    counting = true;
    CHECK_OK(hem_op_status(o->op));
}

static void coll_by_host(const setup_site *s, const setup_object *o) {
    (void)s;
    counting = true;
    CHECK_OK(hem_op_start(o->op));
    CHECK_OK(hem_op_wait(o->op, LIMIT));
}

static void exchange_on_stream(const setup_site *s, const setup_object *o) {
    counting = true;
    CHECK_OK(hem_exchange_start_on(o->exchange, NULL, s->ring.handle));
    CHECK_OK(hem_exchange_finish_on(o->exchange, s->ring.handle));
    counting = false;
    device_stream_sync(s->ring.stream);
    counting = true;
    CHECK_OK(hem_exchange_status(o->exchange));
}

static void exchange_by_host(const setup_site *s, const setup_object *o) {
    (void)s;
    counting = true;
    CHECK_OK(hem_exchange_run(o->exchange, NULL, LIMIT));
}

/* After a preparation not even the first run with a `how` allocates. */
static void check_prepared(const setup_site *s, int which) {
    hem_exchange_how how;
    setup_object o;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.sides = HEM_SIDE_LOW(0);
    CHECK_OK(setup_make(s, which, &o));
    exchange_on_stream(s, &o);
    counting = false;
    CHECK_OK(hem_exchange_prepare(o.exchange, &how));
    allocations = 0;
    counting = true;
    CHECK_OK(hem_exchange_start_on(o.exchange, &how, s->ring.handle));
    CHECK_OK(hem_exchange_finish_on(o.exchange, s->ring.handle));
    counting = false;
    CHECK_EQ(allocations, 0);
    device_stream_sync(s->ring.stream);
    CHECK_OK(hem_exchange_status(o.exchange));
    CHECK_OK(hem_sync(s->ring.world, LIMIT));
    CHECK_OK(setup_drop(&o));
}

/* Short messages, then long ones, to the right and from the left. */
static void pipe_on_stream(const setup_site *s, const setup_object *o) {
    hem_pipe_half out, in;
    out.peer = (s->ring.me + 1) % s->ring.size;
    in.peer = (s->ring.me + s->ring.size - 1) % s->ring.size;
    out.data = s->memory;
    in.data = (unsigned char *)s->memory + SETUP_BYTES / 2;
    for (int i = 0; i < 2 && s->ring.size > 1; i++) {
        out.bytes = in.bytes = i == 0 ? 100 : SETUP_BYTES / 2;
        counting = true;
        CHECK_OK(hem_pipe_sendrecv(o->pipe, &out, &in, NULL, s->ring.handle));
        counting = false;
        device_stream_sync(s->ring.stream);
    }
    counting = true;
    CHECK_OK(hem_pipe_status(o->pipe));
}

/* The first run of either kind may allocate, all others not. */
static void check(const setup_site *s, int which, run_fn run, run_fn other) {
    setup_object o;
    CHECK_OK(setup_make(s, which, &o));
    run(s, &o);
    other(s, &o);
    allocations = 0;
    for (int i = 0; i < 40; i++) {
        (i % 3 == 0 ? other : run)(s, &o);
        counting = false;
        CHECK_EQ(allocations, 0);
    }
    CHECK_OK(hem_sync(s->ring.world, LIMIT));
    CHECK_OK(setup_drop(&o));
}

/* It can count: making an object allocates. */
static void check_counter(const setup_site *s) {
    setup_object o;
    allocations = 0;
    counting = true;
    hem_status status = setup_make(s, SETUP_PIPE, &o);
    counting = false;
    CHECK_OK(status);
    CHECK((allocations > 0) == COUNTS);
    CHECK_OK(setup_drop(&o));
}

int rank_main(hem_world *world) {
    uint64_t *memory = (uint64_t *)device_alloc(SETUP_BYTES);
    setup_site s = setup_open(world, memory);
    check_counter(&s);
    check(&s, SETUP_COLL_UNITS, coll_on_stream, coll_by_host);
    check(&s, SETUP_COLL_LONG, coll_on_stream, coll_by_host);
    check(&s, SETUP_STAGED, exchange_on_stream, exchange_by_host);
    check(&s, SETUP_DIRECT, exchange_on_stream, exchange_by_host);
    check_prepared(&s, SETUP_STAGED);
    check_prepared(&s, SETUP_DIRECT);
    check(&s, SETUP_PIPE, pipe_on_stream, pipe_on_stream);
    setup_close(&s);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
