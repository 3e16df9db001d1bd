/* The kernels of the library, as functions of host threads. */
#include "device/standin/inside.h"

#include <hem/device/types.h>

#include "device/kernels/coll.h"
#include "device/kernels/coll_deep.h"
#include "device/kernels/coll_multi.h"
#include "device/kernels/copy.h"
#include "device/kernels/halo.h"
#include "device/kernels/sendrecv.h"

/* A kernel whose arguments are known by a pointer to anything. */
#define KERNEL(name, type)                                                                         \
    static void run_##name(const void *args) {                                                     \
        hemd_kernel_##name((const struct type *)args);                                             \
    }

KERNEL(sendrecv, hemd_sendrecv_args)
KERNEL(halo_start, hemd_halo_args)
KERNEL(halo_finish, hemd_halo_args)
KERNEL(halo_back, hemd_halo_args)
KERNEL(coll, hemd_coll_args)
KERNEL(coll_multi, hemd_coll_args)
KERNEL(coll_deep, hemd_coll_args)
KERNEL(copy, hemd_copy_args)
KERNEL(straight, hemd_straight_args)

typedef struct entry {
    const char *name;
    hemi_standin_kernel run;
    size_t bytes;
} entry;

static const entry table[HEMI_KERNELS] = {
    [HEMI_KERNEL_SENDRECV] = {"sendrecv", run_sendrecv, sizeof(struct hemd_sendrecv_args)},
    [HEMI_KERNEL_HALO_START] = {"halo_start", run_halo_start, sizeof(struct hemd_halo_args)},
    [HEMI_KERNEL_HALO_FINISH] = {"halo_finish", run_halo_finish, sizeof(struct hemd_halo_args)},
    [HEMI_KERNEL_HALO_BACK] = {"halo_back", run_halo_back, sizeof(struct hemd_halo_args)},
    [HEMI_KERNEL_COLL] = {"coll", run_coll, sizeof(struct hemd_coll_args)},
    [HEMI_KERNEL_COLL_MULTI] = {"coll_multi", run_coll_multi, sizeof(struct hemd_coll_args)},
    [HEMI_KERNEL_COLL_DEEP] = {"coll_deep", run_coll_deep, sizeof(struct hemd_coll_args)},
    [HEMI_KERNEL_COPY] = {"copy", run_copy, sizeof(struct hemd_copy_args)},
    [HEMI_KERNEL_STRAIGHT] = {"straight", run_straight, sizeof(struct hemd_straight_args)},
};

hemi_standin_kernel hemi_standin_kernel_of(const void *context, enum hemi_kernel kernel,
                                           size_t bytes) {
    if ((unsigned)kernel >= HEMI_KERNELS || table[kernel].run == NULL) {
        (void)hemi_standin_fail(context, HEM_ERR_SYSTEM, "the stand-in has no kernel %d",
                                (int)kernel);
        return NULL;
    }
    if (bytes != table[kernel].bytes) {
        (void)hemi_standin_fail(context, HEM_ERR_SYSTEM,
                                "kernel %s takes %zu bytes of arguments, not %zu",
                                table[kernel].name, table[kernel].bytes, bytes);
        return NULL;
    }
    return table[kernel].run;
}
