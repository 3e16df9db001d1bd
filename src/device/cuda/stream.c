/* Work on streams. Nothing here waits, so that it may be done while a stream is captured. */
#include "base/atomic.h"
#include "device/cuda/cuda.h"
#include "device/kernels/copy.h"

static bool is_legacy(const void *stream) {
    return stream == NULL || stream == (const void *)cudaStreamLegacy;
}

static hem_status check_device(const hemi_cuda *cuda, void *stream) {
    CUcontext context = NULL, popped;
    CUdevice device = cuda->device;
    CUresult result = cuda->driver.StreamGetCtx(stream, &context);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.CtxPushCurrent(context);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuStreamGetCtx");
    cuda->driver.CtxGetDevice(&device);
    cuda->driver.CtxPopCurrent(&popped);
    if (device == cuda->device)
        return HEM_OK;
    return cuda->host.fail(HEM_ERR_ARG, "The stream is of GPU %d, and this rank's is GPU %d",
                           device, cuda->device);
}

/*
 * A stream gets one of the GPU's queues with its first kernel. Where threads launch such at the same
 * time, the driver may give them the same queue although others are free: then a kernel that waits for
 * that of another rank waits for ever, since the other one is behind it (driver 580; docs/gpu.md). So
 * streams get their queues here, one after the other.
 */
static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER;

static hem_status take_queue(const hemi_cuda *cuda, void *stream) {
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusActive;
    if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
        capturing != cudaStreamCaptureStatusNone)
        return HEM_OK; /* what is captured runs elsewhere */
    const hemi_cuda_kernel *kernel = hemi_cuda_kernel_of(HEMI_KERNEL_COPY);
    hemd_copy_args nothing = {.count = 0};
    void *args[1] = {&nothing};
    pthread_mutex_lock(&queues);
    cudaError_t error = cudaLaunchKernel(kernel->forms[0].function, (dim3){1, 1, 1},
                                         (dim3){32, 1, 1}, args, 0, stream);
    pthread_mutex_unlock(&queues);
    return hemi_cuda_check(cuda, error, kernel->name);
}

static hem_status stream_check(void *context, void *stream, bool shared) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    if (shared && is_legacy(stream))
        return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                               "The legacy default stream waits for the kernels of the other ranks "
                               "of this process on the "
                               "same GPU, which wait for this one: use a stream of one's own, or "
                               "cudaStreamPerThread. (All "
                               "ranks of the process count that have not opened their device yet)");
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    if (!is_legacy(stream) && stream != (void *)cudaStreamPerThread)
        status = check_device(cuda, stream);
    if (status == HEM_OK && shared)
        status = take_queue(cuda, stream);
    hemi_cuda_leave(cuda, &turn);
    return status;
}

/* The form with the most registers among those that such a block may have. NULL if there is none. */
static const void *form_for(const hemi_cuda_kernel *kernel, uint32_t threads) {
    if (kernel == NULL || threads == 0 || threads % 32 != 0)
        return NULL;
    for (int i = 0; i < HEMI_CUDA_FORMS && kernel->forms[i].function != NULL; i++)
        if (threads <= kernel->forms[i].threads)
            return kernel->forms[i].function;
    return NULL;
}

static hem_status check_launch(const hemi_cuda *cuda, const hemi_cuda_kernel *kernel,
                               const hemi_launch *launch) {
    if (kernel == NULL || kernel->forms[0].function == NULL)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED, "libhem_cuda.so has no kernel number %d",
                               (int)launch->kernel);
    if (launch->bytes != kernel->bytes)
        return cuda->host.fail(HEM_ERR_ARG, "%s takes %zu bytes of arguments, not %zu",
                               kernel->name, kernel->bytes, launch->bytes);
    if (launch->blocks == 0 || form_for(kernel, launch->threads) == NULL)
        return cuda->host.fail(HEM_ERR_RANGE, "%s cannot be %u blocks of %u threads", kernel->name,
                               launch->blocks, launch->threads);
    return HEM_OK;
}

static hem_status stream_launch(void *context, void *stream, const hemi_launch *launch) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    const hemi_cuda_kernel *kernel = hemi_cuda_kernel_of(launch->kernel);
    hem_status status = check_launch(cuda, kernel, launch);
    if (status == HEM_OK)
        status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    cudaLaunchConfig_t config = {0};
    config.gridDim = (dim3){launch->blocks, 1, 1};
    config.blockDim = (dim3){launch->threads, 1, 1};
    config.stream = stream;
    /* Copied before the call returns. */
    void *args[1] = {(void *)(uintptr_t)launch->args};
    cudaError_t error = cudaLaunchKernelExC(&config, form_for(kernel, launch->threads), args);
    status = hemi_cuda_check(cuda, error, kernel->name);
    hemi_cuda_leave(cuda, &turn);
    return status;
}

static uint32_t stream_fit(void *context, enum hemi_kernel number, uint32_t threads) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    const void *form = form_for(hemi_cuda_kernel_of(number), threads);
    int blocks = 0;
    if (form == NULL || hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return 0;
    cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, form, (int)threads, 0);
    hemi_cuda_leave(cuda, &turn);
    return error == cudaSuccess ? (uint32_t)blocks * cuda->processors : 0;
}

/* One call for all pieces, where this CUDA has it. It is not for captures and legacy streams. */
static bool copy_batch(void *stream, uint32_t count, void *const *to, const void *const *from,
                       const size_t *bytes) {
#if CUDART_VERSION >= 12080
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusActive;
    if (count < 2 || is_legacy(stream) ||
        cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
        capturing != cudaStreamCaptureStatusNone)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (bytes[i] == 0)
            return false;
    struct cudaMemcpyAttributes attributes = {0};
    size_t first = 0;
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    /* What is const differs between releases; nothing of it is written. */
    void *tos = (void *)(uintptr_t)to;
    void *froms = (void *)(uintptr_t)from;
    void *lengths = (void *)(uintptr_t)bytes;
#if CUDART_VERSION >= 13000
    return cudaMemcpyBatchAsync(tos, froms, lengths, count, &attributes, &first, 1, stream) ==
           cudaSuccess;
#else
    size_t failed;
    return cudaMemcpyBatchAsync(tos, froms, lengths, count, &attributes, &first, 1, &failed,
                                stream) == cudaSuccess;
#endif
#else
    (void)stream, (void)count, (void)to, (void)from, (void)bytes;
    return false;
#endif
}

static hem_status stream_copy(void *context, void *stream, uint32_t count, void *const *to,
                              const void *const *from, const size_t *bytes) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    if (!copy_batch(stream, count, to, from, bytes)) {
        for (uint32_t i = 0; i < count && status == HEM_OK; i++)
            if (bytes[i] > 0)
                status = hemi_cuda_check(
                    cuda, cudaMemcpyAsync(to[i], from[i], bytes[i], cudaMemcpyDefault, stream),
                    "cudaMemcpyAsync");
    }
    hemi_cuda_leave(cuda, &turn);
    return status;
}

/* Pieces of one row each, a few at a time in one call. */
#define TOGETHER 256u

static hem_status copy_single(void *context, void *stream, uint32_t count,
                              const hemi_device_rows *rows) {
    void *to[TOGETHER];
    const void *from[TOGETHER];
    size_t bytes[TOGETHER];
    hem_status status = HEM_OK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count && status == HEM_OK; i++) {
        if (rows[i].rows == 1) {
            to[n] = rows[i].to;
            from[n] = rows[i].from;
            bytes[n++] = rows[i].bytes;
        }
        if (n == TOGETHER || (n > 0 && i + 1 == count)) {
            status = stream_copy(context, stream, n, to, from, bytes);
            n = 0;
        }
    }
    return status;
}

static hem_status stream_copy_rows(void *context, void *stream, uint32_t count,
                                   const hemi_device_rows *rows) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = copy_single(context, stream, count, rows);
    if (status == HEM_OK)
        status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    for (uint32_t i = 0; i < count && status == HEM_OK; i++)
        if (rows[i].rows > 1)
            status = hemi_cuda_check(cuda,
                                     cudaMemcpy2DAsync(rows[i].to, rows[i].to_step, rows[i].from,
                                                       rows[i].from_step, rows[i].bytes,
                                                       rows[i].rows, cudaMemcpyDefault, stream),
                                     "cudaMemcpy2DAsync");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

static hem_status stream_store(void *context, void *stream, uint64_t *word, uint64_t value) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    /* By default there is a fence before the store. */
    CUresult result = cuda->driver.StreamWriteValue64(stream, (CUdeviceptr)(uintptr_t)word, value,
                                                      CU_STREAM_WRITE_VALUE_DEFAULT);
    status = hemi_cuda_check_driver(cuda, result, "cuStreamWriteValue64");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

static hem_status stream_await(void *context, void *stream, const uint64_t *word, uint64_t value) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    CUresult result = cuda->driver.StreamWaitValue64(stream, (CUdeviceptr)(uintptr_t)word, value,
                                                     CU_STREAM_WAIT_VALUE_GEQ);
    status = hemi_cuda_check_driver(cuda, result, "cuStreamWaitValue64");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

static hem_status stream_call(void *context, void *stream, void (*fn)(void *arg), void *arg) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    status = hemi_cuda_check(cuda, cudaLaunchHostFunc(stream, fn, arg), "cudaLaunchHostFunc");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

/* A wait is for what an event stood for when the wait was made, so it is free again at once. */
static uint32_t take_event(hemi_cuda *cuda) {
    for (uint32_t i = 0;; i = (i + 1) % HEMI_CUDA_EVENTS) {
        uint32_t expected = 0;
        /* Pairs with the release in stream_order: the calls of the last user are over. */
        if (hemi_cas32_acq_rel(&cuda->event_taken[i], &expected, 1))
            return i;
        hemi_pause();
    }
}

static hem_status stream_order(void *context, void *before, void *after) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    uint32_t i = take_event(cuda);
    status = hemi_cuda_check(cuda, cudaEventRecord(cuda->events[i], before), "cudaEventRecord");
    if (status == HEM_OK)
        status = hemi_cuda_check(cuda, cudaStreamWaitEvent(after, cuda->events[i], 0),
                                 "cudaStreamWaitEvent");
    hemi_store32_release(&cuda->event_taken[i], 0);
    hemi_cuda_leave(cuda, &turn);
    return status;
}

hem_status hemi_cuda_stream_create(const hemi_cuda *cuda, cudaStream_t *stream_p) {
    cudaStream_t stream = NULL;
    hem_status status =
        hemi_cuda_check(cuda, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags");
    if (status != HEM_OK)
        return status;
    status = take_queue(cuda, stream);
    if (status == HEM_OK)
        *stream_p = stream;
    else
        cudaStreamDestroy(stream);
    return status;
}

static hem_status stream_make(void *context, void **stream_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    cudaStream_t stream = NULL;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    pthread_mutex_lock(&cuda->copies);
    if (cuda->idle_count > 0)
        stream = cuda->idle[--cuda->idle_count];
    pthread_mutex_unlock(&cuda->copies);
    if (stream == NULL)
        status = hemi_cuda_stream_create(cuda, &stream);
    hemi_cuda_leave(cuda, &turn);
    if (status == HEM_OK)
        *stream_p = stream;
    return status;
}

static void stream_destroy(void *context, void *stream) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    if (hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return;
    bool kept = false;
    pthread_mutex_lock(&cuda->copies);
    if (cuda->idle_count < HEMI_CUDA_IDLE && cudaStreamQuery(stream) == cudaSuccess) {
        cuda->idle[cuda->idle_count++] = stream;
        kept = true;
    }
    pthread_mutex_unlock(&cuda->copies);
    if (!kept)
        cudaStreamDestroy(stream);
    hemi_cuda_leave(cuda, &turn);
}

/* Not being done is no failure that needs a sentence: whoever asks asks again. */
static hem_status stream_query(void *context, void *stream) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    cudaError_t error = cudaStreamQuery(stream);
    status = error == cudaErrorNotReady ? HEM_ERR_TIMEOUT
                                        : hemi_cuda_check(cuda, error, "cudaStreamQuery");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

static bool stream_captures(void *context, void *stream) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return false;
    cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
    hemi_cuda_leave(cuda, &turn);
    return error == cudaSuccess && capturing != cudaStreamCaptureStatusNone;
}

const hemi_device_stream_ops hemi_cuda_stream_ops = {
    .check = stream_check,
    .launch = stream_launch,
    .fit = stream_fit,
    .copy = stream_copy,
    .store = stream_store,
    .await = stream_await,
    .call = stream_call,
    .order = stream_order,
    .make = stream_make,
    .destroy = stream_destroy,
    .query = stream_query,
    .captures = stream_captures,
    .mark = hemi_cuda_mark,
    .test = hemi_cuda_test,
    .unmark = hemi_cuda_unmark,
    .alloc_on = hemi_cuda_alloc_on,
    .free_on = hemi_cuda_free_on,
    .copy_rows = stream_copy_rows,
};
