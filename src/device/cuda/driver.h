/* The calls of CUDA's driver that the module uses, looked up at run time. */
#ifndef HEMI_DEVICE_CUDA_DRIVER_H
#define HEMI_DEVICE_CUDA_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

/**
 * Each with the version that its type is named after, which still held in 12.0: that is the version
 * that is asked for.
 */
#define HEMI_CUDA_CALLS(CALL)                                                                      \
    CALL(GetErrorString, 6000)                                                                     \
    CALL(GetErrorName, 6000)                                                                       \
    CALL(DeviceGetAttribute, 2000)                                                                 \
    CALL(DeviceGetName, 2000)                                                                      \
    CALL(DeviceGetUuid, 11040)                                                                     \
    CALL(DevicePrimaryCtxRetain, 7000)                                                             \
    CALL(DevicePrimaryCtxRelease, 11000)                                                           \
    CALL(DeviceCanAccessPeer, 4000)                                                                \
    CALL(CtxGetCurrent, 4000)                                                                      \
    CALL(CtxPushCurrent, 4000)                                                                     \
    CALL(CtxPopCurrent, 4000)                                                                      \
    CALL(CtxGetDevice, 2000)                                                                       \
    CALL(CtxEnablePeerAccess, 4000)                                                                \
    CALL(ThreadExchangeStreamCaptureMode, 10010)                                                   \
    CALL(PointerGetAttribute, 4000)                                                                \
    CALL(PointerGetAttributes, 7000)                                                               \
    CALL(MemGetAllocationGranularity, 10020)                                                       \
    CALL(MemCreate, 10020)                                                                         \
    CALL(MemRelease, 10020)                                                                        \
    CALL(MemAddressReserve, 10020)                                                                 \
    CALL(MemAddressFree, 10020)                                                                    \
    CALL(MemMap, 10020)                                                                            \
    CALL(MemUnmap, 10020)                                                                          \
    CALL(MemSetAccess, 10020)                                                                      \
    CALL(MemGetAccess, 10020)                                                                      \
    CALL(MemRetainAllocationHandle, 11000)                                                         \
    CALL(MemExportToShareableHandle, 10020)                                                        \
    CALL(MemImportFromShareableHandle, 10020)                                                      \
    CALL(MemsetD8Async, 3020)                                                                      \
    CALL(MemPoolCreate, 11020)                                                                     \
    CALL(MemPoolSetAttribute, 11020)                                                               \
    CALL(MemPoolDestroy, 11020)                                                                    \
    CALL(MemPoolSetAccess, 11020)                                                                  \
    CALL(MemPoolGetAccess, 11020)                                                                  \
    CALL(MemPoolExportToShareableHandle, 11020)                                                    \
    CALL(MemPoolImportFromShareableHandle, 11020)                                                  \
    CALL(MemPoolExportPointer, 11020)                                                              \
    CALL(MemPoolImportPointer, 11020)                                                              \
    CALL(MemAllocFromPoolAsync, 11020)                                                             \
    CALL(MemFreeAsync, 11020)                                                                      \
    CALL(StreamGetCtx, 9020)                                                                       \
    CALL(StreamWriteValue64, 11070)                                                                \
    CALL(StreamWaitValue64, 11070)

/** Since 12.1: NULL where the driver is older. */
#define HEMI_CUDA_CALLS_LATER(CALL)                                                                \
    CALL(MulticastGetGranularity, 12010)                                                           \
    CALL(MulticastCreate, 12010)                                                                   \
    CALL(MulticastAddDevice, 12010)                                                                \
    CALL(MulticastBindMem, 12010)                                                                  \
    CALL(MulticastUnbind, 12010)

typedef struct hemi_cuda_driver {
#define HEMI_CUDA_FIELD(name, version) PFN_cu##name##_v##version name;
    HEMI_CUDA_CALLS(HEMI_CUDA_FIELD)
    HEMI_CUDA_CALLS_LATER(HEMI_CUDA_FIELD)
#undef HEMI_CUDA_FIELD
} hemi_cuda_driver;

/** Look them all up. @return the name of the first that is missing, or NULL. Thread-safe. */
const char *hemi_cuda_driver_find(hemi_cuda_driver *driver_p);

#endif
