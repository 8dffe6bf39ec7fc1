/*
 * probe: the side of a measurement that must cost next to nothing itself. A driver does one thing
 * again and again: for each line `N` on its standard input it does it N times and answers with one
 * line, the nanoseconds that each took, so that tests/bench can interleave several drivers.
 */
#ifndef PEGFS_BENCH_PROBE_H
#define PEGFS_BENCH_PROBE_H

#include <stddef.h>
#include <stdint.h>

/* One thing to measure. Ends the program with a sentence where it fails. */
typedef void probe_step(void *arg);

int64_t probe_now_ns(void);

/* Prints what failed, with errno, and ends the program with status 1. */
_Noreturn void probe_die(const char *what, const char *on);

/* The loop of a driver, until its standard input ends. Returns an exit status. */
int probe_drive(probe_step *step, void *arg);

/* The commands: arguments begin behind the command's name. Each returns an exit status. */
int probe_stat(int argc, char **argv);
int probe_cat(int argc, char **argv);
int probe_list(int argc, char **argv);
int probe_walk(int argc, char **argv);
int probe_noticed(int argc, char **argv);
int probe_call(int argc, char **argv);
int probe_open_call(int argc, char **argv);
int probe_write_call(int argc, char **argv);
int probe_pipe(int argc, char **argv);
int probe_many(int argc, char **argv);
int probe_hold(int argc, char **argv);

#endif
