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
 * struct rules_starter - the program that started this one, to be served as long as it runs
 * @tell: a socket. Messages as of sd_notify(3) are sent there: READY=1, or ERRNO= and STATUS= of a
 *	failure. Its other end is closed when serving is to end. -1: nobody is told.
 * @until: when this descriptor becomes readable, or its other end is closed, serving ends, too. -1 if
 *	there is none.
 */
struct rules_starter {
	int tell, until;
};

/**
 * rules_starter_failed() - tell the starter, if it wants messages, that nothing is served
 * @starter: the starter.
 * @err: a negative errno.
 * @why: the reason, one line.
 *
 * tools/bpf/ has this function.
 */
void rules_starter_failed(const struct rules_starter *starter, int err, const char *why);

/**
 * rules_serve_bpf() - give tables to BPF programs that walk stacks, as these ask for them
 * @cache: directory of the cache (cache_open()), or -1.
 * @starter: who has this done. If another process serves already, that is as good for the starter;
 *	this one goes on when the other one has ended. Without a starter it is a failure.
 *
 * tools/bpf/ has this function. It runs until a signal or the starter ends it.
 *
 * Return: an exit status; a failure was reported.
 */
int rules_serve_bpf(int cache, const struct rules_starter *starter);

#endif
