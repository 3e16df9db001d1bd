/*
 * The monitor inside of a job that has no launcher of ours (opened through the caller's all-gather).
 *
 * Every rank has a sleeping thread that watches the processes of all others, so that it does not
 * matter who dies or is stopped. They may all find out at once; hemi_liveness_ended takes the first.
 * It costs each rank a descriptor per other rank.
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
