// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk record - profile a command and its children, or what runs already.
 *
 * A back end records (backend.h). It is chosen by the options (options/sampler.h). The code here
 * starts the command and waits for it; at the end it names what is in the profile and writes it.
 * The exit status is that of the command.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/output.h"
#include "tools/proc/tasks.h"
#include "tools/record/backend.h"
#include "tools/record/caution.h"
#include "tools/record/metrics.h"
#include "tools/record/reload.h"
#include "tools/record/series.h"
#include "tools/record/service.h"
#include "tools/record/top/hottest.h"
#include "tools/record/top/screen.h"
#include "tools/record/top/top.h"
#include "tools/shstk.h"

#if defined(__x86_64__) || defined(__aarch64__)
#define CPU_SUPPORTED 1
#else
#define CPU_SUPPORTED 0
#endif

#define LOOK_NS 20000000 /* time between two looks into the rings */
#define CALM_NS 100000000 /* the same while the back end is calm */
#define EARLY_NS 500000000 /* a beginning, in which interpreters are met */
#define PROGRESS "shstk record: "
#define FUNCTION_ROOM 30 /* columns for the name of the hottest function and its share */
#define FLUSH_NS 1000000000 /* time after which samples that are kept are written */
#define FOLLOW_PART 10 /* see follow() */
#define WATCH_NS 250000000 /* time between two calls of the back end's watch() */

/* The state of the main loop: the command, the user's signals, and what is shown. */
struct progress {
	bool shown; /* a line of progress is on the terminal */
	bool interrupted; /* the user interrupted once, and the command knows it */
	bool stopped;
	bool next; /* the profile so far is to be written now */
	bool reload; /* the options are to be read anew */
	struct hottest hottest; /* the hottest function, shown in the line of progress */
	struct top top; /* the screen of `shstk top` */
};

/* Removes counts from the end of @so_far until there is room for the function. */
static void make_room(char *so_far, const char *function, size_t room)
{
	size_t least = strlen(function) < FUNCTION_ROOM ? strlen(function) : FUNCTION_ROOM;
	char *end;

	while (least && strlen(so_far) + least > room && (end = strrchr(so_far, ',')))
		*end = '\0';
}

/* Draws the line of progress, which is at most one line of the terminal. */
static void show_progress(const struct recording *r, struct progress *p, uint64_t at)
{
	const char *function = p->hottest.text;
	unsigned int columns;
	char so_far[200], line[600];
	int size;

	if (!p->shown)
		return;
	hottest_update(&p->hottest, r, at);
	/* Leave one column free: the cursor must stay in the line. */
	columns = screen_columns(STDERR_FILENO) - 1;
	r->backend->describe(r, so_far, sizeof(so_far));
	make_room(so_far, function, columns - strlen(PROGRESS));
	size = snprintf(line, sizeof(line), PROGRESS "%s%s%s", so_far, *function ? "; " : "",
			function);
	fprintf(stderr, "\r\033[K%.*s", (int)screen_fit(line, size, columns), line);
}

static void clear_progress(struct progress *p)
{
	if (!p->shown)
		return;
	hottest_end(&p->hottest);
	fputs("\r\033[K", stderr);
}

/*
 * Handles a signal of the user. SIGINT from the terminal has reached the command as well; a signal
 * from kill(2) has not, and is passed on.
 */
static void on_interrupt(const struct recording *r, struct progress *p, const siginfo_t *si)
{
	if (si->si_signo == SIGHUP && reload_possible(r)) {
		p->reload = true;
		return;
	}
	if (si->si_signo == SIGHUP && r->opts->every > 0) {
		p->next = true;
		return;
	}
	if (p->interrupted || !r->pid) {
		p->stopped = true;
		return;
	}
	p->interrupted = true;
	if (si->si_code <= 0)
		kill(r->pid, si->si_signo);
}

static void control_signals(sigset_t *set, const struct recording *r)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(set, signals[i]);
	if (!r->opts->live || !screen_possible())
		return;
	sigaddset(set, SIGTSTP);
	sigaddset(set, SIGWINCH);
}

/*
 * Returns whether a wait status @status means that the command has ended.
 *
 * A command that asks to be traced (PTRACE_TRACEME) is traced by this process and stops at its next
 * signal. This function detaches from it and delivers the signal, except the SIGTRAP that reports
 * exec.
 */
static bool is_end(pid_t pid, int status)
{
	int signo = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

	if (!WIFSTOPPED(status))
		return true;
	ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)(signo == SIGTRAP ? 0 : signo));
	return false;
}

static bool has_ended(const struct recording *r, int *status, struct rusage *usage)
{
	if (r->pid)
		return wait4(r->pid, status, WNOHANG, usage) == r->pid && is_end(r->pid, *status);
	return r->backend->all_gone && r->backend->all_gone(r);
}

/* Returns whether a profile is to be written now and the next one begun. */
static bool is_due(const struct recording *r, struct progress *p, uint64_t at)
{
	bool next = p->next;

	p->next = false;
	return next || (r->opts->every > 0 && at - r->part >= r->opts->every * 1e9);
}

/* Ends the recording if another one with changed options is to take its place. */
static void look_at_options(struct recording *r, struct progress *p)
{
	if (!p->reload)
		return;
	p->reload = false;
	r->again = reload_check(r);
	p->stopped |= r->again;
}

/* Handles the terminal's other signals, and keys. */
static void handle_terminal(const struct recording *r, struct progress *p, int signo)
{
	siginfo_t q = { .si_signo = SIGINT };
	enum top_wish wish;

	if (signo == SIGTSTP)
		screen_suspend();
	if (signo == SIGTSTP || signo == SIGWINCH)
		top_draw(&p->top, r);
	wish = top_keys(&p->top, r);
	if (wish == TOP_END)
		on_interrupt(r, p, &q);
	if (wish == TOP_GONE)
		p->stopped = true;
}

static bool is_terminals(int signo)
{
	return signo <= 0 || signo == SIGTSTP || signo == SIGWINCH;
}

static void note_memory(struct recording *r)
{
	unsigned long kib = task_memory(getpid()), shared = r->backend->shared(r) / 1024;

	if (kib > r->memory)
		r->memory = kib;
	if (shared > r->shared)
		r->shared = shared;
}

/* Returns whether something that is due so many seconds after a time is due during a long sleep. */
static bool is_near(uint64_t now, uint64_t since, double seconds)
{
	return seconds > 0 && now - since + CALM_NS >= seconds * 1e9;
}

/* Returns whether nothing but what the back end records needs the short sleep. */
static bool may_sleep_long(const struct recording *r, uint64_t now)
{
	const struct record_opts *o = r->opts;

	if (o->live || now - r->began < EARLY_NS)
		return false;
	if (r->pid)
		return !(o->duration > 0) && !(o->every > 0);
	/* The end of a process that was given does not end the sleep. */
	return (o->all || o->cgroup) && !is_near(now, r->began, o->duration) &&
	       !is_near(now, r->part, o->every);
}

/*
 * Returns how long to sleep. Each wake-up finds cold caches and costs as much as three samples. The
 * end of the command ends the sleep early.
 */
static struct timespec nap(const struct recording *r)
{
	const struct backend *backend = r->backend;
	bool calm = may_sleep_long(r, now_ns(CLOCK_MONOTONIC)) && backend->calm &&
		    backend->calm(r, CALM_NS);

	return (struct timespec){ .tv_nsec = calm ? CALM_NS : LOOK_NS };
}

/*
 * Has the back end add what was counted since it did so last. If that takes long it is done less
 * often, so that it takes one part in FOLLOW_PART of a CPU's time at most. Returns 0 or -ENOMEM.
 */
static int follow(struct recording *r, uint64_t at)
{
	uint64_t before = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int ret;

	if (!r->backend->follow || at < r->followed)
		return 0;
	ret = r->backend->follow(r);
	r->followed = at + (now_ns(CLOCK_THREAD_CPUTIME_ID) - before) * FOLLOW_PART;
	return ret;
}

/* Writes the samples that wait, if it is time to. Returns 0 or -ENOMEM. */
static int keep_samples(struct recording *r, uint64_t at)
{
	char so_far[200];
	int ret;

	if (at - r->flushed < FLUSH_NS)
		return 0;
	r->flushed = at;
	ret = follow(r, at);
	if (ret)
		return ret;
	r->backend->describe(r, so_far, sizeof(so_far));
	return output_keep_flush(&r->opts->output, so_far);
}

/* Records until the command ends or recording is to stop. Returns 0 or a negative errno. */
static int record_loop(struct recording *r, struct progress *p, int *status, bool *ended,
		       struct rusage *usage)
{
	uint64_t watch = 0, at;
	struct timespec pause;
	sigset_t set;
	siginfo_t si;
	int ret;

	control_signals(&set, r);
	while (!p->stopped) {
		int signo;

		pause = nap(r);
		signo = sigtimedwait(&set, &si, &pause);
		if (!is_terminals(signo) && signo != SIGCHLD)
			on_interrupt(r, p, &si);
		handle_terminal(r, p, signo);
		look_at_options(r, p);
		*ended = has_ended(r, status, usage);
		if (*ended)
			break;
		ret = r->backend->take(r);
		if (ret)
			return ret;
		at = now_ns(CLOCK_MONOTONIC);
		if (at - watch >= WATCH_NS) {
			if (r->backend->watch)
				r->backend->watch(r);
			show_progress(r, p, at);
			service_watch(r, at);
			metrics_watch(r, at);
			note_memory(r);
			watch = at;
			ret = keep_samples(r, at);
			if (ret)
				return ret;
		}
		if (r->opts->duration > 0 && at - r->began >= r->opts->duration * 1e9)
			p->stopped = true;
		if (r->opts->live)
			ret = top_update(&p->top, r, at);
		else if (!p->stopped && is_due(r, p, at))
			ret = series_next(r);
		if (ret)
			return ret;
	}
	return 0;
}

/* Ends the recording and writes the profile. Returns an exit status. */
static int finish(struct recording *r, struct top *top, bool ended, const struct rusage *usage)
{
	int ret = r->backend->stop(r, ended, usage);
	struct record_opts *o = r->opts;

	if (ret)
		complain("out of memory: the profile is not complete");
	series_finish(r);
	if (o->every > 0 && series_end(r))
		return EXIT_OWN;
	r->backend->report_gaps(r, ended, usage);
	if (o->push.to)
		pusher_watch(&r->pusher);
	if (!o->live)
		output_name(&o->output, r->symbols, r->profile);
	r->unwritten |= !series_push(r);
	if (o->live ? top_end(top, r) : !output_write(&o->output, r->profile, record_title(o)))
		return EXIT_OWN;
	note_memory(r);
	if (o->live)
		output_report_missing(r->symbols, NULL);
	if (!o->quiet)
		r->backend->report(r, ended, usage);
	return ret || r->unwritten ? EXIT_OWN : 0;
}

static int command_status(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Waits for the command, which goes on after the profile is written. Returns 0 or a negative errno.
 */
static int wait_command(const struct recording *r, int *status)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	for (;;) {
		if (waitpid(r->pid, status, 0) == r->pid) {
			if (is_end(r->pid, *status))
				return 0;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
}

/*
 * Makes the process that will be the command, with the object that the back end preloads. Returns 0
 * or an exit status.
 */
static int hold(const struct recording *r, struct target *target)
{
	const char *name = r->backend->object;
	bool mute = r->opts->live && screen_possible();
	char path[4096];

	if (!name)
		return target_hold(r->opts->command, NULL, NULL, mute, target);
	if (find_object(name, path, sizeof(path))) {
		complain("%s is missing: looked for it beside the command and in %s", name,
			 SHSTK_OBJDIR);
		return EXIT_OWN;
	}
	if (strpbrk(path, " :")) {
		complain("%s cannot be preloaded: its path has a blank or a colon", path);
		return EXIT_OWN;
	}
	return target_hold(r->opts->command, path, r->backend->env(r), mute, target);
}

static int start(struct recording *r)
{
	struct target *target = &r->target;
	bool apart;
	int ret;

	if (!r->opts->command)
		return r->backend->start(r, NULL);
	ret = hold(r, target);
	if (ret)
		return ret;
	ret = r->backend->start ? r->backend->start(r, target) : 0;
	if (ret) {
		target_drop(target);
		return ret;
	}
	apart = target->apart;
	ret = target_go(r->opts->command, target);
	if (!ret && apart && !target->starter && !r->opts->quiet)
		complain(
			"no second process could be started: periods of short threads will not vary");
	r->pid = target->pid;
	return ret;
}

static int run(struct recording *r)
{
	struct progress progress = { 0 };
	struct rusage usage = { 0 };
	bool ended = false;
	int status = 0, own;
	sigset_t set;

	control_signals(&set, r);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->began = r->part = r->started = now_ns(CLOCK_MONOTONIC);
	r->realtime = now_ns(CLOCK_REALTIME);
	own = start(r);
	if (own)
		return own;
	r->going = true;
	service_ready(r);
	series_begin(r);
	progress.shown = !r->opts->quiet && !r->opts->live && isatty(STDERR_FILENO);
	if (r->opts->live)
		top_begin(&progress.top, r);
	own = record_loop(r, &progress, &status, &ended, &usage);
	clear_progress(&progress);
	top_leave(&progress.top);
	if (own == -ENOMEM)
		complain("out of memory: recording stops here");
	r->again &= !ended && !own;
	if (r->again)
		service_reloads(r);
	else
		service_ends(r);
	own = finish(r, &progress.top, ended, &usage);
	if (r->target.starter)
		target_end(&r->target);
	if (!ended && r->pid) {
		if (progress.interrupted)
			return own ? own : EXIT_SIGNAL + SIGINT;
		wait_command(r, &status);
	}
	return own ? own : command_status(status);
}

/*
 * Has the back end make the profile and what else it needs before the command exists. Returns 0 or
 * an exit status.
 */
static int begin(struct recording *r)
{
	int err;

	series_prepare(r);
	err = r->backend->begin(r);
	if (!err)
		return 0;
	complain("cannot set up recording: %s", strerror(-err));
	return EXIT_OWN;
}

static int check_target(const struct recording *r)
{
	const char *name = r->opts->command ? *r->opts->command : NULL;

	if (!name)
		return 0;
	return r->backend->object ? target_check(name) : target_find(name);
}

static int record(struct recording *r)
{
	int status = check_target(r);

	if (!status)
		status = begin(r);
	if (!status && r->opts->push.to) {
		status = pusher_begin(&r->pusher, &r->opts->push);
		if (status == EXIT_FAILED)
			status = EXIT_OWN;
	}
	if (!status)
		status = metrics_begin(r);
	if (!status)
		status = run(r);
	pusher_end(&r->pusher);
	metrics_end(r);
	pusher_forget(&r->pusher);
	r->backend->end(r);
	output_keep_drop(&r->opts->output);
	series_forget(r);
	cautions_forget(r);
	shstk_profile_destroy(r->profile);
	shstk_symbols_destroy(r->symbols);
	return status;
}

/* Parses @argv by @argp, whose input is @opts, and records. Returns the exit status. */
static int record_main(const struct argp *argp, int argc, char **argv, struct record_opts *opts)
{
	struct recording r = {
		.opts = opts,
		.argv = argv,
		.nice = getpriority(PRIO_PROCESS, 0),
	};
	int first = command_parse(argp, argc, argv, opts), status;

	if (!CPU_SUPPORTED) {
		complain("this CPU is not supported: only x86-64 and arm64 are");
		return EXIT_OWN;
	}
	opts->command = first < argc ? argv + first : NULL;
	if (opts->command && opts->targets.nr_pids &&
	    targets_take_words(&opts->targets, opts->command))
		opts->command = NULL;
	if (opts->call_graph && !opts->quiet)
		complain(
			"-g and --call-graph are not needed: stacks are always recorded (see --via)");
	/*
	 * Probes slow a process down: with --heap, children are not added to the processes that
	 * were given.
	 */
	opts->targets.alone |= opts->heap && (opts->targets.nr_pids || opts->targets.nr_names);
	status = record_options_check(opts);
	if (opts->dry_run && !status)
		return push_files_readable(&opts->push) ? EXIT_OK : EXIT_FAILED;
	if (!status)
		status = targets_find(&opts->targets);
	if (status)
		return status;
	if (opts->targets.refused && !opts->quiet)
		complain(
			"not recorded, as only root may: %u %s of other users or with other rights",
			opts->targets.refused, opts->targets.refused == 1 ? "child" : "children");
	sampler_choose(opts, &r.backend);
	status = record(&r);
	return r.again ? reload(&r) : status;
}

int cmd_record(int argc, char **argv)
{
	struct record_opts opts;
	int status;

	record_options_init(&opts);
	status = record_main(&record_argp, argc, argv, &opts);
	targets_deinit(&opts.targets);
	return status;
}

int cmd_top(int argc, char **argv)
{
	struct record_opts opts;
	int status;

	record_options_init(&opts);
	opts.live = true;
	/* The screen cannot wait for a debuginfod server. */
	unsetenv("DEBUGINFOD_URLS");
	status = record_main(&top_argp, argc, argv, &opts);
	targets_deinit(&opts.targets);
	return status;
}
