/* A world: a set of ranks, each a process or a thread, that can reach one another. */
#ifndef HEM_WORLD_H
#define HEM_WORLD_H

#include <hem/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hem_world hem_world;

/**
 * The caller's own all-gather, for programs that already have one (MPI, a socket, a test).
 *
 * Every rank passes `bytes` bytes at `mine`; afterwards `all` holds the blocks of all ranks in rank
 * order. It is called a few times during hem_world_open and never again. Returns 0, or anything
 * else to make the open fail.
 */
typedef int (*hem_allgather_fn)(void *ctx, const void *mine, void *all, size_t bytes);

/** Zero means default everywhere; set `struct_size` to sizeof(hem_world_options). */
typedef struct hem_world_options {
    size_t struct_size;
    /** With `allgather` set, the world is made of the `size` callers of it. */
    hem_allgather_fn allgather;
    void *allgather_ctx;
    int rank;
    int size;
    /** Time limit of every step of opening, splitting and closing. Default 60 s. */
    int64_t timeout_ns;
    /** Address space for shared memory per rank; it costs nothing until used. Default: the
     *  machine's memory. Under `hem run` the launcher's HEM_ARENA_SIZE decides instead. */
    uint64_t arena_bytes;
} hem_world_options;

/**
 * Open the world that this process is part of.
 *
 * With `options->allgather`, the ranks are its callers. Otherwise, under `hem run`, the ranks are
 * the launched processes. Otherwise it is a world of one. May be called again, also while other
 * worlds are open: each call makes a new world, and the ranks' calls match in order.
 *
 * Collective. Not from two threads of one rank at the same time.
 *
 * @return HEM_OK; HEM_ERR_TIMEOUT or HEM_ERR_PEER naming the rank that did not come;
 *         HEM_ERR_MEMORY, HEM_ERR_LIMIT, HEM_ERR_SYSTEM. On all ranks the same, unless a time
 *         limit passed.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_open(const hem_world_options *options,
                                                 hem_world **world_p);

/** What a rank of hem_world_threads runs. It must close `world`; not closing it means death. */
typedef int (*hem_rank_fn)(hem_world *world, void *arg);

/**
 * Run `n` ranks as threads of this process, with the same API and meaning as processes.
 *
 * Returns when all have returned. A rank that returns without hem_world_close counts as dead from
 * then on: its peers' calls end with HEM_ERR_PEER. `options` may be NULL; rank, size and allgather
 * in it must be zero.
 *
 * @return HEM_OK if all `fn` returned 0. HEM_ERR_PEER if one returned something else; the sentence
 *         says which rank and what. HEM_ERR_ARG, HEM_ERR_MEMORY, HEM_ERR_LIMIT, HEM_ERR_SYSTEM
 *         before any has run.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_threads(int n, hem_rank_fn fn, void *arg,
                                                    const hem_world_options *options);

/**
 * Leave the world and free it. NULL is allowed and does nothing.
 *
 * Does what is left on its streams first. Waits, up to the world's time limit, until every living
 * rank has closed too, so that nobody's memory goes away while a peer still puts into it. Windows
 * still open are closed with it: their handles stay valid for hem_window_destroy, every other call
 * on them returns HEM_ERR_CLOSED. The world is gone afterwards whatever the status says, but for
 * HEM_ERR_ARG. Peers that wait for this rank get HEM_ERR_PEER.
 *
 * Collective. When no other thread of this rank is in a call on this world.
 *
 * @return HEM_OK, HEM_ERR_PEER if a rank died, HEM_ERR_TIMEOUT if one did not close in time;
 *         HEM_ERR_ARG from a function on a stream of this world, and then nothing has happened.
 */
HEM_API hem_status hem_world_close(hem_world *world);

/** This rank's number, 0 to size - 1; HEM_ERR_ARG for NULL. Local. From any thread. */
HEM_API int hem_world_rank(const hem_world *world);

/** The number of ranks; HEM_ERR_ARG for NULL. Local. From any thread. */
HEM_API int hem_world_size(const hem_world *world);

/** This rank's number among the ranks on its machine. Local. From any thread. */
HEM_API int hem_world_local_rank(const hem_world *world);

/** The number of ranks on this machine. Local. From any thread. */
HEM_API int hem_world_local_size(const hem_world *world);

/**
 * The machine a rank runs on, as a number from 0 to machines - 1.
 *
 * Local. From any thread. @return the number, or HEM_ERR_RANGE.
 */
HEM_API int hem_world_host(const hem_world *world, int rank);

/**
 * Whether a rank is alive: 1, or 0 if it died or left, or HEM_ERR_RANGE. A stopped process is
 * alive.
 *
 * Local. From any thread. It may lag behind the death by 50 ms.
 */
HEM_API int hem_world_alive(const hem_world *world, int rank);

/** Pass this as colour to take no part in a new world. */
#define HEM_NO_COLOUR (-1)

/**
 * Make one new world of all ranks with the same colour, ordered by key, then by rank.
 *
 * With HEM_NO_COLOUR the rank gets NULL. The new world is independent: it may outlive `world`.
 *
 * Collective. @return HEM_OK, HEM_ERR_ARG for another negative colour, HEM_ERR_PEER,
 *         HEM_ERR_TIMEOUT, HEM_ERR_REVOKED, HEM_ERR_MEMORY; on all ranks the same.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_split(hem_world *world, int colour, int key,
                                                  hem_world **world_p);

/**
 * Make every wait and every later call of any rank on this world return HEM_ERR_REVOKED.
 *
 * What a rank calls that gives up, so that nobody waits for it. Does not wait. Only
 * hem_world_shrink and hem_world_close work on a revoked world.
 *
 * Local. From any thread. @return HEM_OK or HEM_ERR_ARG.
 */
HEM_API hem_status hem_world_revoke(hem_world *world);

/**
 * Make a new world of the ranks that are alive, in their old order.
 *
 * Every survivor calls it; ranks that died before or during the call are left out. Works on a
 * revoked world. The old world stays open and must still be closed.
 *
 * Collective over the living. @return HEM_OK, HEM_ERR_TIMEOUT naming a living rank that did not
 *         come, HEM_ERR_MEMORY; on all survivors the same.
 */
HEM_API HEM_MUST_CHECK hem_status hem_world_shrink(hem_world *world, hem_world **world_p);

#ifdef __cplusplus
}
#endif
#endif
