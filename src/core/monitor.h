/*
 * The monitor inside of a job that has no launcher of ours (opened through the caller's all-gather).
 *
 * Every rank has a sleeping thread. One of them holds a lock on the arena's file and watches the
 * processes of all ranks; the kernel hands the lock to another one when its process ends, however
 * it ends. So there is always exactly one monitor, and nobody has to notice that it died.
 */
#ifndef HEMI_CORE_MONITOR_H
#define HEMI_CORE_MONITOR_H

#include "core/world.h"

typedef struct hemi_monitor hemi_monitor;

/** Start this rank's thread, once every rank has written its process id. */
hem_status hemi_monitor_start(hemi_root *root, hemi_monitor **monitor_p);

/** Stop and join it. NULL is allowed. */
void hemi_monitor_stop(hemi_monitor *monitor);

#endif
