/* The one place that knows which transports there are. */
#include "transport/self/self.h"
#include "transport/shm/shm.h"

#include <hem/hem.h>

const hemi_transport *const hemi_transports[] = {
    &hemi_transport_self,
    &hemi_transport_shm,
    NULL,
};

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *hem_version(void) {
    return TEXT(HEM_VERSION_MAJOR) "." TEXT(HEM_VERSION_MINOR) "." TEXT(HEM_VERSION_PATCH);
}
