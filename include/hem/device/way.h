/*
 * The ways of a pipe: what lies where between two ranks, and how a message is dealt out to lanes.
 *
 * Why it is safe stands in hem/device/pipe.h. The host lays ways out with the same functions, so
 * there is nothing here that needs a group of threads.
 */
#ifndef HEM_DEVICE_WAY_H
#define HEM_DEVICE_WAY_H

#include <hem/device/types.h>
#include <hem/device/word.h>

/** Lanes for each block that a pipe may use: as many as a role has warps at most. */
#define HEMD_PIPE_LANES 16
/** A lane of the short form gets this many units before the next lane gets any: as many as a warp has
 *  under way at once. */
#define HEMD_PIPE_UNITS 128
/** How many of its longest parts the short ring of a lane has room for. */
#define HEMD_PIPE_PARTS 4
/** A piece of the bulk form is not made shorter than this to give work to more lanes. */
#define HEMD_PIPE_PIECE 4096
/** Pieces are multiples of this where slots are: what a warp copies without a remainder. */
#define HEMD_PIPE_GRAIN 2048
/** A stamp of the short form: the number of the message above, its length in these bits. */
#define HEMD_PIPE_LENGTH_BITS 24

/** How far one side of a lane has come. Only grows. In that side's own memory. */
typedef struct hemd_cursor {
    uint64_t messages; /**< that have used this lane, of either form */
    uint64_t units;    /**< of the short ring */
    uint64_t slots;    /**< of the bulk ring */
    uint64_t turn;     /**< slots modulo those of the ring */
    uint64_t posts; /**< messages of the bulk form that were agreed on, in a pipe with a window */
    uint64_t spare[3]; /**< so that what a short message needs lies in one sector of 32 bytes */
} hemd_cursor;

/** How far the receiver of a lane has come: two words on a line in the sender's memory. */
typedef struct hemd_credit {
    uint64_t units;
    uint64_t slots;
    uint64_t spare[14];
} hemd_credit;

/** How much of the bulk ring is filled: slots before this one x slot_bytes, plus bytes in it. */
typedef struct hemd_tail {
    uint64_t bytes;
    uint64_t spare[15];
} hemd_tail;

/** The buffer of this side lies in no memory that the peer reaches. */
#define HEMD_NOWHERE (~(uint64_t)0)

/**
 * What one side of a lane says of a message of the bulk form before anything moves, in a pipe with a
 * window. Lies in the other side's memory, two for each lane by turns: hem/device/straight.h.
 */
typedef struct hemd_post {
    uint64_t number; /**< cursor.posts + 1; stored last */
    uint64_t place;  /**< where the buffer begins in this side's memory of the window, or nowhere */
    uint64_t bytes;  /**< of the message */
    uint64_t message; /**< cursor.messages + 1 */
} hemd_post;

/** Posts of a lane: the one of the message in hand, and the one before. */
#define HEMD_PIPE_POSTS 2

/**
 * Offsets in the area of an ordered pair of ranks (writer, owner): it lies in the owner's memory and
 * is written by the other one alone. Tails, heads, units and slots are what the writer sends;
 * credits tell how far it has come with what the owner sends to it.
 */
typedef struct hemd_area {
    uint64_t refused; /**< -status, once the writer has given the pipe up */
    uint64_t tails;   /**< hemd_tail per lane */
    uint64_t credits; /**< hemd_credit per lane */
    uint64_t heads;   /**< hemd_unit per slot of each lane: length and number of a message */
    uint64_t units;   /**< `ring` hemd_units per lane: the short ring */
    uint64_t slots;   /**< slots x slot_bytes per lane: the bulk ring */
    uint64_t bytes;
    uint64_t ring;   /**< a power of two */
    uint64_t offers; /**< hemd_posts of what the writer sends; only with a window */
    uint64_t asks;   /**< hemd_posts of what the owner sends to the writer; only with a window */
} hemd_area;

/** What a rank needs to know of the way to and from one peer. Constant; in device memory. */
typedef struct hemd_way {
    unsigned char *out;      /**< this rank's area at the peer; NULL: no such way */
    const unsigned char *in; /**< the peer's area here */
    hemd_cursor *sent;       /**< one per lane */
    hemd_cursor *taken;
    uint64_t *error; /**< of this rank's end of the pipe: -status, once it has failed */
    uint32_t near;
    int32_t peer;
    hemd_area area;
} hemd_way;

/** How a message is dealt out. Depends on its length and on the pipe, on nothing else. */
typedef struct hemd_deal {
    uint64_t bytes;
    uint32_t piece;  /**< bytes of a piece in the bulk form; units of a lane in the short form */
    uint32_t pieces; /**< piece j is on lane j % lanes */
    uint32_t lanes;  /**< that the message uses: 0 to lanes - 1 */
    uint32_t brief;  /**< short form */
} hemd_deal;

HEM_DEV uint64_t hemd_divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/** The next power of two. */
HEM_DEV uint64_t hemd_round_up(uint64_t n) {
    uint64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/** The units that a lane gets at most of a message of the short form. */
HEM_DEV uint64_t hemd_brief_piece(uint64_t units, uint32_t lanes) {
    uint64_t each = hemd_divide_up(units, lanes);
    return each < HEMD_PIPE_UNITS ? HEMD_PIPE_UNITS : each;
}

HEM_DEV hemd_area hemd_area_of(uint32_t lanes, uint32_t slots, uint64_t slot_bytes,
                               uint64_t short_bytes, bool with_window) {
    hemd_area area;
    uint64_t piece = hemd_brief_piece(hemd_divide_up(short_bytes, 8), lanes);
    area.ring = HEMD_PIPE_PARTS * hemd_round_up(piece);
    area.refused = 0;
    area.tails = HEM_DEV_LINE;
    area.credits = area.tails + lanes * sizeof(hemd_tail);
    area.heads = area.credits + lanes * sizeof(hemd_credit);
    uint64_t heads = (uint64_t)lanes * slots * sizeof(hemd_unit);
    area.units = area.heads + hemd_divide_up(heads, HEM_DEV_LINE) * HEM_DEV_LINE;
    uint64_t units = lanes * area.ring * sizeof(hemd_unit);
    area.slots = area.units + hemd_divide_up(units, HEM_DEV_LINE) * HEM_DEV_LINE;
    area.offers = area.slots + lanes * (slots * slot_bytes);
    uint64_t posts = with_window ? (uint64_t)lanes * HEMD_PIPE_POSTS * sizeof(hemd_post) : 0;
    area.asks = area.offers + posts;
    area.bytes = area.asks + posts;
    return area;
}

/** Deal a message of `bytes` out: as many lanes as it is worth, all with about as much. */
HEM_DEV hemd_deal hemd_deal_out(const hem_dev_pipe *pipe, uint64_t bytes) {
    hemd_deal deal;
    deal.bytes = bytes;
    deal.brief = bytes <= pipe->short_bytes;
    if (deal.brief) {
        uint64_t units = bytes == 0 ? 1 : hemd_divide_up(bytes, 8);
        deal.piece = (uint32_t)hemd_brief_piece(units, pipe->lanes);
        deal.pieces = (uint32_t)hemd_divide_up(units, deal.piece);
        deal.lanes = deal.pieces;
        return deal;
    }
    uint64_t rounds = hemd_divide_up(bytes, pipe->lanes * pipe->slot_bytes);
    uint64_t piece = hemd_divide_up(bytes, pipe->lanes * rounds);
    uint32_t grain = pipe->slot_bytes % HEMD_PIPE_GRAIN == 0 ? HEMD_PIPE_GRAIN : HEM_DEV_LINE;
    piece = hemd_divide_up(piece, grain) * grain;
    uint64_t least = pipe->slot_bytes < HEMD_PIPE_PIECE ? pipe->slot_bytes : HEMD_PIPE_PIECE;
    deal.piece = (uint32_t)(piece < least ? least : piece);
    deal.pieces = (uint32_t)hemd_divide_up(bytes, deal.piece);
    deal.lanes = deal.pieces < pipe->lanes ? deal.pieces : pipe->lanes;
    return deal;
}

#endif
