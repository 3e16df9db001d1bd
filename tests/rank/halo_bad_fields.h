/*
 * Fields that an exchange must refuse: memory that is too small, strides that are negative or overflow,
 * domains, types, numbers and flags that are none, fields that differ between ranks or are missing. For
 * fields in host memory and on devices alike.
 */
#ifndef HEM_TESTS_RANK_HALO_BAD_FIELDS_H
#define HEM_TESTS_RANK_HALO_BAD_FIELDS_H

#include "halo_bad.h"

enum {
    HALO_BAD_POINTS = 6, /**< of a field in each dimension, halos and all */
    HALO_BAD_BINDINGS = 2,
    HALO_BAD_ROOM = HALO_BAD_POINTS * HALO_BAD_POINTS * 4 /**< doubles of a field */
};

/** A two-dimensional grid, 4 x 4 per rank with a halo of 1, periodic, bound to two fields. */
typedef struct halo_bad_set {
    hem_world *world;
    hem_world *other; /**< another world of the same ranks, with a pattern */
    hem_pattern *pattern;
    hem_pattern *foreign;
    int me;
    int size;
    double *memory[HALO_BAD_BINDINGS]; /**< the caller's */
    hem_exchange_way way;              /**< the caller's */
    hem_binding b[HALO_BAD_BINDINGS + 1];
    hem_exchange_options o;
} halo_bad_set;

/** A way to spoil options that were good. `f`: the last field. */
typedef struct halo_bad_field {
    const char *what;
    unsigned allowed;  /**< errors: HALO_ARG and others of halo_bad.h */
    bool needs_two;    /**< ranks */
    const char *names; /**< what the sentence has in it, or NULL */
    void (*spoil)(halo_bad_set *s, hem_field *f);
} halo_bad_field;

/** Collective, all of them. */
void halo_bad_open(halo_bad_set *s, hem_world *world);
void halo_bad_close(halo_bad_set *s);

/** Good bindings and options. Local. */
void halo_bad_fresh(halo_bad_set *s);

/** The options are refused on all ranks, and nobody gets an exchange. */
void halo_bad_refuse(halo_bad_set *s, const char *what, unsigned allowed);

/** What only the last rank has spoilt is refused. */
void halo_bad_one(halo_bad_set *s, const halo_bad_field *bad);

/** All bad fields that there are, and after each `every` of them something that must work. */
void halo_bad_all(halo_bad_set *s, size_t every, void (*works)(halo_bad_set *s));

/** Panels 0 to `panels` - 1 of a sphere, all of rank 0. With six, some sides meet turned round. */
hem_pattern *halo_bad_sphere(halo_bad_set *s, int panels);

#endif
