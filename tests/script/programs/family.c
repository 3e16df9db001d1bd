/*
 * A rank that starts children in every way that might let them slip away, then does what its
 * argument says: family stay|leave. Each rank starts six processes that would sleep for ever:
 * a child, a child after setsid(), a child and its child, a daemon (forked twice, its parent gone),
 * and one that ignores every signal that can be ignored.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void sleep_for_ever(void) {
    for (;;)
        pause();
}

static void child(void) {
    if (fork() == 0)
        sleep_for_ever();
}

static void child_after_setsid(void) {
    if (fork() == 0) {
        setsid();
        sleep_for_ever();
    }
}

static void grandchild(void) {
    pid_t middle = fork();
    if (middle == 0) {
        child();
        sleep_for_ever();
    }
}

static void daemon_process(void) {
    pid_t first = fork();
    if (first == 0) {
        setsid();
        if (fork() == 0)
            sleep_for_ever();
        _exit(0);
    }
    waitpid(first, NULL, 0);
}

static void deaf_child(void) {
    if (fork() == 0) {
        for (int s = 1; s < 32; s++)
            signal(s, SIG_IGN);
        sleep_for_ever();
    }
}

int main(int argc, char **argv) {
    child();
    child_after_setsid();
    grandchild();
    daemon_process();
    deaf_child();
    puts("ready");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "leave") == 0)
        return 0;
    sleep_for_ever();
}
