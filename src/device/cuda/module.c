#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static const hemi_cuda_kernel *const kernels[HEMI_KERNELS] = {
    [HEMI_KERNEL_SENDRECV] = &hemi_cuda_sendrecv,
    [HEMI_KERNEL_HALO_START] = &hemi_cuda_halo_start,
    [HEMI_KERNEL_HALO_FINISH] = &hemi_cuda_halo_finish,
    [HEMI_KERNEL_HALO_BACK] = &hemi_cuda_halo_back,
    [HEMI_KERNEL_COLL] = &hemi_cuda_coll,
    [HEMI_KERNEL_COPY] = &hemi_cuda_copies,
    [HEMI_KERNEL_STRAIGHT] = &hemi_cuda_straight,
    [HEMI_KERNEL_COLL_MULTI] = &hemi_cuda_coll_multi,
    [HEMI_KERNEL_COLL_DEEP] = &hemi_cuda_coll_deep,
};

const hemi_cuda_kernel *hemi_cuda_kernel_of(enum hemi_kernel kernel) {
    return kernel < HEMI_KERNELS ? kernels[kernel] : NULL;
}

static bool wants(const hemi_device_host *host, const char *name, bool otherwise) {
    const char *value = host->env(name);
    if (value == NULL || value[0] == '\0')
        return otherwise;
    return strcmp(value, "0") != 0;
}

static int device_fact(const hemi_cuda *cuda, CUdevice_attribute attribute) {
    int value = 0;
    if (cuda->driver.DeviceGetAttribute(&value, attribute, cuda->device) != CUDA_SUCCESS)
        return 0;
    return value;
}

/* A context that is current already is taken as it is; else the first device's primary one. */
static hem_status find_context(hemi_cuda *cuda) {
    const hemi_cuda_driver *driver = &cuda->driver;
    CUcontext current = NULL;
    CUresult result = driver->CtxGetCurrent(&current);
    if (result == CUDA_SUCCESS && current != NULL)
        result = driver->CtxGetDevice(&cuda->device);
    else {
        int ordinal = 0;
        hem_status status = hemi_cuda_check(cuda, cudaGetDevice(&ordinal), "cudaGetDevice");
        if (status != HEM_OK)
            return status;
        cuda->device = ordinal;
    }
    if (result == CUDA_SUCCESS)
        result = driver->DevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuDevicePrimaryCtxRetain");
    cuda->primary = true;
    if (current != NULL && current != cuda->context) {
        driver->DevicePrimaryCtxRelease(cuda->device);
        cuda->primary = false;
        cuda->context = current;
    }
    return HEM_OK;
}

/* This device and all that reach it, so that ranks of this process on other GPUs may as well. */
static void find_access(hemi_cuda *cuda) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess)
        devices = 0;
    for (int i = -1; i < devices && cuda->access_count < HEMI_CUDA_DEVICES; i++) {
        int reaches = i < 0;
        if (i >= 0 && i != cuda->device &&
            cuda->driver.DeviceCanAccessPeer(&reaches, i, cuda->device) != CUDA_SUCCESS)
            reaches = 0;
        if (!reaches)
            continue;
        CUmemAccessDesc *access = &cuda->access[cuda->access_count++];
        access->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access->location.id = i < 0 ? cuda->device : i;
        access->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
}

static hem_status find_facts(hemi_cuda *cuda, hemi_device_facts *facts_p) {
    hemi_device_facts facts = {.ordinal = cuda->device, .warp = 32};
    CUuuid uuid;
    CUresult result = cuda->driver.DeviceGetUuid(&uuid, cuda->device);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.DeviceGetName(facts.name, sizeof facts.name, cuda->device);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuDeviceGetUuid");
    memcpy(facts.uuid, uuid.bytes, sizeof facts.uuid);
    memcpy(cuda->uuid, uuid.bytes, sizeof cuda->uuid);
    cuda->processors = (uint32_t)device_fact(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    facts.processors = cuda->processors;
    facts.words = device_fact(cuda, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
    facts.l2_bytes = (uint64_t)device_fact(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    facts.capability =
        (uint32_t)(10 * device_fact(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                   device_fact(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    cuda->fabric = wants(&cuda->host, "HEM_CUDA_FABRIC", false) &&
                   device_fact(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) != 0;
    cuda->vmm =
        wants(&cuda->host, "HEM_CUDA_VMM", true) &&
        device_fact(cuda, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
        device_fact(cuda, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    *facts_p = facts;
    return HEM_OK;
}

static hem_status load(const hemi_cuda *cuda, const hemi_cuda_kernel *kernel, unsigned capability) {
    for (int i = 0; i < HEMI_CUDA_FORMS && kernel->forms[i].function != NULL; i++) {
        struct cudaFuncAttributes attributes;
        cudaError_t error = cudaFuncGetAttributes(&attributes, kernel->forms[i].function);
        if (error == cudaErrorNoKernelImageForDevice)
            return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                                   "libhem_cuda.so has no code for a GPU of capability %u.%u",
                                   capability / 10, capability % 10);
        hem_status status = hemi_cuda_check(cuda, error, kernel->name);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

/*
 * Kernels are loaded on first use otherwise, and loading one may wait for those that run: two ranks
 * of one process would wait for each other.
 */
static hem_status load_kernels(const hemi_cuda *cuda, unsigned capability) {
    hem_status status = HEM_OK;
    for (int i = 0; i < HEMI_KERNELS && status == HEM_OK; i++)
        status = load(cuda, kernels[i], capability);
    return status;
}

/* Whether this GPU can be in a team, and the kernel that is loaded for it was compiled for that. */
static bool has_multicast(const hemi_cuda *cuda) {
    const hemi_cuda_driver *driver = &cuda->driver;
    struct cudaFuncAttributes attributes;
    return wants(&cuda->host, "HEM_CUDA_MULTICAST", false) && (cuda->vmm || cuda->fabric) &&
           device_fact(cuda, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) != 0 &&
           driver->MulticastGetGranularity != NULL && driver->MulticastCreate != NULL &&
           driver->MulticastAddDevice != NULL && driver->MulticastBindMem != NULL &&
           driver->MulticastUnbind != NULL &&
           cudaFuncGetAttributes(&attributes, hemi_cuda_coll_multi.forms[0].function) ==
               cudaSuccess &&
           attributes.ptxVersion >= 90;
}

static hem_status make_streams(hemi_cuda *cuda) {
    hem_status status = hemi_cuda_stream_create(cuda, &cuda->stream);
    for (int i = 0; i < HEMI_CUDA_EVENTS && status == HEM_OK; i++)
        status = hemi_cuda_check(cuda,
                                 cudaEventCreateWithFlags(&cuda->events[i], cudaEventDisableTiming),
                                 "cudaEventCreateWithFlags");
    return status;
}

/* Whether there is a driver and a GPU; else say what is missing. */
static hem_status find_driver(hemi_cuda *cuda) {
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED, "There is no GPU that CUDA can use: %s",
                               error != cudaSuccess ? cudaGetErrorString(error)
                                                    : "the driver shows none");
    const char *missing = hemi_cuda_driver_find(&cuda->driver);
    if (missing != NULL)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                               "The CUDA driver is too old: it does not have %s", missing);
    return HEM_OK;
}

static void module_close(void *context) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    if (cuda->context != NULL && hemi_cuda_enter(cuda, &turn) == HEM_OK) {
        hemi_cuda_ordered_close(cuda);
        hemi_cuda_keep_close(cuda);
        for (int i = 0; i < HEMI_CUDA_EVENTS; i++)
            if (cuda->events[i] != NULL)
                cudaEventDestroy(cuda->events[i]);
        for (uint32_t i = 0; i < cuda->idle_count; i++)
            cudaStreamDestroy(cuda->idle[i]);
        if (cuda->stream != NULL)
            cudaStreamDestroy(cuda->stream);
        hemi_cuda_leave(cuda, &turn);
    }
    if (cuda->primary)
        cuda->driver.DevicePrimaryCtxRelease(cuda->device);
    pthread_mutex_destroy(&cuda->marking);
    pthread_mutex_destroy(&cuda->copies);
    free(cuda);
}

static hem_status open_entered(hemi_cuda *cuda, hemi_device_facts *facts_p) {
    hem_status status = hemi_cuda_keep_open(cuda);
    if (status == HEM_OK)
        status = find_facts(cuda, facts_p);
    if (status == HEM_OK)
        status = load_kernels(cuda, facts_p->capability);
    if (status == HEM_OK)
        facts_p->multi = has_multicast(cuda) ? 1 : 0;
    if (status == HEM_OK)
        status = make_streams(cuda);
    if (status == HEM_OK)
        find_access(cuda);
    return status;
}

static hem_status module_open(const hemi_device_host *host, void **context_p,
                              hemi_device_facts *facts_p) {
    if (host->version != HEMI_DEVICE_VERSION)
        return host->fail(HEM_ERR_UNSUPPORTED,
                          "libhem_cuda.so is for version %u of the library's devices, not %u",
                          HEMI_DEVICE_VERSION, host->version);
    hemi_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return host->fail(HEM_ERR_MEMORY, "No memory for a GPU's context");
    cuda->host = *host;
    pthread_mutex_init(&cuda->copies, NULL);
    pthread_mutex_init(&cuda->marking, NULL);
    hem_status status = find_driver(cuda);
    if (status == HEM_OK)
        status = find_context(cuda);
    hemi_cuda_turn turn;
    if (status == HEM_OK)
        status = hemi_cuda_enter(cuda, &turn);
    if (status == HEM_OK) {
        status = open_entered(cuda, facts_p);
        hemi_cuda_leave(cuda, &turn);
    }
    if (status != HEM_OK) {
        module_close(cuda);
        return status;
    }
    *context_p = cuda;
    return HEM_OK;
}

static const hemi_device_module module = {
    .version = HEMI_DEVICE_VERSION,
    .name = "cuda",
    .memory = &hemi_cuda_memory_ops,
    .stream = &hemi_cuda_stream_ops,
    .open = module_open,
    .close = module_close,
    .team = &hemi_cuda_team_ops,
};

/* The only name that the module exports. */
HEM_API const hemi_device_module *hemi_device_module_get(void);

const hemi_device_module *hemi_device_module_get(void) {
    return &module;
}
