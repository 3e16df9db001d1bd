#include "base/options.h"

#include "base/status.h"

#include <string.h>

/* A struct_size beyond this is not a newer version but an uninitialised struct. */
#define PLAUSIBLE_MAX 4096

hem_status hemi_options_read(void *into, size_t size, const void *from, const char *what) {
    memset(into, 0, size);
    if (from == NULL)
        return HEM_OK;
    size_t given = 0;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > PLAUSIBLE_MAX)
        return hemi_fail(HEM_ERR_ARG, "%s: struct_size is %zu; set it to sizeof the struct", what,
                         given);
    const unsigned char *bytes = from;
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return hemi_fail(HEM_ERR_ARG,
                             "%s: byte %zu is set, which this version (%zu bytes) does not know",
                             what, i, size);
    memcpy(into, from, given < size ? given : size);
    return HEM_OK;
}
