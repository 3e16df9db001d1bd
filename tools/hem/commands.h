/* The commands of `hem`. Each takes its own name as argv[0] and returns the exit code. */
#ifndef HEMT_COMMANDS_H
#define HEMT_COMMANDS_H

int hemt_run(int argc, char **argv);
int hemt_ps(int argc, char **argv);
int hemt_info(int argc, char **argv);
int hemt_draw(int argc, char **argv);

#endif
