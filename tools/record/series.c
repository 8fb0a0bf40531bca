// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * series.c - writes the profiles of a recording with --every, one after another, in child
 * processes, and adds to each profile how it was recorded. See series.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/symbol/known_names.h"
#include "tools/record/metrics.h"
#include "tools/record/rescue.h"
#include "tools/record/series.h"
#include "tools/shstk.h"

#define GUESSED_MANY 1.0 /* percent */
#define GUESSED_LEAST 10 /* samples */

static void comment_command(const struct recording *r)
{
	const struct record_opts *o = r->opts;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("command:", out);
	for (char *const *arg = o->command; arg && *arg; arg++)
		fprintf(out, " %s", *arg);
	for (unsigned int i = 0; i < o->targets.given; i++)
		fprintf(out, " -p %d", o->targets.pids[i]);
	for (unsigned int i = 0; i < o->targets.nr_tids; i++)
		fprintf(out, " -t %d", o->targets.tids[i]);
	if (o->cgroup)
		fprintf(out, " --cgroup=%s", o->cgroup);
	else if (o->all)
		fputs(" -a", out);
	fclose(out);
	shstk_profile_comment(r->profile, text);
	free(text);
}

/*
 * Adds the machine on which the profile was recorded, because profiles are read on other machines
 * too.
 */
static void comment_machine(struct recording *r)
{
	struct utsname name;
	char *text;

	if (uname(&name) ||
	    asprintf(&text, "machine: %s, %s %s, %s, %ld CPUs", name.nodename, name.sysname,
		     name.release, name.machine, sysconf(_SC_NPROCESSORS_ONLN)) < 0)
		return;
	shstk_profile_comment(r->profile, text);
	free(text);
}

double series_guessed(const struct recording *r, bool *many)
{
	const unsigned int shown = r->opts->output.type;
	const unsigned int type = (shown ? shown : shstk_profile_find_type(r->profile, NULL)) - 1;
	const int64_t all = shstk_profile_total(r->profile, type);
	const int64_t guessed = shstk_profile_guessed(r->profile, type);

	const double share = guessed > 0 && guessed <= all ? 100.0 * guessed / all : 0;

	/* The first value counts samples. */
	*many = share >= GUESSED_MANY && shstk_profile_guessed(r->profile, 0) >= GUESSED_LEAST;
	return share;
}

/* Adds how much of the recording is in stacks that were guessed in part: many are a caution. */
static void tell_guessed(struct recording *r)
{
	bool many;
	const double share = series_guessed(r, &many);
	char *text;

	if (share <= 0 ||
	    asprintf(&text, "%.2f %% of this is in stacks with a guessed entry", share) < 0)
		return;
	if (many)
		shstk_profile_caution(r->profile, text);
	else
		shstk_profile_comment(r->profile, text);
	free(text);
}

/* Returns the process that the recording is of, 0 if it is of several. */
static pid_t main_process(const struct recording *r)
{
	const struct targets *t = &r->opts->targets;

	return r->pid ? r->pid : t->given == 1 ? t->pids[0] : 0;
}

static void set_beginning(struct recording *r)
{
	shstk_profile_set_main(r->profile, main_process(r));
	shstk_profile_set_time(r->profile, r->realtime, 0);
	shstk_profile_set_origin(r->profile, r->started);
}

void series_prepare(struct recording *r)
{
	if (r->opts->every > 0)
		r->known = shstk_known_names_create();
}

void series_begin(struct recording *r)
{
	set_beginning(r);
	if (output_keep(&r->opts->output, r->profile, record_title(r->opts)))
		complain("out of memory: samples are written at the end");
}

void series_finish(struct recording *r)
{
	set_beginning(r);
	comment_command(r);
	comment_machine(r);
	tell_guessed(r);
	shstk_profile_set_time(r->profile, r->realtime, now_ns(CLOCK_MONOTONIC) - r->started);
}

bool series_push(const struct recording *r)
{
	return !r->opts->push.to || pusher_put(&r->pusher, r->profile, record_title(r->opts));
}

/* Tells that a signal ended the process that wrote a profile, and what is left of the profile. */
static void tell_signal(int signal, const struct shstk_left *left)
{
	const char *path;

	switch (rescue(left, &path)) {
	case RESCUED_SAMPLES:
		complain(
			"a profile lacks its end: signal %d ended what wrote it; %s has its samples",
			signal, path);
		break;
	case RESCUED_WHOLE:
		complain(
			"signal %d ended what wrote a profile: %s is whole, but files of other formats may be missing",
			signal, path);
		break;
	default:
		complain("a profile is lost: signal %d ended what wrote it", signal);
	}
}

/* Waits until the child process has written the previous profile: only one is written at a time. */
static void wait_writer(struct recording *r)
{
	int status = 0;

	while (r->writer > 0 && waitpid(r->writer, &status, 0) < 0 && errno == EINTR)
		;
	r->writer = 0;
	r->unwritten |= status != 0;
	if (WIFSIGNALED(status))
		tell_signal(WTERMSIG(status), &r->left);
	free(r->left.hidden);
	free(r->left.name);
	r->left = (struct shstk_left){ .hidden = NULL };
}

/*
 * Writes the profile and exits. Runs in a process group of its own, so that signals from the
 * terminal to the recorder do not end it.
 */
static void write_part(struct recording *r)
{
	const struct record_opts *o = r->opts;
	char *names = output_names(&o->output);
	bool ok;

	output_name(&o->output, r->symbols, r->profile);
	ok = output_write(&r->opts->output, r->profile, record_title(o));
	ok &= series_push(r);
	if (ok && !o->quiet && names && *names)
		complain("%s", names + strspn(names, " "));
	free(names);
	_exit(ok ? 0 : EXIT_OWN);
}

static int start_writer(struct recording *r)
{
	fflush(NULL);
	r->writer = fork();
	if (!r->writer) {
		setpgid(0, 0);
		/* Nor must it end because a reader closes a pipe: that is an error to report. */
		signal(SIGPIPE, SIG_IGN);
		/* The one before it has ended: nobody else uses them now. */
		shstk_known_names_use(r->known);
		write_part(r);
	}
	return r->writer < 0 ? -ENOMEM : 0;
}

/*
 * Names the files of the profile that is about to be written as kept, and removes those of the
 * oldest kept profile. Returns 0 or -ENOMEM.
 */
static int keep_last(struct recording *r)
{
	const unsigned long most = r->opts->keep;
	char **place;

	if (!most)
		return 0;
	if (!r->kept)
		r->kept = calloc(most, sizeof(*r->kept));
	if (!r->kept)
		return -ENOMEM;
	place = &r->kept[r->nr_kept++ % most];
	if (*place)
		output_forget(*place);
	free(*place);
	*place = output_list(&r->opts->output);
	return *place ? 0 : -ENOMEM;
}

void series_forget(struct recording *r)
{
	shstk_known_names_destroy(r->known);
	for (unsigned long i = 0; r->kept && i < r->opts->keep; i++)
		free(r->kept[i]);
	free(r->kept);
}

int series_end(struct recording *r)
{
	int ret;

	wait_writer(r);
	ret = output_stamp(&r->opts->output, time(NULL), r->opts->every < 1);
	if (ret)
		return ret;
	output_keep_stamp(&r->opts->output);
	return keep_last(r);
}

int series_renew(struct recording *r)
{
	struct shstk_profile *profile = r->profile;
	struct shstk_symbols *symbols = r->symbols;
	int ret;

	r->profile = NULL;
	r->symbols = NULL;
	ret = r->backend->renew(r);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return ret;
}

/* Completes the profile and has it written. Returns 0 or -ENOMEM. */
static int write_next(struct recording *r)
{
	const struct rusage usage = { 0 };
	int ret = r->backend->complete ? r->backend->complete(r) : 0;

	/* What waits must have one owner: the child inherits it. */
	if (!ret)
		ret = output_keep_flush(&r->opts->output, NULL);
	if (ret)
		return ret;
	series_finish(r);
	r->backend->report_gaps(r, false, &usage);
	ret = start_writer(r);
	if (ret)
		return ret;
	shstk_profile_keep(r->profile, NULL);
	output_keep_leave(&r->opts->output, &r->left);
	return 0;
}

int series_next(struct recording *r)
{
	int ret = series_end(r);

	if (r->opts->push.to)
		pusher_watch(&r->pusher);
	if (!ret)
		ret = write_next(r);
	if (ret)
		return ret;
	metrics_add_profile(r);
	ret = series_renew(r);
	r->part = now_ns(CLOCK_MONOTONIC);
	if (!r->backend->cumulative) {
		r->started = r->part;
		r->realtime = now_ns(CLOCK_REALTIME);
	}
	if (!ret)
		series_begin(r);
	return ret;
}
