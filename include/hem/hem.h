/* Everything Hem offers, in one include. */
#ifndef HEM_HEM_H
#define HEM_HEM_H

#include <hem/channel.h>
#include <hem/coll.h>
#include <hem/exchange.h>
#include <hem/line.h>
#include <hem/memory.h>
#include <hem/op.h>
#include <hem/pattern.h>
#include <hem/status.h>
#include <hem/stream.h>
#include <hem/window.h>
#include <hem/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEM_VERSION_MAJOR 0
#define HEM_VERSION_MINOR 1
#define HEM_VERSION_PATCH 0

/** The version of the library that is running, such as "0.1.0". Local. From any thread. */
HEM_API const char *hem_version(void);

#ifdef __cplusplus
}
#endif
#endif
