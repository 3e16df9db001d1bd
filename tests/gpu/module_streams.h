/* The part of module_test.cu that is about streams, and captures of them. */

static void count_call(void *arg) {
    ++*(uint64_t *)arg;
}

/* What an exchange by copy engines does: wait for a word, copy pieces, tell. */
static void put_on(void *stream, void *other, char *base, uint64_t *calls) {
    void *const to[3] = {base + 4096, base + 8192, base + 12288};
    const void *const from[3] = {base + 64, base + 128, base + 192};
    const size_t bytes[3] = {64, 0, 64};
    OK(streams->await(context, stream, (uint64_t *)base, 5));
    OK(streams->copy(context, stream, 3, to, from, bytes));
    OK(streams->order(context, stream, other));
    OK(streams->call(context, other, count_call, calls));
    OK(streams->order(context, other, stream));
    OK(streams->store(context, stream, (uint64_t *)(base + 8), 6));
}

static void test_streams(void) {
    hemi_device_memory m;
    void *stream, *other;
    uint64_t calls = 0;
    OK(memory->alloc(context, MIB, &m));
    char *base = (char *)m.address;
    OK(streams->make(context, &stream));
    OK(streams->make(context, &other));
    OK(streams->check(context, stream, true));
    OK(streams->check(context, (void *)cudaStreamPerThread, true));
    OK(streams->check(context, NULL, false));
    REFUSED(streams->check(context, NULL, true), HEM_ERR_UNSUPPORTED);
    REFUSED(streams->check(context, (void *)cudaStreamLegacy, true), HEM_ERR_UNSUPPORTED);
    for (int i = 0; i < HEMI_KERNELS; i++)
        printf("  kernel %d: %u blocks of 256 threads fit\n", i,
               streams->fit(context, (enum hemi_kernel)i, 256));
    hemi_launch wrong = {HEMI_KERNEL_SENDRECV, 1, 32, &wrong, 1};
    REFUSED(streams->launch(context, stream, &wrong), HEM_ERR_ARG);

    fill<<<1, 128, 0, (cudaStream_t)stream>>>((uint64_t *)(base + 64), 24, 100);
    sync(stream);
    put_on(stream, other, base, &calls);
    usleep(20000);
    CHECK(streams->query(context, stream) == HEM_ERR_TIMEOUT && calls == 0);
    set_word(base, 5);
    sync(stream);
    CHECK(word_at(base + 8) == 6 && calls == 1);
    check_filled(base + 4096, 8, 100);
    check_filled(base + 12288, 8, 116);

    /* Two pieces by one call, and a word in host memory that the CPU writes. */
    uint64_t *page = (uint64_t *)aligned_alloc(4096, 4096);
    void *seen;
    memset(page, 0, 4096);
    OK(memory->map_host(context, page, 4096, false, &seen));
    void *const to[2] = {base + 20480, base + 24576};
    const void *const from[2] = {base + 64, base + 128};
    const size_t bytes[2] = {64, 64};
    OK(streams->await(context, stream, (uint64_t *)seen, 1));
    OK(streams->copy(context, stream, 2, to, from, bytes));
    usleep(20000);
    CHECK(streams->query(context, stream) == HEM_ERR_TIMEOUT);
    __atomic_store_n(page, 1, __ATOMIC_RELEASE);
    sync(stream);
    check_filled(base + 24576, 8, 108);
    memory->unmap_host(context, page, 4096);
    free(page);

    /* Three rows of two words, every 64 bytes here and every 256 there, and a row by itself. */
    hemi_device_rows rows[2] = {{base + 28672, base + 64, 16, 3, 256, 64},
                                {base + 32768, base + 64, 64, 1, 0, 0}};
    OK(streams->copy_rows(context, stream, 2, rows));
    sync(stream);
    for (int i = 0; i < 3; i++)
        check_filled(base + 28672 + 256 * i, 2, 100 + 8 * (uint64_t)i);
    check_filled(base + 32768, 8, 100);
    streams->destroy(context, stream);
    streams->destroy(context, other);
    memory->release(context, &m);
}

/* A capture that forbids calls to all threads is not hurt by what the module does meanwhile. */
static void test_capture(void) {
    hemi_device_memory m;
    void *stream, *other;
    uint64_t calls = 0;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    OK(memory->alloc(context, MIB, &m));
    char *base = (char *)m.address;
    OK(streams->make(context, &stream));
    OK(streams->make(context, &other));
    set_word(base, 5);
    CUDA(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeGlobal));
    put_on(stream, other, base, &calls);
    std::thread([&] {
        hemi_device_memory n;
        CUDA(cudaSetDevice(facts.ordinal));
        OK(memory->alloc(context, MIB, &n));
        set_word(n.address, 1);
        CHECK(word_at(n.address) == 1);
        memory->release(context, &n);
    }).join();
    put_on(stream, other, base, &calls);
    CUDA(cudaStreamEndCapture((cudaStream_t)stream, &graph));
    CHECK(calls == 0);
    CUDA(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 1; i <= 3; i++) {
        CUDA(cudaGraphLaunch(ready, (cudaStream_t)stream));
        sync(stream);
        CHECK(calls == 2u * (unsigned)i);
    }
    CUDA(cudaGraphExecDestroy(ready));
    CUDA(cudaGraphDestroy(graph));
    streams->destroy(context, stream);
    streams->destroy(context, other);
    memory->release(context, &m);
}

/* A mark that was given back, reached or not, is used again, and then stands for another stream. */
static void test_marks(void) {
    hemi_device_memory m;
    void *held, *idle, *mark, *again, *third;
    OK(memory->alloc(context, MIB, &m));
    OK(streams->make(context, &held));
    OK(streams->make(context, &idle));
    OK(streams->await(context, held, (uint64_t *)m.address, 1));
    OK(streams->mark(context, held, &mark));
    REFUSED(streams->test(context, mark), HEM_ERR_TIMEOUT);
    streams->unmark(context, mark);
    OK(streams->mark(context, idle, &again));
    CHECK(again == mark);
    sync(idle);
    OK(streams->test(context, again));
    OK(streams->mark(context, held, &third));
    CHECK(third != again);
    REFUSED(streams->test(context, third), HEM_ERR_TIMEOUT);
    set_word(m.address, 1);
    sync(held);
    OK(streams->test(context, third));
    streams->unmark(context, third);
    streams->unmark(context, again);
    streams->destroy(context, held);
    streams->destroy(context, idle);
    memory->release(context, &m);
}
