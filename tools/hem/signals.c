#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/* The value that goes with a signal which the front passes on and the terminal had sent. */
#define FROM_TERMINAL 1

static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void hemt_signals_take(hemt_signals *signals) {
    signals->fd = -1;
    /* With SIGCHLD ignored the kernel would throw exit codes away. */
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &by_default, &signals->child_before);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, &signals->pipe_before);

    sigemptyset(&signals->taken);
    sigaddset(&signals->taken, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        if (!is_ignored(forwarded[i]))
            sigaddset(&signals->taken, forwarded[i]);
    sigprocmask(SIG_BLOCK, &signals->taken, &signals->mask_before);
}

static bool from_terminal(int code, int value) {
    return code == SI_KERNEL || (code == SI_QUEUE && value == FROM_TERMINAL);
}

void hemt_signals_pass_on(const hemt_signal *signal, pid_t keeper) {
    const union sigval value = {.sival_int = signal->from_terminal ? FROM_TERMINAL : 0};
    sigqueue(keeper, signal->number, value);
}

bool hemt_signals_wait(const hemt_signals *signals, hemt_signal *signal_p) {
    siginfo_t info;
    if (sigwaitinfo(&signals->taken, &info) < 0)
        return false;
    signal_p->number = info.si_signo;
    signal_p->from_terminal = from_terminal(info.si_code, info.si_value.sival_int);
    return true;
}

int hemt_signals_open(hemt_signals *signals) {
    signals->fd = signalfd(-1, &signals->taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals->fd < 0 ? errno : 0;
}

bool hemt_signals_next(hemt_signals *signals, hemt_signal *signal_p) {
    struct signalfd_siginfo info;
    ssize_t got = 0;
    do {
        got = read(signals->fd, &info, sizeof info);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof info)
        return false;
    signal_p->number = (int)info.ssi_signo;
    signal_p->from_terminal = from_terminal(info.ssi_code, info.ssi_int);
    return true;
}

void hemt_signals_give_back(const hemt_signals *signals) {
    sigaction(SIGCHLD, &signals->child_before, NULL);
    sigaction(SIGPIPE, &signals->pipe_before, NULL);
    sigprocmask(SIG_SETMASK, &signals->mask_before, NULL);
}
