#include "ucx_link.h"

#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ucx_check(ucs_status_t status, const char *what) {
    if (status != UCS_OK)
        bench_die("%s: %s", what, ucs_status_string(status));
}

void ucx_wait(struct ucx_link *link, ucs_status_ptr_t request, const char *what) {
    if (request == NULL)
        return;
    if (UCS_PTR_IS_ERR(request))
        ucx_check(UCS_PTR_STATUS(request), what);
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(link->worker);
    ucx_check(ucp_request_check_status(request), what);
    ucp_request_free(request);
}

void ucx_socket_write(int socket, const void *data, size_t bytes) {
    for (const char *from = data; bytes > 0;) {
        ssize_t n = write(socket, from, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            bench_die("the other rank is gone");
        from += n;
        bytes -= (size_t)n;
    }
}

void ucx_socket_read(int socket, void *data, size_t bytes) {
    for (char *to = data; bytes > 0;) {
        ssize_t n = read(socket, to, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            bench_die("the other rank is gone");
        to += n;
        bytes -= (size_t)n;
    }
}

/* Sends one's own bytes and returns the other rank's, to be freed. */
static void *swap_blobs(int socket, const void *mine, size_t bytes) {
    size_t other;

    ucx_socket_write(socket, &bytes, sizeof(bytes));
    ucx_socket_write(socket, mine, bytes);
    ucx_socket_read(socket, &other, sizeof(other));
    void *theirs = malloc(other);
    if (theirs == NULL)
        bench_die("no memory for %zu bytes of the other rank's address", other);
    ucx_socket_read(socket, theirs, other);
    return theirs;
}

static void open_worker(struct ucx_link *link) {
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_RMA | UCP_FEATURE_AM,
        .estimated_num_eps = 1,
    };
    ucp_worker_params_t worker = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };

    ucx_check(ucp_init(&params, NULL, &link->context), "ucp_init");
    ucx_check(ucp_worker_create(link->context, &worker, &link->worker), "ucp_worker_create");
}

static void open_memory(struct ucx_link *link, size_t bytes) {
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

    ucx_check(ucp_mem_map(link->context, &params, &link->memory), "ucp_mem_map");
    ucx_check(ucp_mem_query(link->memory, &attr), "ucp_mem_query");
    link->base = attr.address;
    memset(link->base, 0, bytes);
}

static void connect_ep(struct ucx_link *link) {
    ucp_address_t *address;
    size_t bytes;

    ucx_check(ucp_worker_get_address(link->worker, &address, &bytes), "ucp_worker_get_address");
    ucp_address_t *theirs = swap_blobs(link->socket, address, bytes);
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = theirs,
    };
    ucx_check(ucp_ep_create(link->worker, &params, &link->ep), "ucp_ep_create");
    ucp_worker_release_address(link->worker, address);
    free(theirs);
}

static void swap_memory(struct ucx_link *link) {
    uint64_t base = (uint64_t)(uintptr_t)link->base;
    void *packed;
    size_t bytes;

    ucx_socket_write(link->socket, &base, sizeof(base));
    ucx_socket_read(link->socket, &link->remote, sizeof(link->remote));
    ucx_check(ucp_rkey_pack(link->context, link->memory, &packed, &bytes), "ucp_rkey_pack");
    void *theirs = swap_blobs(link->socket, packed, bytes);
    ucx_check(ucp_ep_rkey_unpack(link->ep, theirs, &link->rkey), "ucp_ep_rkey_unpack");
    ucp_rkey_buffer_release(packed);
    free(theirs);
}

void ucx_link_open(struct ucx_link *link, int socket, size_t bytes) {
    link->socket = socket;
    open_worker(link);
    open_memory(link, bytes);
    connect_ep(link);
    swap_memory(link);
}

void ucx_link_close(struct ucx_link *link) {
    ucp_request_param_t param = {0};

    ucp_rkey_destroy(link->rkey);
    ucx_wait(link, ucp_ep_close_nbx(link->ep, &param), "ucp_ep_close_nbx");
    ucp_mem_unmap(link->context, link->memory);
    ucp_worker_destroy(link->worker);
    ucp_cleanup(link->context);
}
