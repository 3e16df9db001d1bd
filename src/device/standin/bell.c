/* Sleeping until something has changed. */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whoever rings holds the lock, so that no ring falls between the look at `rings` and the sleep without
 * changing it. */
void hemi_standin_bell_await(hemi_standin_bell *bell, pthread_mutex_t *lock) {
    uint32_t seen = hemi_load32_relaxed(&bell->rings);
    bell->sleepers++;
    pthread_mutex_unlock(lock);
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    pthread_mutex_lock(lock);
    bell->sleepers--;
}

void hemi_standin_bell_ring(hemi_standin_bell *bell) {
    hemi_add32_relaxed(&bell->rings, 1);
    if (bell->sleepers > 0)
        syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
