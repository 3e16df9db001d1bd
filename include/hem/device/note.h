/*
 * A kernel that waits looks at the host now and then, whether the wait has a reason to end. If it has waited
 * for long, it also says what for, so that `hem ps` can show it.
 *
 * How this works. Each device object has one note, in the pinned words at which waits look. Who looks finds
 * in the same 16 bytes when the note was written last. If that was not just now, it takes the note (`seq`
 * from even to odd, by compare and swap), writes it and releases it (`seq` even again). Nobody waits for
 * it: who finds it taken leaves it alone. Nobody clears it either, since a wait that ends must not cost
 * more for it: a wait that goes on is written again with its next look, so that an onlooker believes a note
 * that it has seen change (device/notes.h). Of several that wait on one object each has its turn.
 */
#ifndef HEM_DEVICE_NOTE_H
#define HEM_DEVICE_NOTE_H

#include <hem/device/reach.h>

/** Instead of a rank: any of them. Instead of one: none, only what befalls everybody. */
#define HEMD_ANYBODY (-1)
#define HEMD_NOBODY  (-2)

/** A wait is told once it has lasted so long, and a note stays so long. */
#define HEMD_NOTE_NS 1000000u
#define HEMD_NOTE_MS 10u

/** What a wait is for. */
typedef struct hemd_want {
    uint32_t what; /**< enum hemd_what */
    int32_t peer;  /**< rank, or HEMD_ANYBODY */
    uint32_t id;
    uint32_t compare;
    uint64_t wanted;
    uint64_t seen;     /**< what is there instead */
    uint64_t since_ns; /**< when the wait began, about */
} hemd_want;

HEM_DEV hemd_want hemd_want_of(uint32_t what, int peer, uint32_t id, hem_compare compare,
                               uint64_t wanted) {
    hemd_want want = {what, peer, id, (uint32_t)compare, wanted, 0, 0};
    return want;
}

/** What the host says of `peer`, one of `size`; `first` are the first of its words. */
HEM_DEV hem_status hemd_trouble_in(const uint32_t *words, hemd_four first, int peer, int size) {
    uint32_t code = first.word[HEMD_TROUBLE_ALL];
    if (code == 0 && peer != HEMD_NOBODY && first.word[HEMD_TROUBLE_SOME] != 0) {
        int rank = peer == HEMD_ANYBODY ? 0 : peer;
        int end = peer == HEMD_ANYBODY ? size : peer + 1;
        for (; rank < end && code == 0; rank++)
            code = hemd_load32_relaxed(&words[HEMD_TROUBLE_RANKS + rank]);
    }
    return (hem_status)(-(int32_t)code);
}

/** Write the note, unless another thread does. */
HEM_DEV void hemd_note_write(uint32_t *words, uint32_t seq, const hemd_want *want,
                             uint64_t now_ns) {
    hemd_note *note = (hemd_note *)(void *)(words + HEMD_TROUBLE_NOTE);
    if (hemd_compare_swap32_host(words + HEMD_TROUBLE_SEQ, seq, seq + 1u) != seq)
        return;
    hemd_fence(false); /* who sees any of what follows sees that it is being written */
    hemd_store64_relaxed(&note->what, want->what);
    hemd_store64_relaxed(&note->peer, (uint64_t)(int64_t)want->peer);
    hemd_store64_relaxed(&note->id, want->id);
    hemd_store64_relaxed(&note->compare, want->compare);
    hemd_store64_relaxed(&note->wanted, want->wanted);
    hemd_store64_relaxed(&note->seen, want->seen);
    hemd_store64_relaxed(&note->since_ns, want->since_ns);
    hemd_store64_relaxed(&note->now_ns, now_ns);
    hemd_fence(false);
    hemd_store32_relaxed(words + HEMD_TROUBLE_SEQ, seq + 2u);
    hemd_store32_relaxed(words + HEMD_TROUBLE_BEAT, (uint32_t)(now_ns / 1000000u));
}

/**
 * A wait for `peer`, one of `size`, looks at the host. Not out of line: calls made kernels that wait spill
 * registers, and so they have as many as before. @return HEM_OK, or how the wait ends.
 */
HEM_DEV hem_status hemd_look_at_host(uint32_t *words, int peer, int size, const hemd_want *want) {
    const hemd_four first = hemd_load_four_relaxed(words);
    const hem_status status = hemd_trouble_in(words, first, peer, size);
    const uint32_t seq = first.word[HEMD_TROUBLE_SEQ];
    const uint64_t now_ns = hemd_now_ns();
    const uint32_t age = (uint32_t)(now_ns / 1000000u) - first.word[HEMD_TROUBLE_BEAT];
    if (status == HEM_OK && now_ns - want->since_ns >= HEMD_NOTE_NS && seq % 2u == 0 &&
        (seq == 0 || age >= HEMD_NOTE_MS))
        hemd_note_write(words, seq, want, now_ns);
    return status;
}

#endif
