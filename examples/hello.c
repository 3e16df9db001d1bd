/* Each rank writes a greeting into its right neighbour's memory: `hem run -n 4 hello`. */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hem_status status) {
    if (status != HEM_OK) {
        fprintf(stderr, "%s: %s\n", hem_status_name(status), hem_last_error());
        exit(1);
    }
}

int main(void) {
    hem_world *world;
    check(hem_world_open(NULL, &world));
    int rank = hem_world_rank(world), size = hem_world_size(world);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    hem_window *window; /* 64 bytes on every rank that the others can write to */
    hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
    check(hem_window_create(world, &options, &window));

    char text[64];
    snprintf(text, sizeof text, "greetings from rank %d", rank);
    check(hem_put_signal(window, right, 0, text, sizeof text, 0, 1)); /* bytes, then signal 0 */
    check(hem_wait_signal_from(window, left, 0, HEM_GE, 1, HEM_SEC(10)));
    printf("rank %d of %d: %s\n", rank, size, (const char *)hem_window_memory(window));

    check(hem_window_destroy(window));
    check(hem_world_close(world));
    return 0;
}
