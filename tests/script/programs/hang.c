/* A job that hangs in a known place: hang barrier|signal|stop|open. Used by run-timeout.sh, ps.sh. */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(hem_status status, const char *what) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, hem_last_error());
    exit(3);
}

static _Noreturn void sleep_for_ever(void) {
    for (;;)
        pause();
}

/* Rank 0 does not come; the others wait for it. */
static void hang_in_barrier(hem_world *world, hem_window *window) {
    if (hem_world_rank(world) == 0)
        sleep_for_ever();
    need(hem_barrier(window, 1, HEM_FOREVER), "hem_barrier");
}

/* Rank 0 signals 4 and goes to sleep; rank 1 wants 5. */
static void hang_in_signal(hem_world *world, hem_window *window) {
    if (hem_world_rank(world) == 0) {
        need(hem_signal(window, 1, 2, HEM_SIGNAL_SET, 4), "hem_signal");
        sleep_for_ever();
    }
    need(hem_wait_signal_from(window, 0, 2, HEM_GE, 5, HEM_FOREVER), "hem_wait_signal_from");
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    const char *rank = getenv("HEM_RANK");
    if (strcmp(mode, "open") == 0 && rank != NULL && strcmp(rank, "0") == 0)
        sleep_for_ever();
    hem_world *world = NULL;
    hem_window *window = NULL;
    need(hem_world_open(NULL, &world), "hem_world_open");
    const hem_window_options options = {.struct_size = sizeof options, .bytes = 4096};
    need(hem_window_create(world, &options, &window), "hem_window_create");
    puts("ready");
    fflush(stdout);
    if (strcmp(mode, "barrier") == 0)
        hang_in_barrier(world, window);
    else if (strcmp(mode, "signal") == 0)
        hang_in_signal(world, window);
    else
        sleep_for_ever();
    return 4;
}
