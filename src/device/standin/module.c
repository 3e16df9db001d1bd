/* The module: what the library finds when it opens libhem_standin.so. */
#include "device/standin/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hem_status hemi_standin_fail(const void *context, hem_status status, const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (context != NULL)
        return ((const hemi_standin_context *)context)->host->fail(status, "%s", text);
    (void)fprintf(stderr, "the stand-in device: %s\n", text);
    return status;
}

static uint32_t wordless;

HEM_API void hemi_standin_no_words(bool on) {
    hemi_store32_release(&wordless, on);
}

static hem_status module_open(const hemi_device_host *host, void **context_p,
                              hemi_device_facts *facts_p) {
    if (host->version != HEMI_DEVICE_VERSION)
        return host->fail(HEM_ERR_UNSUPPORTED, "the stand-in is of version %u, the library of %u",
                          HEMI_DEVICE_VERSION, host->version);
    hemi_standin_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return host->fail(HEM_ERR_MEMORY, "no memory for the stand-in");
    context->host = host;
    pthread_mutex_init(&context->lock, NULL);
    memset(facts_p, 0, sizeof *facts_p);
    hemi_standin_uuid(facts_p->uuid);
    (void)snprintf(facts_p->name, sizeof facts_p->name, "stand-in");
    facts_p->processors = 4;
    facts_p->l2_bytes = 1u << 20;
    facts_p->capability = 0;
    facts_p->warp = 1;
    facts_p->words = hemi_load32_acquire(&wordless) == 0;
    facts_p->multi = hemi_standin_team_size(host);
    hemi_standin_memory_open();
    *context_p = context;
    return HEM_OK;
}

static void module_close(void *context) {
    hemi_standin_context *mine = context;
    hemi_standin_memory_close();
    pthread_mutex_destroy(&mine->lock);
    free(mine);
}

static const hemi_device_module module = {
    .version = HEMI_DEVICE_VERSION,
    .name = "stand-in",
    .memory = &hemi_standin_memory_ops,
    .stream = &hemi_standin_stream_ops,
    .open = module_open,
    .close = module_close,
    .team = &hemi_standin_team_ops,
};

HEM_API const hemi_device_module *hemi_device_module_get(void);

HEM_API const hemi_device_module *hemi_device_module_get(void) {
    return &module;
}
