/*
 * The kill campaign: campaign HEM RANK_PROGRAM FOLDER
 *
 * Ranks are killed at every kind of moment of every operation, and the survivors are judged: see
 * tests/script/kill-campaign.sh. HEM_SEED=n repeats a campaign's choices, HEM_SOAK=1 visits every
 * point and thousands of random moments, HEM_TEST_DEATH_MS (50) is the time to learn of a death.
 */
#include "leftovers.h"
#include "round.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A round that is late is repeated so often: the machine may have been busy, the library not. */
#define TRIES 3

typedef struct operation {
    const char *name;
    int ranks;
    bool agreed;
    int deaths;
    int launched; /* rounds per victim, under the launcher */
    int forked;   /* and without it */
} operation;

static const operation operations[] = {
    {"put", 3, false, 1, 2, 1},
    {"put_signal", 3, false, 1, 3, 1},
    {"wait_signal_from", 3, false, 1, 3, 1},
    {"wait_signal", 3, false, 1, 3, 1},
    {"flush", 3, false, 1, 3, 1},
    {"barrier", 3, false, 1, 3, 1},
    {"window_create", 3, true, 1, 4, 1},
    {"window_destroy", 3, false, 1, 2, 1},
    {"split", 3, true, 1, 4, 1},
    {"shrink", 3, true, 1, 3, 1},
    {"shrink_again", 4, true, 2, 2, 1},
    {"two_die", 4, false, 2, 1, 3},
    {"open", 3, true, 1, 3, 2},
    {"reopen", 3, true, 1, 2, 2},
    {"close", 3, false, 1, 3, 1},
    {"stop_and_die", 3, false, 1, 1, 2},
};

typedef struct campaign {
    kill_place place;
    uint64_t dice;
    bool soak;
    int good;
    int bad;
    int repeated;
    uint64_t slowest_ns;
} campaign;

static uint64_t draw(campaign *c) {
    uint64_t z = (c->dice += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void report(const campaign *c, const kill_round *round, const kill_result *result) {
    char text[1024];
    kill_round_describe(&c->place, round, text, sizeof text);
    printf("FAILED: %s\n    %s\n", text, result->why);
    kill_round_show(&c->place, round);
}

static void play(campaign *c, const kill_round *round, kill_result *result) {
    for (int i = 0; i < TRIES; i++) {
        kill_round_run(&c->place, round, result);
        if (result->verdict != KILL_LATE)
            break;
        c->repeated++;
        printf("late: %s, victim %d, point %" PRIu64 "%s: %s\n", round->op, round->victim,
               round->point, round->forked ? ", forked" : "", result->why);
    }
    if (result->verdict == KILL_GOOD) {
        c->good++;
        if (result->slowest_ns > c->slowest_ns)
            c->slowest_ns = result->slowest_ns;
        return;
    }
    c->bad++;
    report(c, round, result);
}

static kill_round round_of(const operation *op, int victim, bool forked) {
    return (kill_round){.op = op->name,
                        .ranks = op->ranks,
                        .victim = victim,
                        .after_us = -1,
                        .kill = "self",
                        .forked = forked,
                        .agreed = op->agreed,
                        .deaths = op->deaths};
}

/* Kill one victim at points spread over the whole operation, the last of them behind it. */
static void kill_at_points(campaign *c, const operation *op, int victim, bool forked, int count) {
    kill_round round = round_of(op, victim, forked);
    kill_result result;
    kill_round_run(&c->place, &round, &result); /* nobody dies: how many points are there? */
    if (result.verdict == KILL_BAD) {
        c->bad++;
        report(c, &round, &result);
        return;
    }
    uint64_t points = result.points + 1;
    if (c->soak)
        count = (int)points + 4;
    for (int i = 0; i < count; i++) {
        uint64_t first = points * (uint64_t)i / (uint64_t)count;
        uint64_t next = points * (uint64_t)(i + 1) / (uint64_t)count;
        round.point = c->soak ? (uint64_t)i + 1 : 1 + first + draw(c) % (next - first + 1);
        play(c, &round, &result);
    }
}

static void kill_in_operation(campaign *c, const operation *op) {
    int before = c->good + c->bad;
    uint64_t slowest = c->slowest_ns;
    c->slowest_ns = 0;
    for (int victim = 0; victim < op->ranks; victim++) {
        kill_at_points(c, op, victim, false, op->launched);
        kill_at_points(c, op, victim, true, op->forked);
    }
    printf("%-18s %4d rounds, learnt within %5.1f ms\n", op->name, c->good + c->bad - before,
           (double)c->slowest_ns * 1e-6);
    if (slowest > c->slowest_ns)
        c->slowest_ns = slowest;
}

static void kill_at_random(campaign *c, int rounds) {
    const operation mix = {"mix", 3, false, 1, 0, 0};
    kill_result result;
    int before = c->bad;
    for (int i = 0; i < rounds; i++) {
        kill_round round = round_of(&mix, i % mix.ranks, i % 2 == 1);
        round.after_us = (int64_t)(draw(c) % 6000);
        play(c, &round, &result);
    }
    printf("%-18s %4d rounds, %d failed\n", "random moments", rounds, c->bad - before);
}

static void stop_one(campaign *c, int rounds) {
    const operation stop = {"stop", 3, false, 1, 0, 0};
    kill_result result;
    int before = c->bad;
    for (int i = 0; i < rounds; i++) {
        kill_round round = round_of(&stop, i % stop.ranks, i % 2 == 1);
        play(c, &round, &result);
    }
    printf("%-18s %4d rounds, %d failed\n", "a stopped rank", rounds, c->bad - before);
}

/* The launcher consists of two processes; whichever dies, nothing is left. */
static void kill_launcher(campaign *c, int rounds) {
    static const char *const whom[] = {"keeper", "front"};
    kill_result result;
    int before = c->bad;
    for (int i = 0; i < rounds; i++) {
        operation op = operations[draw(c) % (sizeof operations / sizeof operations[0])];
        op.deaths = 1;
        kill_round round = round_of(&op, (int)(draw(c) % (uint64_t)op.ranks), false);
        round.kill = whom[i % 2];
        round.point = 1 + draw(c) % 60;
        play(c, &round, &result);
    }
    printf("%-18s %4d rounds, %d failed\n", "the launcher", rounds, c->bad - before);
}

static uint64_t number_in(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : fallback;
}

static int finish(campaign *c) {
    char names[300];
    char processes[300];
    int left = kill_leftover_names(2000, names, sizeof names);
    left += kill_leftover_processes(c->place.mark, 2000, processes, sizeof processes);
    if (left > 0) {
        printf("FAILED: left behind: names%s, processes%s\n", names, processes);
        c->bad++;
    }
    printf("%d rounds, %d failed, %d repeated for being late, slowest %.1f ms\n", c->good + c->bad,
           c->bad, c->repeated, (double)c->slowest_ns * 1e-6);
    return c->bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fputs("usage: campaign HEM RANK_PROGRAM FOLDER\n", stderr);
        return 2;
    }
    campaign c = {.place = {.hem = argv[1], .rank = argv[2], .folder = argv[3]}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    c.place.limit_ns = number_in("HEM_TEST_DEATH_MS", 50) * 1000000;
    c.soak = number_in("HEM_SOAK", 0) != 0;
    c.dice = number_in("HEM_SEED", (uint64_t)time(NULL));
    printf("seed %" PRIu64 "; the same rounds again with HEM_SEED\n", c.dice);
    if (!kill_place_open(&c.place))
        return EXIT_FAILURE;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        kill_in_operation(&c, &operations[i]);
    kill_at_random(&c, c.soak ? 3000 : 30);
    stop_one(&c, c.soak ? 60 : 6);
    kill_launcher(&c, c.soak ? 400 : 12);
    return finish(&c);
}
