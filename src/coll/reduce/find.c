/* Which code reduces what: by type, operation and processor. */
#include "base/status.h"
#include "coll/reduce/kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const dtype_names[] = {
    [HEM_BYTE] = "byte", [HEM_I8] = "i8",   [HEM_I16] = "i16",   [HEM_I32] = "i32",
    [HEM_I64] = "i64",   [HEM_U8] = "u8",   [HEM_U16] = "u16",   [HEM_U32] = "u32",
    [HEM_U64] = "u64",   [HEM_F16] = "f16", [HEM_BF16] = "bf16", [HEM_F32] = "f32",
    [HEM_F64] = "f64",   [HEM_C64] = "c64", [HEM_C128] = "c128", [HEM_BOOL] = "bool",
};

static const char *const op_names[] = {
    [HEM_SUM] = "sum",   [HEM_PROD] = "prod", [HEM_MIN] = "min",       [HEM_MAX] = "max",
    [HEM_LAND] = "land", [HEM_LOR] = "lor",   [HEM_LXOR] = "lxor",     [HEM_BAND] = "band",
    [HEM_BOR] = "bor",   [HEM_BXOR] = "bxor", [HEM_MINLOC] = "minloc", [HEM_MAXLOC] = "maxloc",
};

enum {
    SET_PORTABLE,
    SET_AVX2,
    SET_AVX512
};

#if defined(__x86_64__)
/* Compilers do not agree on whether __builtin_cpu_supports knows this one. */
static bool has_f16c(void) {
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static const hemi_reduce_set *set_of(unsigned set) {
    if (set == SET_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &hemi_reduce_avx512;
    if (set == SET_AVX2 && __builtin_cpu_supports("avx2") && has_f16c())
        return &hemi_reduce_avx2;
    return set == SET_PORTABLE ? &hemi_reduce_portable : NULL;
}
#else
static const hemi_reduce_set *set_of(unsigned set) {
    return set == SET_PORTABLE ? &hemi_reduce_portable : NULL;
}
#endif

const char *hemi_dtype_name(hem_dtype dtype) {
    size_t count = sizeof dtype_names / sizeof dtype_names[0];
    return (size_t)dtype < count && dtype_names[dtype] != NULL ? dtype_names[dtype] : "bytes";
}

const char *hemi_reduction_name(hem_reduction op) {
    size_t count = sizeof op_names / sizeof op_names[0];
    return (size_t)op < count && op_names[op] != NULL ? op_names[op] : "user";
}

static hem_status check_names(hem_dtype dtype, hem_reduction op) {
    if (op < HEM_SUM || op > HEM_USER)
        return hemi_fail(HEM_ERR_ARG, "there is no reduction %d", (int)op);
    if (op != HEM_USER && (dtype < HEM_BYTE || dtype > HEM_BOOL))
        return hemi_fail(HEM_ERR_ARG, "there is no element type %d", (int)dtype);
    return HEM_OK;
}

static hem_status find_kernel(const hemi_reduce_set *set, hem_dtype dtype, hem_reduction op,
                              hemi_reducer *reducer_p) {
    const hemi_reduce_kernel *kernel =
        op <= HEM_BXOR ? set->kernels[dtype][op] : hemi_reduce_pairs(dtype, op);

    if (kernel == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "the type %s does not have the reduction %s",
                         dtype_names[dtype], op_names[op]);
    *reducer_p =
        (hemi_reducer){.run = hemi_reduce_run_kernel, .kernel = kernel, .element = kernel->element};
    return HEM_OK;
}

static hem_status find_user(hem_reduce_fn user, void *user_arg, size_t element,
                            hemi_reducer *reducer_p) {
    if (user == NULL)
        return hemi_fail(HEM_ERR_ARG, "the reduction user needs a function, and it is NULL");
    if (element == 0)
        return hemi_fail(HEM_ERR_ARG,
                         "the reduction user needs the size of an element, and it is 0");
    if (element > HEMI_REDUCE_USER_MAX)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "the reduction user has elements of up to %d bytes, not %zu",
                         HEMI_REDUCE_USER_MAX, element);
    *reducer_p = (hemi_reducer){
        .run = hemi_reduce_run_user, .element = element, .user = user, .user_arg = user_arg};
    return HEM_OK;
}

hem_status hemi_reducer_find(hem_dtype dtype, hem_reduction op, hem_reduce_fn user, void *user_arg,
                             size_t element, hemi_reducer *reducer_p) {
    hem_status status = check_names(dtype, op);
    const hemi_reduce_set *set = NULL;

    if (status != HEM_OK)
        return status;
    if (op == HEM_USER)
        return find_user(user, user_arg, element, reducer_p);
    for (unsigned i = SET_AVX512; set == NULL; i--)
        set = set_of(i);
    return find_kernel(set, dtype, op, reducer_p);
}

hem_status hemi_reducer_find_in(unsigned set, hem_dtype dtype, hem_reduction op,
                                hemi_reducer *reducer_p) {
    hem_status status = check_names(dtype, op);
    const hemi_reduce_set *found = set_of(set);

    if (status != HEM_OK)
        return status;
    if (op == HEM_USER)
        return hemi_fail(HEM_ERR_ARG, "the reduction user is in no set of kernels");
    if (found == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "this processor does not have kernels of set %u",
                         set);
    return find_kernel(found, dtype, op, reducer_p);
}
