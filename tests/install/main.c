/* What a user's first program may look like: every rank opens the world and tells its size. */
#include <hem/hem.h>
#include <stdio.h>

int main(void) {
    hem_world *world = NULL;
    if (hem_world_open(NULL, &world) != HEM_OK) {
        fprintf(stderr, "hem_world_open: %s\n", hem_last_error());
        return 1;
    }
    printf("hem %s: rank %d of %d\n", hem_version(), hem_world_rank(world), hem_world_size(world));
    return hem_world_close(world) == HEM_OK ? 0 : 1;
}
