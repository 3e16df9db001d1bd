#include "gpu_nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is used of nccl.h, by hand: nothing of NCCL is needed to build this. */

typedef struct {
    char bytes[128];
} nccl_id;

/* As it was in 2.18. Newer versions look at `size` and `version`, and fill in the rest. */
typedef struct {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char *net_name;
    int split_share;
} nccl_config;

enum {
    NCCL_VERSION_CODE_OF_CONFIG = 21800,
    NCCL_LEAST_VERSION = 23003,
    NCCL_INT8 = 0,
    NCCL_FLOAT32 = 7,
    NCCL_SUM = 0
};

struct gpu_nccl {
    void *comm;
};

/* All return 0 if they are well. */
static struct {
    int (*get_version)(int *version);
    int (*get_unique_id)(nccl_id *id);
    int (*comm_init_rank_config)(void **comm, int ranks, nccl_id id, int rank, nccl_config *config);
    int (*comm_destroy)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *data, size_t count, int type, int peer, void *comm, cudaStream_t on);
    int (*recv)(void *data, size_t count, int type, int peer, void *comm, cudaStream_t on);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int op, void *comm,
                      cudaStream_t on);
    int (*all_gather)(const void *send, void *recv, size_t count, int type, void *comm,
                      cudaStream_t on);
    const char *(*error)(int result);
} nccl;

static char log_path[64];

static void need(int result, const char *what) {
    if (result != 0)
        gpu_die("%s: %s", what, nccl.error(result));
}

static void *find(void *library, const char *name) {
    void *fn = dlsym(library, name);

    if (fn == NULL)
        gpu_skip("libnccl.so.2 has no %s", name);
    return fn;
}

/* What NCCL says of its channels goes to a file, since that is where the transport is named. */
static void set_environment(void) {
    char pattern[64];

    snprintf(pattern, sizeof(pattern), "/tmp/hem-bench-nccl.%d.log", (int)getpid());
    snprintf(log_path, sizeof(log_path), "%s", pattern);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,P2P,NET", 1);
    setenv("NCCL_DEBUG_FILE", pattern, 1);
}

static void open_library(void) {
    int version = 0;

    set_environment();
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        gpu_skip("there is no NCCL: %s", dlerror());
#define FIND(field, name) *(void **)&nccl.field = find(library, name)
    FIND(get_version, "ncclGetVersion");
    FIND(get_unique_id, "ncclGetUniqueId");
    FIND(comm_init_rank_config, "ncclCommInitRankConfig");
    FIND(comm_destroy, "ncclCommDestroy");
    FIND(group_start, "ncclGroupStart");
    FIND(group_end, "ncclGroupEnd");
    FIND(send, "ncclSend");
    FIND(recv, "ncclRecv");
    FIND(all_reduce, "ncclAllReduce");
    FIND(all_gather, "ncclAllGather");
    FIND(error, "ncclGetErrorString");
#undef FIND
    need(nccl.get_version(&version), "ncclGetVersion");
    if (version < NCCL_LEAST_VERSION)
        gpu_skip("NCCL is %d.%d.%d; several ranks on one GPU need 2.30.3", version / 10000,
                 version / 100 % 100, version % 100);
}

/* Rank 0 opens it for a process of threads, each process for itself. */
static void open_once(struct gpu_rank *rank) {
    if (nccl.get_version == NULL && (rank->args->processes || rank->rank == 0))
        open_library();
    gpu_meet(rank);
}

struct gpu_nccl *gpu_nccl_open(struct gpu_rank *rank, unsigned blocks) {
    nccl_config config = {sizeof(config), 0xcafebeefu, NCCL_VERSION_CODE_OF_CONFIG,
                          INT_MIN,        INT_MIN,     INT_MIN,
                          INT_MIN,        NULL,        INT_MIN};
    struct gpu_nccl *made = (struct gpu_nccl *)calloc(1, sizeof(*made));
    nccl_id id;

    memset(&id, 0, sizeof(id));
    open_once(rank);
    if (rank->rank == 0)
        need(nccl.get_unique_id(&id), "ncclGetUniqueId");
    NEED_HEM(hem_broadcast(rank->world, &id, sizeof(id), HEM_BYTE, 0, GPU_LIMIT_NS));
    if (blocks > 0) {
        config.min_ctas = (int)blocks;
        config.max_ctas = (int)blocks;
    }
    need(nccl.comm_init_rank_config(&made->comm, rank->ranks, id, rank->rank, &config),
         "ncclCommInitRankConfig");
    gpu_meet(rank);
    return made;
}

void gpu_nccl_close(struct gpu_rank *rank, struct gpu_nccl *made) {
    gpu_finish(rank);
    gpu_meet(rank);
    need(nccl.comm_destroy(made->comm), "ncclCommDestroy");
    free(made);
    gpu_meet(rank);
}

void gpu_nccl_sendrecv(struct gpu_rank *rank, struct gpu_nccl *made, int to, const void *send,
                       int from, void *recv, size_t bytes) {
    need(nccl.group_start(), "ncclGroupStart");
    if (to >= 0)
        need(nccl.send(send, bytes, NCCL_INT8, to, made->comm, rank->stream), "ncclSend");
    if (from >= 0)
        need(nccl.recv(recv, bytes, NCCL_INT8, from, made->comm, rank->stream), "ncclRecv");
    need(nccl.group_end(), "ncclGroupEnd");
}

void gpu_nccl_allreduce(struct gpu_rank *rank, struct gpu_nccl *made, const void *send, void *recv,
                        size_t bytes) {
    need(nccl.all_reduce(send, recv, bytes / sizeof(float), NCCL_FLOAT32, NCCL_SUM, made->comm,
                         rank->stream),
         "ncclAllReduce");
}

void gpu_nccl_allgather(struct gpu_rank *rank, struct gpu_nccl *made, const void *send, void *recv,
                        size_t bytes) {
    need(nccl.all_gather(send, recv, bytes, NCCL_INT8, made->comm, rank->stream), "ncclAllGather");
}

/* The last "via ..." of the log, or the first that is not between GPUs. @return whether there is one
 * and all are. */
static bool read_log(char *via, size_t size) {
    FILE *log = fopen(log_path, "r");
    bool good = true;
    char line[1024];

    via[0] = '\0';
    while (good && log != NULL && fgets(line, sizeof(line), log) != NULL) {
        const char *at = strstr(line, " via ");
        if (at == NULL || strstr(line, "Channel ") == NULL)
            continue;
        good = strncmp(at + 5, "P2P", 3) == 0;
        snprintf(via, size, "%.*s", (int)strcspn(at + 5, "\n\""), at + 5);
    }
    if (log != NULL)
        fclose(log);
    return good && via[0] != '\0';
}

void gpu_nccl_check(struct gpu_rank *rank) {
    char via[96];

    if (rank->rank == 0 && !read_log(via, sizeof(via)))
        gpu_die("NCCL went via %s, not from GPU memory to GPU memory",
                via[0] != '\0' ? via : "an unknown route");
}

void gpu_nccl_tell(struct gpu_rank *rank) {
    int version = 0;
    char via[96];

    if (rank->rank == 0) {
        need(nccl.get_version(&version), "ncclGetVersion");
        (void)read_log(via, sizeof(via));
        gpu_note(rank, "nccl is %d.%d.%d, via %s", version / 10000, version / 100 % 100,
                 version % 100, via);
    }
    if (rank->rank == 0 || rank->args->processes)
        unlink(log_path);
}
