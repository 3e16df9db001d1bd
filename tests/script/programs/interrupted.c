/* Waits for SIGINT, gives a second one time to come, and says how many there were. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t count;

static void on_interrupt(int number) {
    (void)number;
    count++;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    puts("ready");
    fflush(stdout);
    const struct timespec moment = {.tv_nsec = 10000000};
    while (count == 0)
        nanosleep(&moment, NULL);
    for (int i = 0; i < 40; i++)
        nanosleep(&moment, NULL);
    printf("got %d\n", (int)count);
    return 0;
}
