#ifndef BENCH_UCX_LINK_H
#define BENCH_UCX_LINK_H

/* Two processes connected by UCX, each with memory that the other puts into. */

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

struct ucx_link {
    int socket; /* to the other rank, for the set-up and for agreeing */
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_mem_h memory;
    unsigned char *base; /* this rank's memory, allocated by UCX so that it can be mapped */
    uint64_t remote;     /* the other rank's */
    ucp_rkey_h rkey;
};

/* Opens the link over a connected socket, or ends the rank with a sentence. */
void ucx_link_open(struct ucx_link *link, int socket, size_t bytes);
void ucx_link_close(struct ucx_link *link);

/* Ends the rank if UCX returned an error. */
void ucx_check(ucs_status_t status, const char *what);

/* Progresses until the request is done. */
void ucx_wait(struct ucx_link *link, ucs_status_ptr_t request, const char *what);

/* The two ranks' bytes over the socket. */
void ucx_socket_write(int socket, const void *data, size_t bytes);
void ucx_socket_read(int socket, void *data, size_t bytes);

#endif
