#include "tag.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CHUNK ((size_t)65536)
/* A longer line is printed in pieces of this size, so that a rank cannot take all memory. */
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define TAG_MAX        16

/* What one rank writes to one of its two outputs. */
typedef struct stream {
    int fd; /* -1: at its end */
    int to; /* our stdout or stderr */
    uint32_t rank;
    char *text;   /* tagged, not printed yet */
    size_t whole; /* up to the end of the last whole line */
    size_t used;
    size_t room;
} stream;

struct hemt_tagger {
    uint32_t ranks;
    stream *streams;      /* two per rank */
    struct pollfd *polls; /* one per stream, and the last for `finish` */
    int finish_fd;
    int done_fd;
    bool finishing;
    bool gone[3]; /* our own output of this number takes nothing any more */
    int tag_width;
    pthread_t thread;
    bool started;
    char chunk[CHUNK];
};

static size_t stream_count(const hemt_tagger *tagger) {
    return 2 * (size_t)tagger->ranks;
}

uint64_t hemt_tagger_descriptors(uint32_t ranks) {
    return 2 * (uint64_t)ranks + 2;
}

static void prepare(hemt_tagger *tagger) {
    for (size_t i = 0; i < stream_count(tagger); i++) {
        tagger->streams[i] = (stream){
            .fd = -1, .to = i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, .rank = (uint32_t)(i / 2)};
        tagger->polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    tagger->polls[stream_count(tagger)] =
        (struct pollfd){.fd = tagger->finish_fd, .events = POLLIN};
    char number[16];
    tagger->tag_width = snprintf(number, sizeof number, "%u", tagger->ranks - 1);
}

hemt_tagger *hemt_tagger_make(uint32_t ranks) {
    hemt_tagger *tagger = calloc(1, sizeof *tagger);
    if (tagger == NULL)
        return NULL;
    tagger->ranks = ranks;
    tagger->finish_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tagger->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tagger->streams = calloc(2 * (size_t)ranks, sizeof *tagger->streams);
    tagger->polls = calloc(2 * (size_t)ranks + 1, sizeof *tagger->polls);
    if (tagger->finish_fd < 0 || tagger->done_fd < 0 || tagger->streams == NULL ||
        tagger->polls == NULL) {
        int error = errno;
        tagger->ranks = 0;
        hemt_tagger_free(tagger);
        errno = error;
        return NULL;
    }
    prepare(tagger);
    return tagger;
}

static void end_stream(hemt_tagger *tagger, size_t i) {
    if (tagger->streams[i].fd >= 0)
        close(tagger->streams[i].fd);
    tagger->streams[i].fd = -1;
    tagger->polls[i].fd = -1;
}

void hemt_tagger_free(hemt_tagger *tagger) {
    if (tagger == NULL)
        return;
    if (tagger->started)
        pthread_join(tagger->thread, NULL);
    for (size_t i = 0; i < stream_count(tagger); i++) {
        end_stream(tagger, i);
        free(tagger->streams[i].text);
    }
    if (tagger->finish_fd >= 0)
        close(tagger->finish_fd);
    if (tagger->done_fd >= 0)
        close(tagger->done_fd);
    free(tagger->streams);
    free(tagger->polls);
    free(tagger);
}

int hemt_tagger_connect(hemt_tagger *tagger, uint32_t rank, int ends_p[2]) {
    int made[2][2];
    for (int i = 0; i < 2; i++) {
        if (pipe2(made[i], O_CLOEXEC) != 0) {
            int error = errno;
            if (i == 1) {
                end_stream(tagger, 2 * (size_t)rank);
                close(made[0][1]);
            }
            return error;
        }
        /* Only our end: the rank's must block, as an output does. */
        fcntl(made[i][0], F_SETFL, O_NONBLOCK);
        tagger->streams[2 * (size_t)rank + (size_t)i].fd = made[i][0];
        tagger->polls[2 * (size_t)rank + (size_t)i].fd = made[i][0];
    }
    ends_p[0] = made[0][1];
    ends_p[1] = made[1][1];
    return 0;
}

/* Nobody reads this output of ours any more: nor do we, so that the ranks learn it as they would
 * without us. */
static void give_up(hemt_tagger *tagger, int to) {
    tagger->gone[to] = true;
    for (size_t i = 0; i < stream_count(tagger); i++)
        if (tagger->streams[i].to == to)
            end_stream(tagger, i);
}

static void write_all(hemt_tagger *tagger, int to, const char *bytes, size_t count) {
    while (count > 0 && !tagger->gone[to]) {
        ssize_t wrote = write(to, bytes, count);
        if (wrote >= 0) {
            bytes += wrote;
            count -= (size_t)wrote;
        } else if (errno == EAGAIN) {
            /* Somebody made the output non-blocking. */
            struct pollfd wait = {.fd = to, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            give_up(tagger, to);
        }
    }
}

static bool append(stream *s, const char *bytes, size_t count) {
    if (s->used + count > s->room) {
        size_t room = s->room == 0 ? 2 * CHUNK : 2 * s->room;
        while (room < s->used + count)
            room *= 2;
        char *text = realloc(s->text, room);
        if (text == NULL)
            return false;
        s->text = text;
        s->room = room;
    }
    memcpy(s->text + s->used, bytes, count);
    s->used += count;
    return true;
}

/* Print what has been gathered, as far as lines are whole. */
static void print_whole(hemt_tagger *tagger, stream *s) {
    if (s->whole == 0)
        return;
    write_all(tagger, s->to, s->text, s->whole);
    memmove(s->text, s->text + s->whole, s->used - s->whole);
    s->used -= s->whole;
    s->whole = 0;
}

/* Print all of it, and end the last line if it has no end. */
static void print_rest(hemt_tagger *tagger, stream *s) {
    if (s->used > s->whole)
        append(s, "\n", 1);
    s->whole = s->used;
    print_whole(tagger, s);
}

/* Take bytes that hold at most one end of a line, which is then their last. */
static void take(hemt_tagger *tagger, stream *s, const char *bytes, size_t count) {
    bool begins = s->used == s->whole;
    char tag[TAG_MAX];
    int length = snprintf(tag, sizeof tag, "[%*u] ", tagger->tag_width, s->rank);
    if ((begins && !append(s, tag, (size_t)length)) || !append(s, bytes, count)) {
        /* No memory for a whole line: better in pieces than not at all. */
        print_rest(tagger, s);
        write_all(tagger, s->to, bytes, count);
    } else if (bytes[count - 1] == '\n') {
        s->whole = s->used;
    } else if (s->used - s->whole >= LINE_MAX_BYTES) {
        print_rest(tagger, s);
    }
}

static void take_lines(hemt_tagger *tagger, stream *s, const char *bytes, size_t count) {
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end != NULL ? (size_t)(end - bytes) + 1 : count;
        take(tagger, s, bytes, length);
        bytes += length;
        count -= length;
    }
    print_whole(tagger, s);
}

/* Read a stream once. Returns whether there may be more. */
static bool read_stream(hemt_tagger *tagger, size_t i) {
    stream *s = &tagger->streams[i];
    if (s->fd < 0)
        return false;
    ssize_t got = read(s->fd, tagger->chunk, CHUNK);
    if (got > 0) {
        take_lines(tagger, s, tagger->chunk, (size_t)got);
        return true;
    }
    if (got < 0 && errno == EINTR)
        return true;
    if (got < 0 && errno == EAGAIN)
        return false;
    print_rest(tagger, s);
    end_stream(tagger, i);
    return false;
}

static void *tag_output(void *arg) {
    hemt_tagger *tagger = arg;
    size_t count = stream_count(tagger);
    while (!tagger->finishing) {
        if (poll(tagger->polls, count + 1, -1) < 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (tagger->polls[i].fd >= 0 && tagger->polls[i].revents != 0)
                read_stream(tagger, i);
        tagger->finishing = tagger->polls[count].revents != 0;
    }
    for (size_t i = 0; i < count; i++) {
        while (read_stream(tagger, i))
            ;
        print_rest(tagger, &tagger->streams[i]);
    }
    eventfd_write(tagger->done_fd, 1);
    return NULL;
}

int hemt_tagger_start(hemt_tagger *tagger) {
    /* Signals are the keeper's: it blocks its own, the thread blocks all. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&tagger->thread, NULL, tag_output, tagger);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    tagger->started = error == 0;
    if (error != 0)
        eventfd_write(tagger->done_fd, 1);
    return error;
}

void hemt_tagger_finish(hemt_tagger *tagger) {
    eventfd_write(tagger->finish_fd, 1);
}

int hemt_tagger_done_fd(const hemt_tagger *tagger) {
    return tagger->done_fd;
}
