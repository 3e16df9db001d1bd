#include "window/barrier_tree.h"
#include "window/window.h"

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

void hemi_window_lay_out(hemi_window_layout *layout, uint32_t ranks, uint32_t signals,
                         uint32_t barriers, uint32_t counters) {
    layout->states = sizeof(hemi_window_head);
    layout->counters = round_up(layout->states + barriers * sizeof(hemi_barrier_state), HEMI_LINE);
    uint64_t own = layout->counters + (uint64_t)counters * sizeof(uint64_t);
    layout->list = round_up(own, HEMI_PAGE);
    layout->rows = round_up(layout->list + (uint64_t)ranks * sizeof(uint32_t), HEMI_PAGE);
    layout->row_arrivals = (uint64_t)signals * sizeof(hemi_line);
    layout->row_claims =
        round_up(layout->row_arrivals + 2 * (uint64_t)barriers * sizeof(hemi_arrival), HEMI_LINE);
    layout->row_pairs =
        round_up(layout->row_claims + (uint64_t)signals * sizeof(hemi_claim), HEMI_LINE);
    layout->row_bytes =
        round_up(layout->row_pairs + barriers * sizeof(hemi_barrier_state), HEMI_LINE);
    layout->tree = layout->rows + layout->row_bytes * ranks;
    layout->bytes = layout->tree;
    if (ranks > HEMI_BARRIER_FLAT)
        layout->bytes += barriers * hemi_tree_lines(ranks) * HEMI_LINE;
}
