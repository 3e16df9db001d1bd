/* This is C also for the tests that nvcc compiles: the library's own headers are. */
#include "coll_form.h"

#include "coll/device.h"

static const hemi_coll_device *of_op(const hem_op *op) {
    CHECK(op->type == &hemi_coll_device_type);
    return (const hemi_coll_device *)(const void *)op;
}

bool coll_form_is_deep(const hem_op *op) {
    return hemi_coll_device_kernel(of_op(op)) == HEMI_KERNEL_COLL_DEEP;
}

bool coll_form_is_long(const hem_op *op) {
    return !of_op(op)->units;
}
