/* What may be asked of a pipe and of a call, and what is chosen if nothing is. */
#include "base/options.h"
#include "channel/pipe.h"
#include "window/device.h"

#include <hem/window.h>
#include <inttypes.h>

#define BLOCKS_DEFAULT     16
#define BLOCKS_MAX         64
#define SLOT_BYTES_DEFAULT 32768
#define SLOT_BYTES_MIN     1024
#define SLOT_BYTES_MAX     (1u << 20)
#define SLOTS_DEFAULT      4
#define SLOTS_MAX          64
#define SHORT_DEFAULT      65536
/* Of each lane: with 16 lanes 64 KiB both ways take 7.5 us in the short form and 6.6 in the bulk form, 32 KiB
 * 5.5 in either. */
#define SHORT_LANE 2048
#define SHORT_MAX  (1u << 20)
/* Warps of a role that copy in the bulk form, if nothing is said. */
#define WARPS_DEFAULT 16
/* The share of a GPU that is taken if nothing is said. */
#define QUARTER 4
/* Named barriers of a block that are not __syncthreads. */
#define BARRIERS 15

static hem_status check_numbers(const hem_pipe_options *o) {
    static const char call[] = "hem_pipe_create";
    if (o->blocks > BLOCKS_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%s: %u blocks; 1 to %d are allowed", call, o->blocks,
                         BLOCKS_MAX);
    if (o->slot_bytes != 0 && (o->slot_bytes < SLOT_BYTES_MIN || o->slot_bytes > SLOT_BYTES_MAX ||
                               o->slot_bytes % HEM_DEV_LINE != 0))
        return hemi_fail(HEM_ERR_RANGE,
                         "%s: slot_bytes is %zu; multiples of %d from %d to %u are allowed", call,
                         o->slot_bytes, HEM_DEV_LINE, SLOT_BYTES_MIN, SLOT_BYTES_MAX);
    if (o->slots > SLOTS_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%s: %u slots; 1 to %d are allowed", call, o->slots,
                         SLOTS_MAX);
    if (o->short_bytes > SHORT_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%s: short_bytes is %zu; at most %u are allowed", call,
                         o->short_bytes, SHORT_MAX);
    return o->timeout_ns != 0 ? hemi_check_timeout(o->timeout_ns, call) : HEM_OK;
}

static hem_status read_peers(hem_pipe *pipe, const hem_pipe_options *o) {
    static const char call[] = "hem_pipe_create";
    if (o->peers == NULL && o->peer_count != 0)
        return hemi_fail(HEM_ERR_ARG, "%s: %zu peers, but the list is NULL", call, o->peer_count);
    for (uint32_t r = 0; o->peers == NULL && r < pipe->size; r++)
        pipe->peers[r].named = true;
    for (size_t i = 0; i < o->peer_count; i++) {
        int peer = o->peers[i];
        if (peer < 0 || (uint32_t)peer >= pipe->size)
            return hemi_fail(HEM_ERR_RANGE, "%s: peer %d; 0 to %u are allowed", call, peer,
                             pipe->size - 1);
        if (pipe->peers[peer].named)
            return hemi_fail(HEM_ERR_ARG, "%s: peer %d is named twice", call, peer);
        pipe->peers[peer].named = true;
    }
    return HEM_OK;
}

static uint64_t default_short(uint32_t lanes) {
    uint64_t bytes = (uint64_t)lanes * SHORT_LANE;
    return bytes < SHORT_DEFAULT ? bytes : SHORT_DEFAULT;
}

hem_status hemi_pipe_read_options(hem_pipe *pipe, const hem_pipe_options *options) {
    hem_pipe_options o;
    hem_status status = hemi_options_read(&o, sizeof o, options, "hem_pipe_create");
    if (status == HEM_OK)
        status = check_numbers(&o);
    if (status == HEM_OK)
        status = read_peers(pipe, &o);
    if (status != HEM_OK)
        return status;
    pipe->asked = o.blocks != 0;
    pipe->blocks = o.blocks != 0 ? o.blocks : BLOCKS_DEFAULT;
    pipe->slots = o.slots != 0 ? o.slots : SLOTS_DEFAULT;
    pipe->slot_bytes = o.slot_bytes != 0 ? o.slot_bytes : SLOT_BYTES_DEFAULT;
    pipe->lanes = pipe->blocks * HEMD_PIPE_LANES;
    pipe->short_bytes = o.short_bytes != 0 ? o.short_bytes : default_short(pipe->lanes);
    if (o.timeout_ns != 0)
        pipe->timeout_ns = o.timeout_ns;
    pipe->straight = o.window;
    return o.window != NULL ? hemi_pipe_check_window(pipe) : HEM_OK;
}

hem_status hemi_pipe_check_window(hem_pipe *pipe) {
    static const char call[] = "hem_pipe_create";
    hem_window *window = pipe->straight;
    hem_status status = hemi_window_check(window, call);
    if (status != HEM_OK)
        return status;
    if (window->world != pipe->world)
        return hemi_fail(HEM_ERR_ARG, "%s: the window is one of another world", call);
    if (window->device == NULL)
        return hemi_fail(HEM_ERR_ARG,
                         "%s: the window lies in host memory; one of kind "
                         "HEM_MEMORY_DEVICE is wanted",
                         call);
    for (uint32_t r = 0; r < pipe->size; r++) {
        hemi_pipe_peer *peer = &pipe->peers[r];
        if (!peer->named && r != pipe->rank)
            continue;
        peer->memory = hemi_window_device_address(window, r);
        peer->bytes = hem_window_bytes(window, (int)r);
        if (peer->memory == NULL && peer->bytes > 0)
            return hemi_fail(HEM_ERR_UNSUPPORTED,
                             "%s: kernels of rank %u do not reach rank %u in the window", call,
                             pipe->rank, r);
    }
    return HEM_OK;
}

uint64_t hemi_pipe_fingerprint(const hem_pipe *pipe) {
    uint64_t words[5] = {pipe->blocks, pipe->slots, pipe->slot_bytes, pipe->short_bytes,
                         pipe->straight != NULL ? pipe->straight->id : 0};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < 5; i++)
        hash = (hash ^ words[i]) * 1099511628211u;
    return hash;
}

static hem_status check_how(const hem_pipe *pipe, const hem_pipe_how *how) {
    static const char call[] = "hem_pipe_sendrecv";
    if (how->blocks > pipe->blocks)
        return hemi_fail(HEM_ERR_RANGE, "%s: %u blocks; this pipe was made for 1 to %u", call,
                         how->blocks, pipe->blocks);
    if (how->warps > HEMI_PIPE_WARPS)
        return hemi_fail(HEM_ERR_RANGE, "%s: %u warps; 1 to %d are allowed", call, how->warps,
                         HEMI_PIPE_WARPS);
    if (how->chunk_bytes > pipe->slot_bytes)
        return hemi_fail(HEM_ERR_RANGE,
                         "%s: chunk_bytes is %zu; at most the %" PRIu64 " of a slot are allowed",
                         call, how->chunk_bytes, pipe->slot_bytes);
    return how->timeout_ns != 0 ? hemi_check_timeout(how->timeout_ns, call) : HEM_OK;
}

/* Every team of several warps needs a barrier of its own, in both roles. */
static hem_status check_team(const hemi_pipe_form *form, uint32_t roles) {
    static const char call[] = "hem_pipe_sendrecv";
    if (form->team == 0 || form->warps % form->team != 0)
        return hemi_fail(HEM_ERR_RANGE, "%s: teams of %u of %u warps; divisors of it are allowed",
                         call, form->team, form->warps);
    if (form->team > 1 && roles * form->warps / form->team > BARRIERS)
        return hemi_fail(HEM_ERR_RANGE,
                         "%s: %u teams of %u warps in a block; at most %d teams of more than one "
                         "warp are allowed",
                         call, roles * form->warps / form->team, form->team, BARRIERS);
    return HEM_OK;
}

/* All blocks of all ranks that share the GPU run at the same time, or they wait for ever: those of this
 * pipe, and those of other pipes, exchanges and collectives that are under way as well. So a pipe takes
 * a quarter of what fits, as an exchange does, unless the caller has said how many it may take. */
static uint32_t cap_blocks(const hem_pipe *pipe, uint32_t blocks, uint32_t fit, bool asked) {
    uint32_t each = fit / ((asked ? 1 : QUARTER) * pipe->sharing);
    if (each == 0)
        each = 1;
    return blocks < each ? blocks : each;
}

/* A block of the kernel that goes straight has HEMI_PIPE_WARPS for all roles: all of them copy at the
 * same time, and more would not copy faster, but have too few registers. */
static void cap_warps(hemi_pipe_form *form, uint32_t roles) {
    uint32_t most = roles > 1 ? HEMI_PIPE_WARPS / 2 : HEMI_PIPE_WARPS;
    if (form->warps <= most)
        return;
    form->warps = most; /* a power of two, so that halves of a team divide it */
    uint32_t team = 1;
    while (2 * team <= form->team && 2 * team <= most)
        team *= 2;
    form->team = team;
}

static void choose_warps(hemi_pipe_form *form, const hem_pipe_how *h, uint32_t lanes) {
    form->team = h->team != 0 ? h->team : 1;
    uint32_t worth = lanes < WARPS_DEFAULT ? lanes : WARPS_DEFAULT;
    form->warps = h->warps != 0 ? h->warps : (worth + form->team - 1) / form->team * form->team;
    if (form->warps > HEMI_PIPE_WARPS)
        form->warps = HEMI_PIPE_WARPS;
}

hem_status hemi_pipe_choose(const hem_pipe *pipe, const hem_pipe_how *how,
                            const hemi_pipe_want *want, hemi_pipe_form *form_p) {
    hem_pipe_how h;
    hem_status status = hemi_options_read(&h, sizeof h, how, "hem_pipe_sendrecv");
    if (status == HEM_OK)
        status = check_how(pipe, &h);
    if (status != HEM_OK)
        return status;
    hemi_pipe_form form;
    uint32_t lanes = want->lanes != 0 ? want->lanes : 1;
    choose_warps(&form, &h, lanes);
    status = check_team(&form, want->roles);
    if (status != HEM_OK)
        return status;
    if (want->straight)
        cap_warps(&form, want->roles);
    uint32_t teams = form.warps / form.team;
    form.blocks = h.blocks != 0 ? h.blocks : (lanes + teams - 1) / teams;
    if (form.blocks > pipe->blocks)
        form.blocks = pipe->blocks;
    const uint32_t *fit = want->straight ? pipe->fit_straight : pipe->fit;
    form.blocks = cap_blocks(pipe, form.blocks, fit[(size_t)want->roles * form.warps],
                             h.blocks != 0 || pipe->asked);
    uint64_t chunk = h.chunk_bytes != 0 ? h.chunk_bytes : pipe->slot_bytes;
    form.chunk = (uint32_t)((chunk + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE);
    form.timeout_ns = h.timeout_ns != 0 ? h.timeout_ns : HEM_FOREVER;
    *form_p = form;
    return HEM_OK;
}
