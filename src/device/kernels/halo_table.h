/*
 * The tables of an exchange on a device: what the host writes once and the kernels of halo.h read.
 *
 * A part is a copy of `total` units of a few bytes from one side to another, in the order of the
 * message. A side is a field, described by nested loops of which one may go through a list of
 * offsets, or the message itself, which is contiguous. Units are as wide as addresses, strides and
 * lengths of both sides allow, at most 16 bytes. Work is cut into tiles, one for a warp at a time,
 * which lie in a table: no kernel searches.
 *
 * What a reverse run combines lies in cells: one for each unit of an owner that anything comes back
 * to, with all that comes, in the order of ranks, domains and links. A thread does a whole cell, so
 * the order of a sum does not depend on who arrives first, and no two threads write one place. Many
 * units that follow each other, and to which the same comes back in step, are one stretch instead.
 */
#ifndef HEMD_KERNELS_HALO_TABLE_H
#define HEMD_KERNELS_HALO_TABLE_H

#include <hem/device/word.h>

/** One more than a shape has: what is contiguous is cut into units. */
#define HEMD_HALO_AXES 9
/** Sides with at most so many axes, and fewer than 2^31 units, are walked in registers. */
#define HEMD_HALO_FEW 4
/** Parts of a message start at multiples of this. */
#define HEMD_HALO_ALIGN 16u

/** One loop of a side. The first axis is the innermost. */
typedef struct hemd_halo_axis {
    uint64_t count;
    int64_t stride; /**< bytes; of a list 0 */
    uint32_t magic; /**< for dividing by `count`: see hemd_halo_divide */
    uint32_t shift;
} hemd_halo_axis;

typedef struct hemd_halo_side {
    unsigned char *base; /**< where unit 0 is, without the list; of a message set by the kernel */
    const void *list;    /**< offsets in bytes, of 4 or 8 bytes each */
    uint8_t axis_count;
    uint8_t list_at;    /**< the axis that is a list, or HEMD_HALO_AXES */
    uint8_t list_width; /**< 4 or 8, or 0 without one */
    uint8_t is_message;
    uint32_t spare;
    hemd_halo_axis axes[HEMD_HALO_AXES];
} hemd_halo_side;

/** What happens to a unit on the way. */
enum hemd_halo_change {
    HEMD_HALO_AS_IS = 0,
    HEMD_HALO_MINUS, /**< two's complement */
    HEMD_HALO_SIGN   /**< the highest bit is turned */
};

typedef struct hemd_halo_part {
    uint64_t total;      /**< units */
    uint64_t tile;       /**< units of a tile */
    uint64_t message;    /**< where it begins in the message */
    uint32_t unit;       /**< bytes: 1, 2, 4, 8, 16 */
    uint32_t width;      /**< bytes that are moved at once, less than `unit` if addresses are odd;
                              `unit` if that is 16 */
    uint32_t change;     /**< enum hemd_halo_change; of units of 16 bytes HEMD_HALO_AS_IS */
    uint32_t few;        /**< both sides may be walked in registers */
    hemd_halo_side from; /**< what is read */
    hemd_halo_side to;
} hemd_halo_part;

/** A piece of work for one warp: units of a part or of a stretch, or cells of a group, from `first` on. */
typedef struct hemd_halo_tile {
    uint64_t first;
    uint32_t part; /**< or group */
    uint32_t lane; /**< tiles are ordered by this; or stretch of the group */
} hemd_halo_tile;

/** Where something comes from in a reverse run: base + (run % 2) x turn + offset. */
typedef struct hemd_halo_source {
    const unsigned char *base;
    uint64_t turn;
} hemd_halo_source;

/** What comes back to a cell: the number of its source, whether to change its sign, its offset. */
#define HEMD_HALO_FROM_SHIFT 48
#define HEMD_HALO_FROM_SIGN  (1ull << 47)
#define HEMD_HALO_FROM_PLACE (HEMD_HALO_FROM_SIGN - 1)

typedef struct hemd_halo_cell {
    unsigned char *at;
    uint64_t first; /**< of what comes back to it; the next cell's is behind the last */
} hemd_halo_cell;

/** Units that follow each other. What comes back to the next comes from the next places. */
typedef struct hemd_halo_stretch {
    unsigned char *at;
    uint64_t units;
    uint64_t first; /**< of what comes back to the first unit */
    uint64_t count; /**< of it */
} hemd_halo_stretch;

/** Cells, or stretches, of one type, which are combined in one way. */
typedef struct hemd_halo_group {
    uint64_t total;                     /**< cells, or stretches */
    uint64_t units;                     /**< of all stretches */
    uint64_t tile;                      /**< cells, or units, of a tile */
    const hemd_halo_cell *cells;        /**< and one more at the end */
    const hemd_halo_stretch *stretches; /**< instead of cells, or NULL */
    const uint64_t *froms;
    uint32_t kind;   /**< enum hemd_halo_kind */
    uint32_t op;     /**< enum hemd_halo_op */
    uint32_t unit;   /**< bytes: 1, 2, 4, 8 */
    uint32_t width;  /**< as of a part */
    uint32_t change; /**< what HEMD_HALO_FROM_SIGN means */
    uint32_t spare;
} hemd_halo_group;

/** Types as far as combining knows them; a complex number is two units. */
enum hemd_halo_kind {
    HEMD_HALO_RAW = 0,
    HEMD_HALO_I8,
    HEMD_HALO_I16,
    HEMD_HALO_I32,
    HEMD_HALO_I64,
    HEMD_HALO_U8,
    HEMD_HALO_U16,
    HEMD_HALO_U32,
    HEMD_HALO_U64,
    HEMD_HALO_F16,
    HEMD_HALO_BF16,
    HEMD_HALO_F32,
    HEMD_HALO_F64,
    HEMD_HALO_BOOL
};

enum hemd_halo_op {
    HEMD_HALO_REPLACE = 0,
    HEMD_HALO_SUM,
    HEMD_HALO_MIN,
    HEMD_HALO_MAX
};

/**
 * For each neighbour S of rank R, in R's device memory: what S alone writes. Two landing buffers
 * follow. Each word that is polled has a line of its own.
 */
typedef struct hemd_halo_area {
    struct {
        hemd_unit note; /**< of the message of run e, in notes[e % 2]: data = check, stamp = e */
        unsigned char apart[HEM_DEV_LINE - sizeof(hemd_unit)];
    } notes[2];
    /** By S's start of run e, if values go straight into halos here or there: S's halos are free for
     *  the values of run e, and S may write to R's. data = check of what S expects, stamp = e */
    hemd_unit begun;
    unsigned char apart_begun[HEM_DEV_LINE - sizeof(hemd_unit)];
    uint64_t gone; /**< by S's kernels: a run of S failed, and it writes nothing any more */
    unsigned char apart[HEM_DEV_LINE - sizeof(uint64_t)];
    uint64_t gone_cpu; /**< by S's CPU: enum hemi_gone */
    unsigned char apart_cpu[HEM_DEV_LINE - sizeof(uint64_t)];
    /** Copy engines (halo/exchange/engine.c): set by S's stream, taken back by R's. */
    uint64_t ready; /**< S's halos may be written */
    unsigned char apart_ready[HEM_DEV_LINE - sizeof(uint64_t)];
    uint64_t filled; /**< R's halos are */
    unsigned char apart_filled[HEM_DEV_LINE - sizeof(uint64_t)];
} hemd_halo_area;

/** A neighbour, or this rank itself, which has no areas. Constant. */
typedef struct hemd_halo_lane {
    const hemd_halo_area *in; /**< here, written by the peer */
    hemd_halo_area *out;      /**< there, written by this rank; NULL: this rank itself */
    unsigned char *landing_in;
    unsigned char *landing_out;
    uint64_t in_bytes; /**< of one landing buffer here */
    uint64_t out_bytes;
    uint32_t peer;
    uint32_t near;   /**< its GPU is this rank's */
    uint32_t direct; /**< values go straight into halos, here or there: `begun` is told */
    uint32_t spare;
} hemd_halo_lane;

/** What changes from run to run, in the rank's own device memory; written by its kernels, and
 *  `failed` by its CPU, too. */
typedef struct hemd_halo_state {
    uint64_t started;  /**< runs whose messages are posted */
    uint64_t finished; /**< runs that are over */
    uint64_t failed;   /**< not 0: broken, for ever. The low half is -status, above it peer + 1 */
    uint64_t began_ns; /**< the last run */
    uint64_t counted;  /**< kernels whose end was told to the host */
    unsigned char apart[HEM_DEV_LINE - 5 * sizeof(uint64_t)];
    uint64_t arrived; /**< blocks of the kernel that runs which have done their share */
    unsigned char apart_too[HEM_DEV_LINE - sizeof(uint64_t)];
} hemd_halo_state;

/** Pinned words of the host, which the kernels write, or streams: see halo/exchange/engine.h. */
typedef struct hemd_halo_host {
    uint64_t counted; /**< hemd_halo_state.counted */
    uint64_t failed;  /**< hemd_halo_state.failed; with copy engines by the host */
    uint64_t at;      /**< copy engines: enum hemi_halo_engine_at */
    uint64_t since;   /**< the same: when a run that waits was first seen to; 0 by its start */
} hemd_halo_host;

/** What a launch of any of the kernels is told. Nothing in it changes from run to run. */
typedef struct hemd_halo_args {
    hemd_halo_state *state;
    hemd_halo_host *host;
    uint32_t *trouble; /**< enum hemd_trouble */
    const hemd_halo_lane *lanes;
    const uint64_t *checks; /**< of the messages that go out, or come in; one per lane */
    const hemd_halo_tile *tiles;
    const hemd_halo_part *parts;
    const hemd_halo_group *groups;   /**< in the finish of a reverse run, instead of parts */
    const hemd_halo_source *sources; /**< the same */
    uint64_t tile_count;             /**< every lane with a peer has a tile, if an empty one */
    const uint64_t *expects;         /**< of a start: the checks of what comes in */
    uint64_t direct_first; /**< of a start: tiles from here on go straight into halos, by lane */
    uint64_t timeout_ns;   /**< of a run from its start; 0: none */
    uint32_t lane_count;
    uint32_t near;   /**< all peers are near, and no field is in host memory */
    uint32_t tell;   /**< tell the host when the kernel has ended */
    uint32_t direct; /**< some lane is */
} hemd_halo_args;

/** n / d for n below 2^31: magic = 2^32 (2^shift - d) / d + 1, shift = ceil(log2 d). */
HEM_DEV uint32_t hemd_halo_divide(uint32_t n, uint32_t magic, uint32_t shift) {
    return ((uint32_t)((uint64_t)n * magic >> 32) + n) >> shift;
}

HEM_DEV int64_t hemd_halo_listed(const hemd_halo_side *side, uint64_t i) {
    return side->list_width == 4 ? (int64_t)((const int32_t *)side->list)[i]
                                 : ((const int64_t *)side->list)[i];
}

/** How far unit i of a side is from its base, whatever the side. */
HEM_DEV int64_t hemd_halo_offset(const hemd_halo_side *side, uint64_t i) {
    int64_t offset = 0;
    for (uint32_t k = 0; k < side->axis_count; k++) {
        const hemd_halo_axis *axis = &side->axes[k];
        uint64_t rest = k + 1u < side->axis_count ? i / axis->count : 0;
        uint64_t step = i - rest * axis->count;
        offset += k == side->list_at ? hemd_halo_listed(side, step) : (int64_t)step * axis->stride;
        i = rest;
    }
    return offset;
}

#endif
