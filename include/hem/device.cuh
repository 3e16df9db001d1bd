/*
 * Everything that kernels can call of Hem. Compiles with nvcc, and as C or C++ where host threads
 * stand in for a GPU.
 *
 *   word.h     words that ranks share: loads, stores, fences (hemd_ names, for Hem's own headers)
 *   group.h    hem_thread, hem_warp, hem_warps, hem_block: who makes a call together
 *   copy.h     hemd_copy: by a group, at any alignment
 *   window.h   hem_dev_put, hem_dev_get, hem_dev_put_signal, hem_dev_signal, waits, counters, atomics
 *   barrier.h  hem_dev_barrier, hem_dev_barrier_peer
 *   stamped.h  hem_dev_put_stamped, hem_dev_take_stamped: short data without a fence
 *   pipe.h     hem_dev_send, hem_dev_recv, hem_dev_sendrecv
 *
 * The host's side is in hem/cuda.h: windows and pipes are made there, and hem_window_device gives
 * what a kernel needs of one. `#define HEM_DEV_CHECK` before this to have ranks, ids and lengths
 * checked.
 */
#ifndef HEM_DEVICE_CUH
#define HEM_DEVICE_CUH

#include <hem/device/barrier.h>
#include <hem/device/copy.h>
#include <hem/device/group.h>
#include <hem/device/pipe.h>
#include <hem/device/stamped.h>
#include <hem/device/types.h>
#include <hem/device/window.h>
#include <hem/device/word.h>

#endif
