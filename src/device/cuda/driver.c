#include "device/cuda/driver.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* What the calls were in 12.0: all are older, and later ones differ. Those that came later as they
 * were at first. */
#define INTERFACE       12000
#define INTERFACE_LATER 12010

/* Before 12.5 one could ask only for the version that one is built with. */
static void *find(const char *symbol, unsigned version) {
    void *call = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(symbol, &call, version, cudaEnableLegacyStream, &found);
#else
    (void)version;
    cudaError_t error = cudaGetDriverEntryPoint(symbol, &call, cudaEnableLegacyStream, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? call : NULL;
}

const char *hemi_cuda_driver_find(hemi_cuda_driver *driver_p) {
    void *call;
    /* A function's address does not convert to an object's in C; its bytes are the same. */
#define HEMI_CUDA_FIND(name, version)                                                              \
    call = find("cu" #name, INTERFACE);                                                            \
    if (call == NULL)                                                                              \
        return "cu" #name;                                                                         \
    memcpy(&driver_p->name, &call, sizeof call);
    HEMI_CUDA_CALLS(HEMI_CUDA_FIND)
#undef HEMI_CUDA_FIND
#define HEMI_CUDA_FIND_LATER(name, version)                                                        \
    call = find("cu" #name, INTERFACE_LATER);                                                      \
    memcpy(&driver_p->name, &call, sizeof call);
    HEMI_CUDA_CALLS_LATER(HEMI_CUDA_FIND_LATER)
#undef HEMI_CUDA_FIND_LATER
    return NULL;
}
