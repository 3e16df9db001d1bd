/*
 * Rank 1 ends in the way that the argument says; the others wait for it in a barrier and print how
 * long after its end they heard of it: survivor exit=CODE|kill=SIGNAL|wait [EXIT_CODE_OF_SURVIVORS].
 * "wait" leaves the end to somebody outside; then no time is printed.
 */
#include <hem/hem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void need(hem_status status, const char *what) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, hem_last_error());
    exit(3);
}

static void end(const char *how, hem_world *world, hem_window *window) {
    /* Give the others time to fall asleep in the barrier, and a shell around us time to leave. */
    usleep(300000);
    if (strcmp(how, "wait") == 0)
        for (;;)
            pause();
    int64_t now = now_ns();
    for (int r = 0; r < hem_world_size(world); r++)
        need(hem_put_value(window, r, 0, (uint64_t)now), "hem_put_value");
    if (strncmp(how, "exit=", 5) == 0)
        _exit(atoi(how + 5));
    raise(atoi(how + 5));
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "exit=1";
    int code = argc > 2 ? atoi(argv[2]) : 0;
    hem_world *world = NULL;
    hem_window *window = NULL;
    need(hem_world_open(NULL, &world), "hem_world_open");
    const hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
    need(hem_window_create(world, &options, &window), "hem_window_create");
    printf("rank %d is process %ld\n", hem_world_rank(world), (long)getpid());
    fflush(stdout);
    if (hem_world_rank(world) == 1)
        end(how, world, window);
    hem_status status = hem_barrier(window, 0, HEM_SEC(20));
    int64_t heard = now_ns();
    if (status != HEM_ERR_PEER) {
        fprintf(stderr, "the barrier gave %s: %s\n", hem_status_name(status), hem_last_error());
        return 5;
    }
    int64_t ended = 0;
    memcpy(&ended, hem_window_memory(window), sizeof ended);
    printf("rank %d heard after %lld us: %s\n", hem_world_rank(world),
           ended == 0 ? -1 : (long long)(heard - ended) / 1000, hem_last_error());
    return code;
}
