/* Reading option structs that grow at the end. */
#ifndef HEMI_BASE_OPTIONS_H
#define HEMI_BASE_OPTIONS_H

#include <hem/status.h>
#include <stddef.h>

/**
 * Copy the caller's option struct, of whatever version, into `into` of `size` bytes.
 *
 * The first member of every option struct is `size_t struct_size`. Missing tails become zero, zero
 * tails that this version does not know are ignored, others are an error. NULL gives all zero.
 *
 * @return HEM_OK, or HEM_ERR_ARG naming `what`.
 */
hem_status hemi_options_read(void *into, size_t size, const void *from, const char *what);

#endif
