/* Stopping a random warp now and then: by a signal whose handler waits. */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

/* A thread that runs warps. */
typedef struct worker {
    struct worker *next;
    pthread_t thread;
} worker;

static __thread worker here;

static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static worker *workers;
static uint32_t count;

static pthread_mutex_t switch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static bool running;
static uint32_t most; /* microseconds; 0: none */
static uint64_t stops;

void hemi_standin_warp_enter(void) {
    /* The handler looks at it, and a thread's first touch of its copy may allocate. */
    hem_host_here.block = NULL;
    here.thread = pthread_self();
    pthread_mutex_lock(&workers_lock);
    here.next = workers;
    workers = &here;
    count++;
    pthread_mutex_unlock(&workers_lock);
}

void hemi_standin_warp_leave(void) {
    pthread_mutex_lock(&workers_lock);
    worker **at = &workers;
    while (*at != &here)
        at = &(*at)->next;
    *at = here.next;
    count--;
    pthread_mutex_unlock(&workers_lock);
}

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void stop(int number) {
    (void)number;
    int saved = errno;
    uint32_t limit = hemi_load32_relaxed(&most);
    if (hem_host_here.block != NULL && limit != 0) {
        uint64_t dice = mix(hemi_add64_relaxed(&stops, 1) + hemd_now_ns());
        uint64_t until = hemd_now_ns() + dice % (limit * 1000ull) + 1;
        while (hemd_now_ns() < until)
            hemd_relax();
    }
    errno = saved;
}

/* They leave under the same lock before they end, so that the thread exists. */
static void hit(uint64_t dice) {
    pthread_mutex_lock(&workers_lock);
    if (count > 0) {
        const worker *at = workers;
        for (uint64_t i = dice % count; i > 0; i--)
            at = at->next;
        pthread_kill(at->thread, SIGRTMIN + 3);
    }
    pthread_mutex_unlock(&workers_lock);
}

static void *delay_main(void *unused) {
    (void)unused;
    for (uint64_t i = hemd_now_ns(); hemi_load32_relaxed(&most) != 0; i++) {
        hit(mix(i));
        poll(NULL, 0, 1);
    }
    return NULL;
}

static bool begin(void) {
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGRTMIN + 3, &action, NULL) == 0 &&
           pthread_create(&thread, NULL, delay_main, NULL) == 0;
}

HEM_API hem_status hemi_standin_delay(uint32_t most_us) {
    hem_status status = HEM_OK;
    pthread_mutex_lock(&switch_lock);
    hemi_store32_relaxed(&most, most_us);
    if (most_us != 0 && !running) {
        running = begin();
        status = running ? HEM_OK : HEM_ERR_SYSTEM;
    } else if (most_us == 0 && running) {
        pthread_join(thread, NULL);
        running = false;
    }
    pthread_mutex_unlock(&switch_lock);
    return status;
}

HEM_API uint64_t hemi_standin_delays(void) {
    return hemi_load64_relaxed(&stops);
}
