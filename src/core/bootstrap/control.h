/*
 * What a launched rank and the launcher tell each other.
 *
 * The launcher hands every rank the arena and one end of a datagram socket pair by descriptor
 * number, in the environment (HEM_RANK, HEM_SIZE, HEM_ARENA_FD, HEM_CONTROL_FD). A rank that attaches
 * sends one hello on the socket, so that the launcher watches the right process even where the
 * rank is a grandchild (behind a shell, a debugger, a profiler). The kernel says who sent it
 * (SCM_CREDENTIALS); the message itself says only which rank it is.
 */
#ifndef HEMI_CORE_BOOTSTRAP_CONTROL_H
#define HEMI_CORE_BOOTSTRAP_CONTROL_H

#include <hem/status.h>
#include <stddef.h>
#include <stdint.h>

#define HEMI_CONTROL_MAGIC 0x6f6c6c6568u /* "hello" */

typedef struct hemi_control_hello {
    uint64_t magic;
    uint32_t version; /**< HEMI_LAYOUT_VERSION */
    uint32_t rank;
} hemi_control_hello;

/** Check a message of `bytes` bytes from a rank. @return NULL and the rank, or what is wrong. */
const char *hemi_control_parse(const void *message, size_t bytes, uint32_t ranks, uint32_t *rank_p);

/** What the environment says about a launched rank. */
typedef struct hemi_launch_info {
    uint32_t rank;
    uint32_t size;
    int arena_fd;
    int control_fd;
} hemi_launch_info;

/**
 * Read the four variables.
 *
 * @return HEM_OK with `*launched_p` saying whether this process was launched at all; HEM_ERR_ARG if
 *         they are there but make no sense.
 */
hem_status hemi_control_environment(hemi_launch_info *info_p, int *launched_p);

/** Send the hello. @return HEM_OK or HEM_ERR_SYSTEM. */
hem_status hemi_control_send_hello(int control_fd, uint32_t rank);

#endif
