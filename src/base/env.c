#include "base/env.h"

#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static const hemi_env_entry table[] = {
    {"HEM_ARENA_SIZE", "the machine's memory",
     "address space for shared memory per rank; costs nothing until used (suffix K, M, G, T)"},
    {"HEM_ARENA_CACHE", "64M", "freed shared memory that a rank keeps for reuse"},
    {"HEM_SPIN", "by cores and ranks", "polls before a wait yields its core"},
    {"HEM_YIELD_US", "by cores and ranks", "microseconds of yielding before a wait sleeps"},
    {"HEM_FENCE", "0", "1: signallers fence, instead of sleepers using membarrier"},
    {"HEM_OPEN_TIMEOUT", "60", "seconds that opening a world waits for the other ranks"},
    {"HEM_CHANNEL_SLOTS", "32", "short messages that can wait between two ranks on one channel"},
    {"HEM_CHANNEL_BYTES", "1M", "staging for longer messages between two ranks on one channel"},
    {"HEM_CHANNEL_COPY", "auto",
     "how private memory goes between processes: staged, single (process_vm_readv) or auto"},
    {"HEM_COLL_BYTES", "64K", "staging for one step of a collective; a rank has 16 of them"},
    {"HEM_HALO_DIRECT", "2K",
     "messages of an exchange from this length on are copied from field to field where they can"},
    {"HEM_CHECK", "0", "1: collectives first compare what the ranks called"},
    {"HEM_ALGORITHM", "by size and ranks",
     "algorithms to use instead, such as allreduce=ring,broadcast=direct"},
    {"HEM_DEVICE_MODULE", "libhem_cuda.so", "the file of the module through which GPUs are used"},
    {"HEM_CUDA_VMM", "1", "0: allocate by cudaMalloc, show it by legacy IPC"},
    {"HEM_CUDA_FABRIC", "0", "1: export fabric handles of GPU memory (untested)"},
    {"HEM_CUDA_MULTICAST", "0", "1: multicast (NVLS) in collectives on GPUs (untested)"},
    {"HEM_RANK", "set by hem run", "this rank's number"},
    {"HEM_SIZE", "set by hem run", "the number of ranks"},
    {"HEM_ARENA_FD", "set by hem run", "the descriptor of the machine's shared memory"},
    {"HEM_CONTROL_FD", "set by hem run", "the descriptor on which a rank says its process id"},
};

const hemi_env_entry *hemi_env_table(size_t *count_p) {
    *count_p = sizeof table / sizeof table[0];
    return table;
}

const char *hemi_env_text(const char *name) {
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static unsigned suffix_shift(char c) {
    switch (toupper((unsigned char)c)) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    case 'T':
        return 40;
    default:
        return 0;
    }
}

int hemi_parse_number(const char *text, uint64_t *value_p) {
    if (text == NULL || !isdigit((unsigned char)text[0]))
        return 0;
    errno = 0;
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0)
        return 0;
    if (*end != '\0') {
        unsigned shift = suffix_shift(*end);
        if (shift == 0 || end[1] != '\0' || value > UINT64_MAX >> shift)
            return 0;
        value <<= shift;
    }
    *value_p = value;
    return 1;
}

hem_status hemi_env_number(const char *name, uint64_t min, uint64_t max, uint64_t *value_p) {
    const char *text = hemi_env_text(name);
    if (text == NULL)
        return HEM_OK;
    uint64_t value = 0;
    if (!hemi_parse_number(text, &value) || value < min || value > max)
        return hemi_fail(HEM_ERR_ARG, "%s=%.64s is not a number from %" PRIu64 " to %" PRIu64, name,
                         text, min, max);
    *value_p = value;
    return HEM_OK;
}
