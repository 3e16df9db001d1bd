/* The part of module_test.cu that needs two processes: names, descriptors, pools, and one that is killed. */

typedef struct letter {
    hemi_device_name name;
    int32_t has_fd;
} letter;

static void send_letter(int socket, const hemi_device_name *name, int fd) {
    letter l = {*name, fd >= 0};
    struct iovec piece = {&l, sizeof l};
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    CHECK(sendmsg(socket, &message, 0) == (ssize_t)sizeof l);
}

static letter take_letter(int socket, int *fd_p) {
    letter l;
    struct iovec piece = {&l, sizeof l};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof l);
    *fd_p = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (l.has_fd) {
        CHECK(header != NULL);
        memcpy(fd_p, CMSG_DATA(header), sizeof *fd_p);
    }
    return l;
}

static void tell(int socket, char what) {
    CHECK(write(socket, &what, 1) == 1);
}

static void hear(int socket, char what) {
    char heard = 0;
    CHECK(read(socket, &heard, 1) == 1 && heard == what);
}

static void show(int socket, const hemi_device_memory *m) {
    hemi_device_name name;
    int fd = -1;
    OK(memory->name(context, m, &name, &fd));
    send_letter(socket, &name, fd);
    if (fd >= 0)
        close(fd);
}

/* Wrong names end with an error and leave nothing behind. */
static void refuse_wrong_names(const letter *good, int fd) {
    hemi_device_memory m;
    hemi_device_name bad = good->name;
    bad.bytes = bad.whole + 1;
    CHECK(memory->map(context, &bad, fd, false, &m) != HEM_OK);
    bad = good->name;
    bad.offset = UINT64_MAX - 7;
    CHECK(memory->map(context, &bad, fd, false, &m) != HEM_OK);
    bad = good->name;
    bad.whole += UINT64_C(1) << 30;
    bad.bytes = bad.whole - bad.offset;
    CHECK(memory->map(context, &bad, fd, false, &m) != HEM_OK);
    bad = good->name;
    bad.kind = HEMI_DEVICE_NAME_POINTER;
    REFUSED(memory->map(context, &bad, fd, false, &m), HEM_ERR_UNSUPPORTED);
    bad.address = (uint64_t)(uintptr_t)&bad;
    REFUSED(memory->map(context, &bad, fd, true, &m), HEM_ERR_ARG);
}

#define DRIVER(name, version) ((PFN_cu##name##_v##version)find_driver("cu" #name))

static void *find_driver(const char *name) {
    void *call = NULL;
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CUDA(cudaGetDriverEntryPointByVersion(name, &call, 12000, cudaEnableDefault, &found));
#else
    CUDA(cudaGetDriverEntryPoint(name, &call, cudaEnableDefault, &found));
#endif
    CHECK(call != NULL);
    return call;
}

/* Mapped memory of this process, of what is taken for another GPU: reached if this one has access. */
static void test_access(void) {
    hemi_device_memory mine, map;
    hemi_device_name name;
    int fd = -1;
    OK(memory->alloc(context, 2 * MIB, &mine));
    OK(memory->name(context, &mine, &name, &fd));
    if (fd >= 0)
        close(fd);
    name.uuid[0] ^= 1;
    if (name.kind == HEMI_DEVICE_NAME_FD) {
        OK(memory->map(context, &name, -1, true, &map));
        memory->release(context, &map);
    }
    memory->release(context, &mine);
    CUmemAllocationProp what = {};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    what.location.id = facts.ordinal;
    if (DRIVER(MemCreate, 10020)(&handle, 2 * MIB, &what, 0) != CUDA_SUCCESS)
        return; /* this GPU has no such memory */
    CHECK(DRIVER(MemAddressReserve, 10020)(&at, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(DRIVER(MemMap, 10020)(at, 2 * MIB, 0, handle, 0) == CUDA_SUCCESS);
    name.kind = HEMI_DEVICE_NAME_FD;
    name.address = at;
    name.bytes = name.whole = 2 * MIB;
    name.offset = 0;
    CHECK(memory->map(context, &name, -1, true, &map) != HEM_OK); /* nobody was given access */
    CHECK(DRIVER(MemUnmap, 10020)(at, 2 * MIB) == CUDA_SUCCESS);
    CHECK(DRIVER(MemAddressFree, 10020)(at, 2 * MIB) == CUDA_SUCCESS);
    CHECK(DRIVER(MemRelease, 10020)(handle) == CUDA_SUCCESS);
}

/* Memory of a pool that other processes can map. */
static void *pool_memory(uint64_t bytes, cudaStream_t stream) {
    cudaMemPoolProps wanted = {};
    cudaMemPool_t pool;
    void *address;
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = facts.ordinal;
    CUDA(cudaMemPoolCreate(&pool, &wanted));
    CUDA(cudaMallocFromPoolAsync(&address, bytes, pool, stream));
    return address;
}

/* The other process: maps what it is shown and writes to it, shows memory of its own, and dies. */
[[noreturn]] static void run_child(int socket) {
    hemi_device_memory theirs, again, mine;
    int fd;
    void *stream;
    hear(socket, 'a');
    open_module();
    OK(streams->make(context, &stream));
    letter l = take_letter(socket, &fd);
    refuse_wrong_names(&l, fd);
    OK(memory->map(context, &l.name, fd, false, &theirs));
    OK(memory->map(context, &l.name, fd, false, &again));
    if (fd >= 0)
        close(fd);
    check_filled((uint64_t *)theirs.address + 1, 1000, 43);
    memory->release(context, &theirs);
    fill<<<4, 128, 0, (cudaStream_t)stream>>>((uint64_t *)again.address + 1024, 1024, 5000);
    sync(stream);
    tell(socket, 'b');
    /* By the copy of the CPU and by a stream, to a kernel of the other process that waits. */
    hear(socket, 'c');
    set_word(again.address, 1);
    hear(socket, 'd');
    OK(streams->store(context, stream, (uint64_t *)again.address, 2));
    sync(stream);
    OK(memory->alloc(context, 2 * MIB, &mine));
    fill<<<4, 128, 0, (cudaStream_t)stream>>>((uint64_t *)mine.address, 1024, 77);
    sync(stream);
    show(socket, &mine);
    void *pooled = pool_memory(MIB, (cudaStream_t)stream);
    fill<<<4, 128, 0, (cudaStream_t)stream>>>((uint64_t *)pooled, 1024, 66);
    sync(stream);
    OK(memory->adopt(context, pooled, MIB, &mine));
    show(socket, &mine);
    hear(socket, 'e');
    kill(getpid(), SIGKILL);
    _exit(1);
}

/* A kernel here waits for a word that the other process brings. */
static void wait_for(int socket, char what, const uint64_t *word, uint64_t value, uint64_t *seen) {
    void *stream;
    OK(streams->make(context, &stream));
    spin<<<1, 1, 0, (cudaStream_t)stream>>>(word, value, 10000000000, seen);
    tell(socket, what);
    sync(stream);
    CHECK(word_at(seen) == 1);
    streams->destroy(context, stream);
}

/* Memory of the other's pool, which is given back at once and not kept. */
static void map_pool(int socket) {
    hemi_device_memory map;
    int fd;
    letter l = take_letter(socket, &fd);
    CHECK(l.name.kind == HEMI_DEVICE_NAME_POOL && fd >= 0);
    beside_kernel("map a peer's pool", false,
                  [&] { OK(memory->map(context, &l.name, fd, false, &map)); });
    close(fd);
    check_filled(map.address, 1024, 66);
    beside_kernel("release a peer's pool", false, [&] { memory->release(context, &map); });
}

static void test_peer(int socket, pid_t child) {
    hemi_device_memory m, theirs;
    int fd, status;
    OK(memory->alloc(context, 3 * MIB, &m));
    uint64_t *words = (uint64_t *)m.address;
    fill<<<4, 128>>>(words, 2048, 42);
    CUDA(cudaStreamSynchronize(0));
    tell(socket, 'a');
    show(socket, &m);
    hear(socket, 'b');
    check_filled(words + 1024, 1024, 5000);
    wait_for(socket, 'c', words, 1, words + 4096);
    wait_for(socket, 'd', words, 2, words + 4096);
    letter l = take_letter(socket, &fd);
    OK(memory->map(context, &l.name, fd, false, &theirs));
    if (fd >= 0)
        close(fd);
    check_filled(theirs.address, 1024, 77);
    map_pool(socket);
    tell(socket, 'e');
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (mode[0] == '1') {
        /* The memory lives on while it is mapped; legacy IPC does not promise that. */
        check_filled(theirs.address, 1024, 77);
        fill<<<4, 128>>>((uint64_t *)theirs.address, 1024, 99);
        CUDA(cudaStreamSynchronize(0));
        check_filled(theirs.address, 1024, 99);
        printf("  memory of a killed process was read and written\n");
    }
    memory->release(context, &theirs);
    memory->release(context, &m);
}

/* Never returns. The child is made before CUDA is asked for anything. */
[[noreturn]] static void run_pair(void) {
    int sockets[2], devices = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(sockets[0]);
        run_child(sockets[1]);
    }
    close(sockets[1]);
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        fprintf(stderr, "skipped: no GPU here (%s)\n", cudaGetErrorString(error));
        kill(child, SIGKILL);
        _exit(77);
    }
    CUDA(cudaSetDevice(0));
    test_all(sockets[0], child);
    _exit(0);
}
