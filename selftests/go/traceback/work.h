/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WORK_H
#define WORK_H

double cpu_seconds(void);
/* Calls itself @depth times, with 400 bytes of locals each, and then goBack(). */
int c_there(int depth, int n);
int c_spin(int n);
/* Calls goNames() in a function that is inlined. */
int c_names(int n);
/* Reads from an address that cannot be read. */
int c_crash(volatile int *nowhere);
/* From now on the calling thread gets SIGPROF every 50 us; at most two threads may. */
void c_add_to_storm(void);
/* Returns how many of these signals were sent. */
long c_signals_sent(void);
/* Loads a library that was not loaded before. */
int c_load(void);
/* Returns how often the list of all libraries was read. */
long c_looked_through(void);
/* Throws C++ exceptions through ten functions, and catches them. */
int cc_throw(int times);

#endif
