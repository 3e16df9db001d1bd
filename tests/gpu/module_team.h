/* Part of module_test.cu: a team of one, which is all that one GPU can have, if it has multicast. */
#include "device/kernels/coll_multi.h"

#define TEAM_BYTES (3 * MIB)
/* A number of every type, and so are those that follow it. */
#define TEAM_FIRST UINT64_C(0x4000000040000000)

/* What all have in the first half goes to all in the second. */
__global__ void team_half(hemd_multi multi, uint32_t code, uint64_t vectors) {
    hemd_multi_fence();
    for (uint64_t i = threadIdx.x; i < vectors; i += HEMD_COLL_DEEP * blockDim.x) {
        hemd_vector some[HEMD_COLL_DEEP];
        hemd_multi_load_reduce(&multi, code, 16 * i, blockDim.x, vectors - i, some);
        for (uint64_t k = 0; k < HEMD_COLL_DEEP; k++)
            if (i + k * blockDim.x < vectors)
                hemd_multi_store(&multi, 16 * (vectors + i + k * blockDim.x), some[k]);
    }
    hemd_multi_fence();
}

static void team_run(const hemd_multi *multi, uint32_t code) {
    const uint64_t words = TEAM_BYTES / 16;
    void *stream;
    OK(streams->make(context, &stream));
    fill<<<8, 256, 0, (cudaStream_t)stream>>>((uint64_t *)multi->own, words, TEAM_FIRST);
    team_half<<<1, 256, 0, (cudaStream_t)stream>>>(*multi, code, words / 2);
    sync(stream);
    uint64_t *got = (uint64_t *)malloc(8 * words);
    OK(memory->copy(context, got, multi->own + 8 * words, 8 * words));
    for (uint64_t i = 0; i < words; i++)
        CHECK(got[i] == TEAM_FIRST + i);
    free(got);
    streams->destroy(context, stream);
}

static void test_team(void) {
    static const uint32_t codes[] = {
        HEMD_COLL_CODE(HEMD_COLL_U32, HEM_SUM), HEMD_COLL_CODE(HEMD_COLL_I64, HEM_MAX),
        HEMD_COLL_CODE(HEMD_COLL_F32, HEM_SUM), HEMD_COLL_CODE(HEMD_COLL_F64, HEM_SUM)};
    hemi_device_memory team = {};
    hemi_device_name name;
    hemd_multi multi;
    int fd = -1;
    if (facts.multi == 0) {
        printf("HEM_CUDA_VMM=%s: no multicast here, so that teams are not tested\n", mode);
        return;
    }
    for (int round = 0; round < 2; round++) {
        hem_status status = module->team->make(context, 1, TEAM_BYTES, 77, &team);
        if (status == HEM_OK)
            status = module->team->join(context, &team);
        if (status == HEM_OK)
            status = module->team->bind(context, &team, 0, &multi);
        if (status != HEM_OK) {
            printf("HEM_CUDA_VMM=%s: the driver refuses a team of one: %s\n", mode, sentence);
            memory->release(context, &team);
            return;
        }
        OK(memory->name(context, &team, &name, &fd));
        CHECK(name.members == 1 && fd >= 0);
        close(fd);
        for (uint32_t code : codes)
            team_run(&multi, code);
        memory->release(context, &team);
    }
    printf("HEM_CUDA_VMM=%s: a team of one is good\n", mode);
}
