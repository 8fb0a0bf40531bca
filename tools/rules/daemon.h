/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * daemon.h - the daemon: loads the tables of all programs that run.
 */
#ifndef TOOLS_RULES_DAEMON_H
#define TOOLS_RULES_DAEMON_H

/**
 * rules_serve() - load the tables of the files that run, and then of files for which walks have
 * none
 * @device: descriptor from rules_device().
 * @cache: directory of the cache (cache_open()), or -1.
 * @ready: is closed when the files that run have their tables; or -1.
 *
 * The function runs until SIGTERM or SIGINT.
 *
 * Return: an exit status; a failure was reported.
 */
int rules_serve(int device, int cache, int ready);

/**
 * rules_serve_bpf() - give tables to BPF programs that walk stacks, as these ask for them
 * @cache: directory of the cache (cache_open()), or -1.
 *
 * tools/bpf/ has this function. It runs until a signal ends it.
 *
 * Return: an exit status; a failure was reported.
 */
int rules_serve_bpf(int cache);

#endif
