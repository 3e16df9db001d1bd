/*
 * Memory in the order of streams. What a stream has not come to yet, and what it has left behind, is
 * not there: whoever is out of order faults.
 */
#include "device/standin/inside.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct opening {
    void *address;
    uint64_t whole;
} opening;

static void open_memory(void *arg) {
    opening *mine = arg;
    if (mprotect(mine->address, mine->whole, PROT_READ | PROT_WRITE) != 0)
        abort();
    free(mine);
}

hem_status hemi_standin_alloc_on(void *context, void *stream, uint64_t bytes, void **address_p) {
    opening *made = malloc(sizeof *made);
    void *address = made != NULL ? hemi_standin_range_make(bytes, &made->whole) : NULL;
    if (address == NULL) {
        free(made);
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no %llu bytes of device memory",
                                 (unsigned long long)bytes);
    }
    made->address = address;
    hem_status status = HEM_OK;
    if (mprotect(address, made->whole, PROT_NONE) != 0)
        status = hemi_standin_fail(context, HEM_ERR_SYSTEM, "device memory cannot be protected");
    if (status == HEM_OK)
        status =
            hemi_standin_stream_put(context, stream, hemi_standin_item_call(open_memory, made));
    if (status != HEM_OK) {
        hemi_standin_range_free(address);
        free(made);
        return status;
    }
    *address_p = address;
    return HEM_OK;
}

void hemi_standin_free_on(void *context, void *stream, void *address) {
    hemi_standin_item *item = hemi_standin_item_call(hemi_standin_range_free, address);
    if (hemi_standin_stream_put(context, stream, item) != HEM_OK)
        hemi_standin_range_free(address); /* without memory for that: at once */
}
