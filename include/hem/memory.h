/* Memory that peers can reach: allocate, register, export, import. Usable without a window. */
#ifndef HEM_MEMORY_H
#define HEM_MEMORY_H

#include <hem/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where memory is. */
typedef enum hem_memory_kind {
    HEM_MEMORY_HOST = 0,
    HEM_MEMORY_DEVICE = 1 /**< of a GPU */
} hem_memory_kind;

/** A piece of memory: one's own, or a peer's after import. */
typedef struct hem_memory hem_memory;

/** What names a piece of memory to a peer. Plain bytes: send them however you like. */
typedef struct hem_memory_handle {
    uint64_t words[6];
} hem_memory_handle;

/** What the route to a peer's memory can do. */
enum {
    HEM_ROUTE_MAPPED = 1,       /**< plain loads and stores reach it */
    HEM_ROUTE_ATOMIC = 2,       /**< fetch_add and compare_swap work on it */
    HEM_ROUTE_SIGNAL = 4,       /**< it can carry signals */
    HEM_ROUTE_WAKES = 8,        /**< a signal wakes a sleeping peer */
    HEM_ROUTE_COPY = 16,        /**< read and write work, if only by system call */
    HEM_ROUTE_DEVICE = 32,      /**< kernels on a GPU reach it */
    HEM_ROUTE_SAME_PROCESS = 64 /**< the peer is a thread of this process */
};

/**
 * Allocate `bytes` of zeroed shared memory that every rank of the machine can map.
 *
 * The memory is reserved: touching it cannot fail later. Aligned to a page. 0 bytes is allowed.
 * Freed by hem_memory_free, or when the world closes.
 *
 * Local. From any thread. @return HEM_OK, HEM_ERR_MEMORY, HEM_ERR_ARG.
 */
HEM_API HEM_MUST_CHECK hem_status hem_memory_alloc(hem_world *world, size_t bytes,
                                                   hem_memory **memory_p);

/**
 * Make the caller's own memory reachable.
 *
 * Peers that are threads of the same process map it; other processes reach it by system call,
 * without atomics and signals. It must stay allocated until hem_memory_free.
 *
 * Local. From any thread. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_RANGE if it ends beyond all memory,
 *         HEM_ERR_MEMORY. That the machine forbids such access shows in hem_memory_read and write.
 */
HEM_API HEM_MUST_CHECK hem_status hem_memory_register(hem_world *world, void *address, size_t bytes,
                                                      hem_memory **memory_p);

/**
 * Free allocated memory, unregister registered memory, or unmap imported memory. NULL is allowed.
 *
 * Freed library memory may be given out again: whoever imported it must have stopped using it.
 * Local. From any thread. @return HEM_OK; HEM_ERR_CLOSED if the world went first (the handle is
 *         freed all the same).
 */
HEM_API hem_status hem_memory_free(hem_memory *memory);

/** The address at which this rank can load and store, or NULL where the route does not map. */
HEM_API void *hem_memory_address(const hem_memory *memory);

/** The length in bytes. */
HEM_API size_t hem_memory_size(const hem_memory *memory);

/** What the route to it can do: HEM_ROUTE_ bits. */
HEM_API unsigned hem_memory_route(const hem_memory *memory);

/**
 * Describe one's own memory so that a peer can import it.
 *
 * Local. From any thread. @return HEM_OK, or HEM_ERR_ARG for imported memory.
 */
HEM_API HEM_MUST_CHECK hem_status hem_memory_export(const hem_memory *memory,
                                                    hem_memory_handle *handle_p);

/**
 * Reach what `peer` exported.
 *
 * Local: the peer takes no part. From any thread. Everything in the handle is checked.
 * @return HEM_OK; HEM_ERR_RANGE for a bad rank or a handle that is not this peer's; HEM_ERR_PEER;
 *         HEM_ERR_UNSUPPORTED if there is no route; HEM_ERR_MEMORY.
 */
HEM_API HEM_MUST_CHECK hem_status hem_memory_import(hem_world *world, int peer,
                                                    const hem_memory_handle *handle,
                                                    hem_memory **memory_p);

/**
 * Copy `bytes` bytes from `offset` of the memory, own or imported, to `to`.
 *
 * Returns when `to` holds them. Orders nothing else. Local. From any thread.
 * @return HEM_OK, HEM_ERR_RANGE, HEM_ERR_PEER if the owner is dead, HEM_ERR_SYSTEM.
 */
HEM_API HEM_MUST_CHECK hem_status hem_memory_read(hem_memory *memory, size_t offset, void *to,
                                                  size_t bytes);

/** Copy the other way. Returns when the bytes are in place. As hem_memory_read otherwise. */
HEM_API HEM_MUST_CHECK hem_status hem_memory_write(hem_memory *memory, size_t offset,
                                                   const void *from, size_t bytes);

/**
 * What routes to `peer` can do at best, for library memory: HEM_ROUTE_ bits.
 *
 * Local. From any thread. @return the bits, or HEM_ERR_RANGE.
 */
HEM_API int hem_route_query(const hem_world *world, int peer);

#ifdef __cplusplus
}
#endif
#endif
