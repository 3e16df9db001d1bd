/*
 * Settings of channels that are no good are refused when the world is opened, by name; those at the
 * edge of what is allowed work.
 *
 * hem-test: modes=alone timeout=60
 */
#include "channel_kit.h"

static hem_status open_with(const char *name, const char *value, hem_world **world_p) {
    hem_status status;

    CHECK_EQ(setenv(name, value, 1), 0);
    status = hem_world_open(NULL, world_p);
    CHECK_EQ(unsetenv(name), 0);
    return status;
}

static void refused(const char *name, const char *value) {
    hem_world *world = NULL;

    CHECK_STATUS(open_with(name, value, &world), HEM_ERR_ARG);
    CHECK(world == NULL);
    CHECK_SENTENCE(name);
}

static void works(const char *name, const char *value) {
    hem_world *world = NULL;

    CHECK_OK(open_with(name, value, &world));
    chan_works(world, 0, 0, 0);
    CHECK_OK(hem_world_close(world));
}

int main(void) {
    refused("HEM_CHANNEL_SLOTS", "0");
    refused("HEM_CHANNEL_SLOTS", "-1");
    refused("HEM_CHANNEL_SLOTS", "many");
    refused("HEM_CHANNEL_SLOTS", "5000000000");
    refused("HEM_CHANNEL_BYTES", "0");
    refused("HEM_CHANNEL_BYTES", "100");
    refused("HEM_CHANNEL_BYTES", "16777216T");
    refused("HEM_CHANNEL_COPY", "twice");
    refused("HEM_CHANNEL_COPY", "singles");
    works("HEM_CHANNEL_SLOTS", "1");
    works("HEM_CHANNEL_SLOTS", "3");
    works("HEM_CHANNEL_SLOTS", "64");
    works("HEM_CHANNEL_SLOTS", "4096");
    works("HEM_CHANNEL_BYTES", "4K");
    works("HEM_CHANNEL_BYTES", "4097");
    works("HEM_CHANNEL_BYTES", "100000");
    works("HEM_CHANNEL_BYTES", "16M");
    works("HEM_CHANNEL_BYTES", "1G");
    works("HEM_CHANNEL_COPY", "single");
    works("HEM_CHANNEL_COPY", "staged");
    works("HEM_CHANNEL_COPY", "");
    return 0;
}
