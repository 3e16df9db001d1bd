/* What came in a round, and giving it back. */
#include "halo/line/line.h"

#include <stdlib.h>

#define KEEP_MAGIC ((size_t)0x6c696e656b656570u)

bool hemi_delivery_make(const hem_line *line, const hemi_line_header *header,
                        hem_delivery *delivery) {
    hemi_line_keep *keep = malloc(sizeof *keep + header->meta_bytes);
    if (keep == NULL)
        return false;
    *keep = (hemi_line_keep){.release = line->release,
                             .arg = line->alloc_arg,
                             .bytes = header->data_bytes,
                             .magic = KEEP_MAGIC};
    delivery->present = true;
    delivery->meta = keep + 1;
    delivery->meta_bytes = header->meta_bytes;
    delivery->data_bytes = header->data_bytes;
    return true;
}

void hemi_delivery_free(hem_delivery *delivery, bool dead) {
    if (!delivery->present || delivery->meta == NULL)
        return;
    hemi_line_keep *keep = hemi_delivery_keep(delivery);
    if (keep->magic != KEEP_MAGIC)
        return; /* not one of ours */
    keep->magic = 0;
    if (keep->memory.address != NULL)
        hemi_line_memory_free(&keep->memory, delivery->buffer.data == NULL);
    else if (delivery->buffer.data != NULL && keep->release == NULL)
        free(delivery->buffer.data);
    else if (delivery->buffer.data != NULL && !dead)
        keep->release(keep->arg, &delivery->buffer, keep->bytes);
    free(keep);
    memset(delivery, 0, sizeof *delivery);
}

void hem_line_release(hem_line_result *result) {
    if (result == NULL)
        return;
    hemi_delivery_free(&result->from_left, false);
    hemi_delivery_free(&result->from_right, false);
}
