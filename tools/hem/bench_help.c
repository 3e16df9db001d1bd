#include "bench_help.h"

#include "bench_kind.h"

#include <stdio.h>

static void print_shapes(void) {
    fputs("\n"
          "SHAPE is, where it makes sense:\n"
          "  --dims D       of the grid: 2 or 3 (default 3)\n"
          "  --halo H       width of halos, 1 to 3 (default 1)\n"
          "  --fields K     1 to 16 fields, of types f64, f32, i32 in turn (grid 4, else 1)\n"
          "  --levels L     values per point of a mesh (default 1)\n"
          "  --axis A       which dimension is cut first (default 0: faces have long rows)\n"
          "  --periodic     the grid closes around\n"
          "  --hops K       how many ranks' shares a rolling window reaches back (default 3)\n"
          "  --pattern P    of pattern-setup: mesh (default) or grid\n",
          stdout);
}

void hemt_bench_help(void) {
    fputs("usage: hem bench BENCHMARK [-n RANKS] [--sizes LIST] [--peers LIST|all|none]\n"
          "                 [--json] [--repeat K] [SHAPE]\n"
          "       hem bench tune [-n LIST] [--sizes LIST] [--repeat K]\n"
          "\n"
          "Measures Hem, the bare hardware and other libraries alternating, and prints medians.\n"
          "\n",
          stdout);
    for (enum bench_kind kind = 0; kind < BENCH_KINDS; kind++)
        printf("  %-14s %s\n", hemt_kind(kind)->name, hemt_kind(kind)->help);
    fputs("  tune           which algorithm suits which collective, as rows of src/coll/table.h\n"
          "\n"
          "  -n RANKS       number of ranks (default 2; rolling and gpu-exchange 8; raw, signal,\n"
          "                 put and get take no other; pattern-setup takes a list, default\n"
          "                 2,8,32,64,256)\n"
          "  --sizes LIST   n, in bytes, such as 8,4k,1M; for grid, stream and gpu-exchange the\n"
          "                 edge of a rank's box, for mesh all points, for rolling and\n"
          "                 pattern-setup those of a rank\n"
          "  --peers LIST   libraries to compare with: openmpi, mpich, ucx, nccl,\n"
          "                 nvshmem (default all)\n"
          "  --json         one object per line; gbps counts 10^9 bytes per second, 0 for barrier\n"
          "  --repeat K     rounds, each starting with another library (default 5, or 3 where\n"
          "                 there are more ranks than cores, and from grid on; pattern-setup 2)\n",
          stdout);
    print_shapes();
    fputs("\n"
          "gpu-* measure on one GPU or several, CUDA graphs replayed and timed by events:\n"
          "  --blocks LIST  the most blocks of a rank (default 2,4,8,16,32)\n"
          "  --processes    ranks are processes (start MPS first), not threads of one\n",
          stdout);
    fputs("\n"
          "hem is Hem from private memory, hem-lib from memory of hem_memory_alloc. raw is a "
          "message\n"
          "in one cache line, raw-2line a flag line and data lines, raw-bounce one line that both\n"
          "sides write, raw-memcpy a memcpy into shared memory. Where the machine moves its cores\n"
          "during the run (virtual machines do), up to three times as many rounds are taken, and\n"
          "only measurements with the cores at the same distance are compared.\n",
          stdout);
}
