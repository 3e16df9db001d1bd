/*
 * The short form of messages of a pipe: data and stamp together, without fences. Why it is safe stands
 * in hem/device/pipe.h.
 */
#ifndef HEM_DEVICE_BRIEF_H
#define HEM_DEVICE_BRIEF_H

#include <hem/device/flow.h>

/** Where unit i of this lane lies in the rings of all lanes. */
HEM_DEV uint64_t hemd_flow_unit(const hemd_flow *flow, uint32_t i) {
    uint64_t ring = flow->way->area.ring;
    return flow->lane * ring + ((flow->at + i) & (ring - 1));
}

/** Where the data of unit i of this lane lies in the message. */
HEM_DEV uint64_t hemd_flow_byte(const hemd_flow *flow, uint32_t i) {
    return 8u * (uint64_t)(flow->lane * flow->deal->piece + i);
}

/** Behind the units of this lane. */
HEM_DEV void hemd_flow_behind(hemd_flow *flow) {
    flow->at += hemd_flow_units(flow);
    flow->piece = flow->deal->pieces;
}

/** By each thread: load the data of up to 4 of its units, from unit i on. */
HEM_DEV void hemd_send_gather(const hemd_flow *flow, uint32_t size, uint32_t i, uint64_t data[4]) {
    const uint32_t count = hemd_flow_units(flow);
    const uint64_t bytes = flow->deal->bytes;
    if (hemd_is_whole(flow->data, bytes)) {
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (i + k * size < count)
                data[k] = hemd_unit_get(flow->data + hemd_flow_byte(flow, i + k * size), 8);
        return;
    }
    const uint64_t end = hemd_flow_byte(flow, count);
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k += 2) {
        const hemd_words two =
            hemd_words_get_odd(flow->data, end < bytes ? end : bytes,
                               hemd_flow_byte(flow, i + k * size), 8u * (uint64_t)size);
        data[k] = two.word[0];
        data[k + 1] = two.word[1];
    }
}

/** By each thread: store up to 4 of its units. */
HEM_DEV void hemd_send_scatter(const hemd_flow *flow, uint32_t size, uint32_t i,
                               const uint64_t data[4]) {
    hemd_unit *units = (hemd_unit *)(void *)(flow->way->out + flow->way->area.units);
    uint32_t count = hemd_flow_units(flow);
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k++)
        if (i + k * size < count)
            hemd_unit_store(units + hemd_flow_unit(flow, i + k * size), data[k], flow->stamp);
}

/** Send this lane's units; there is room. `data` holds the first 4 of each thread. */
HEM_DEV void hemd_send_units(hemd_flow *flow, hem_group group, uint64_t data[4]) {
    uint32_t count = hemd_flow_units(flow);
    hemd_send_scatter(flow, group.size, group.rank, data);
    for (uint32_t i = group.rank + 4 * group.size; i < count; i += 4 * group.size) {
        hemd_send_gather(flow, group.size, i, data);
        hemd_send_scatter(flow, group.size, i, data);
    }
    hemd_flow_behind(flow);
}

/** By each thread: load up to 4 of its units. @return whether all have the stamp. */
HEM_DEV bool hemd_recv_look(const hemd_flow *flow, uint32_t size, uint32_t i, uint64_t data[4]) {
    const hemd_unit *units = hemd_way_units(flow->way);
    uint32_t count = hemd_flow_units(flow);
    uint64_t seen[4];
    bool all = true;
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        seen[k] = flow->stamp;
        if (i + k * size < count)
            seen[k] = hemd_unit_load(units + hemd_flow_unit(flow, i + k * size), &data[k]);
    }
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k++)
        all = all && seen[k] == flow->stamp;
    return all;
}

/** By each thread: wait for up to 4 of its units. */
HEM_DEV hem_status hemd_recv_await(const hemd_flow *flow, uint32_t size, uint32_t i,
                                   uint64_t data[4]) {
    uint32_t polls = 0;
    uint64_t since = 0;
    hem_status status = HEM_OK;
    for (;;) {
        if (hemd_recv_look(flow, size, i, data))
            return HEM_OK;
        if (status != HEM_OK)
            return status;
        status = hemd_flow_patience(flow, true, &polls, &since);
    }
}

/** By each thread: store the data of up to 4 of its units, from unit i on. */
HEM_DEV void hemd_recv_scatter(const hemd_flow *flow, uint32_t size, uint32_t i,
                               const uint64_t data[4]) {
    const uint32_t count = hemd_flow_units(flow);
    const uint64_t bytes = flow->deal->bytes;
    if (hemd_is_whole(flow->data, bytes)) {
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (i + k * size < count)
                hemd_unit_set(flow->data + hemd_flow_byte(flow, i + k * size), 8, data[k]);
        return;
    }
    HEMD_UNROLL
    for (uint32_t k = 0; k < 4; k++)
        if (i + k * size < count) {
            const uint64_t at = hemd_flow_byte(flow, i + k * size);
            hemd_word_set(flow->data + at, bytes - at, data[k]);
        }
}

/** Whether all units of this lane are there. By all threads of the group. */
HEM_DEV bool hemd_recv_units_ready(const hemd_flow *flow, hem_group group) {
    uint32_t count = hemd_flow_units(flow);
    bool all = true;
    uint64_t data[4];
    for (uint32_t i = group.rank; i < count && all; i += 4 * group.size)
        all = hemd_recv_look(flow, group.size, i, data);
    return !hem_group_any(group, !all);
}

/** Wait for this lane's units and take them. A thread that fails says so to all others.
 *  @return whether all is well, the same to all threads. */
HEM_DEV bool hemd_recv_units(hemd_flow *flow, hem_group group) {
    uint32_t count = hemd_flow_units(flow);
    hem_status status = HEM_OK;
    for (uint32_t i = group.rank; i < count && status == HEM_OK; i += 4 * group.size) {
        uint64_t data[4];
        status = hemd_recv_await(flow, group.size, i, data);
        if (status == HEM_OK)
            hemd_recv_scatter(flow, group.size, i, data);
    }
    if (status != HEM_OK)
        hemd_pipe_fail(flow->pipe, flow->way, status);
    bool failed = hem_group_any(group, status != HEM_OK);
    hemd_flow_behind(flow);
    if (group.rank == 0 && failed)
        flow->kept = (hem_status)(-(int32_t)hemd_load64_relaxed(flow->way->error));
    else if (group.rank == 0)
        hemd_store64_credit(&hemd_flow_credit(flow)->units, flow->at);
    return !failed;
}

#endif
