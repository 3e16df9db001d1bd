/*
 * A sender that is ahead: its next messages are there while the receiver still waits. What the receiver
 * makes of them when it looks whether lengths differ: each is compared with the message that it is, in
 * either form, and nothing is compared any more when only the end of a message is waited for. This is
 * looked at while two messages are there for certain, since the moment in which it matters is short.
 *
 * hem-test: ranks=2 timeout=60
 */
#include "pipe_straight_kit.h"

#define SHORT 200
#define BULK  5000
#define ROOM  10000

enum {
    CAME, /* the offer of the second message has come */
    SAME, /* how the receiver of a short message as long as the first finds it */
    OTHER,
    WAITS, /* a receiver that waits for another message, and for the end of the one before */
    ENDS,
    SECOND_SAME, /* the second message, seen as such */
    SECOND_OTHER,
    ANSWERS
};

typedef struct look_args {
    hem_dev_pipe pipe;
    uint64_t *answers;
} look_args;

/* How the 64th poll in vain of a receiver of `bytes` bytes ends in this stage. */
HEM_DEV hem_status straight_poll(const hem_dev_pipe *pipe, enum hemd_stage stage, uint64_t bytes) {
    const hemd_way *way = &pipe->ways[0];
    hemd_share share = {0, 1, 0, HEM_FOREVER};
    hemd_deal deal = hemd_deal_out(pipe, bytes);
    hemd_ends ends = {HEMD_NOWHERE, NULL, 0};
    hemd_flow flow = hemd_flow_begin(pipe, way, &deal, NULL, &share, false, true);
    hemd_course course = hemd_course_begin(&flow, &ends, true);
    course.stage = stage;
    uint32_t polls = HEMD_POLLS - 1;
    uint64_t since = 0;
    return hemd_course_patience(&course, true, &polls, &since);
}

DEVICE_KERNEL(straight_look_ahead, look_args) {
    const hemd_way *way = &args->pipe.ways[0];
    if (hem_block().rank != 0)
        return;
    uint64_t start = hemd_now_ns();
    while (!hemd_pipe_offers_other(way, 2, BULK + 1) && hemd_now_ns() - start < 30000000000u)
        hemd_relax();
    args->answers[CAME] = hemd_pipe_offers_other(way, 2, BULK + 1) ? 1 : 0;
    args->answers[SAME] = hemd_pipe_differs(&args->pipe, way, SHORT) ? 1 : 0;
    args->answers[OTHER] = hemd_pipe_differs(&args->pipe, way, SHORT - 1) ? 1 : 0;
    args->answers[WAITS] = (uint64_t)-straight_poll(&args->pipe, HEMD_STAGE_AGREE, BULK);
    args->answers[ENDS] = (uint64_t)-straight_poll(&args->pipe, HEMD_STAGE_END, BULK);
    args->answers[SECOND_SAME] = hemd_pipe_offers_other(way, 2, BULK) ? 1 : 0;
    args->answers[SECOND_OTHER] = hemd_pipe_offers_other(way, 1, BULK + 1) ? 1 : 0;
}

static void look(pipe_kit *kit) {
    look_args args;
    uint64_t answers[ANSWERS];
    CHECK_OK(hem_pipe_device(kit->pipe, &args.pipe));
    args.answers = (uint64_t *)device_alloc(sizeof answers);
    device_launch(straight_look_ahead, kit->native, 1, 1, &args);
    device_stream_sync(kit->native);
    device_copy(answers, args.answers, sizeof answers);
    CHECK_EQ(answers[CAME], 1);
    CHECK_EQ(answers[SAME], 0);
    CHECK_EQ(answers[OTHER], 1);
    CHECK_EQ(answers[WAITS], (uint64_t)-HEM_ERR_MISMATCH);
    CHECK_EQ(answers[ENDS], 0);
    CHECK_EQ(answers[SECOND_SAME], 0);
    CHECK_EQ(answers[SECOND_OTHER], 0);
    device_free(args.answers);
}

int rank_main(hem_world *world) {
    hem_pipe_options options = pipe_kit_options(1, 1024, 2, 512);
    straight_kit it = straight_open(world, &options, ROOM);
    pipe_kit *kit = &it.kit;
    unsigned char *send = straight_place(&it, STRAIGHT_INSIDE, false, BULK, 0);
    unsigned char *recv = straight_place(&it, STRAIGHT_INSIDE, true, BULK, 0);
    if (kit->rank == 0) {
        pipe_kit_fill(send, BULK, 3);
        pipe_kit_call(kit, 1, send, SHORT, -1, NULL, 0, NULL);
        pipe_kit_call(kit, 1, send, BULK, -1, NULL, 0, NULL);
    } else {
        look(kit);
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, SHORT, NULL);
        pipe_kit_call(kit, -1, NULL, 0, 0, recv, BULK, NULL);
    }
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    if (kit->rank == 1)
        pipe_kit_expect(recv, BULK, 3);
    straight_close(&it, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
