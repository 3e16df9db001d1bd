#include "descendants.h"
#include "process.h"
#include "run.h"
#include "say.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Stop as any program does on SIGTSTP; the kernel knows when nobody could ever continue us. */
static void stop_here(void) {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

static void forward(const hemt_signal *signal, pid_t keeper) {
    hemt_signals_pass_on(signal, keeper);
    if (signal->number == SIGTSTP)
        stop_here();
}

/* Forward signals until the keeper has ended. Returns what waitpid says of it. */
static int wait_for_keeper(const hemt_signals *signals, pid_t keeper) {
    int status = 0;
    while (waitpid(keeper, &status, WNOHANG) != keeper) {
        hemt_signal signal;
        if (hemt_signals_wait(signals, &signal) && signal.number != SIGCHLD)
            forward(&signal, keeper);
    }
    return status;
}

/* After the keeper: nothing of the job may be left, whatever it came to. */
static int clean_up(pid_t keeper, int status, const hemt_pids *spared) {
    size_t foreign = hemt_end_descendants(spared);
    int code = hemt_shell_code(status);
    if (WIFSIGNALED(status)) {
        char what[96];
        hemt_end_text(code, what, sizeof what);
        hemt_say("run",
                 "the launcher's process %ld %s, and all ranks with it; the job ends with %d",
                 (long)keeper, what, code);
    }
    if (foreign > 0)
        hemt_say("run", "processes of another user cannot be ended and are left: %zu", foreign);
    return code;
}

static int fail(int error, const char *what) {
    hemt_say("run", "%s: %s", what, strerror(error));
    return HEMT_EXIT_FAILED;
}

int hemt_front(const hemt_run_options *options) {
    int error = hemt_fill_standard_descriptors();
    if (error != 0)
        return fail(error, "cannot open /dev/null");
    hemt_signals signals;
    hemt_signals_take(&signals);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return fail(errno, "cannot adopt orphans (PR_SET_CHILD_SUBREAPER)");
    /* A shell that turned into this process by exec may have left children. They are not ours. */
    hemt_pids spared;
    hemt_children(&spared);
    int self_fd = hemt_pidfd_open(getpid());
    if (self_fd < 0)
        return fail(errno, errno == ENOSYS ? "cannot watch processes, Linux 5.3 or newer is needed"
                                           : "cannot watch processes (ulimit -n)");
    pid_t keeper = fork();
    if (keeper < 0)
        return fail(errno, "cannot start a process (limit on processes: ulimit -u)");
    if (keeper == 0)
        _exit(hemt_keeper(options, self_fd, &signals));
    close(self_fd);
    int code = clean_up(keeper, wait_for_keeper(&signals, keeper), &spared);
    hemt_pids_free(&spared);
    return code;
}
