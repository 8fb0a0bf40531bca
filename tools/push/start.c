// SPDX-License-Identifier: GPL-2.0-or-later
/* start.c - starts shstk-push, which sends what was prepared, as push.h describes. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/push/push.h"
#include "tools/shstk.h"

#define SENDER "shstk-push"
#define MOST_ARGS 24

/**
 * struct words - the arguments of the program
 * @v: the arguments; there is a NULL behind the last one.
 * @nr: their number.
 * @failed: memory ran out.
 */
struct words {
	char *v[MOST_ARGS];
	size_t nr;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (w->nr + 1 >= MOST_ARGS || vasprintf(&w->v[w->nr], fmt, ap) < 0) {
		w->failed = true;
		w->v[w->nr] = NULL;
	} else {
		w->nr++;
	}
	va_end(ap);
}

static void add_option(struct words *w, const char *name, const char *value)
{
	if (value)
		add(w, "--%s=%s", name, value);
}

/* What tells protocols apart: where a server without a path gets requests, and of what type. */
static void add_protocol(struct words *w, const struct push *p)
{
	static const char *const protocols[][2] = {
		[PUSH_AUTO] = { "", "" },
		[PUSH_OTLP] = { "/v1development/profiles", "application/x-protobuf" },
		[PUSH_PYROSCOPE] = { "/push.v1.PusherService/Push", "application/json" },
		[PUSH_INGEST] = { "/ingest", "application/octet-stream" },
		[PUSH_PARCA] = { "/api/profiles/writeraw", "application/json" },
	};
	static const char *const encodings[] = {
		[PUSH_GZIP] = "gzip",
		[PUSH_ZSTD] = "zstd",
		[PUSH_PLAIN] = NULL,
	};

	add_option(w, "path", protocols[p->protocol][0]);
	add_option(w, "type", protocols[p->protocol][1]);
	if (p->protocol == PUSH_OTLP) {
		add_option(w, "encoding", encodings[p->packing]);
		add(w, "--protobuf");
	}
}

/* Writes a part of a series, in which the characters between parts are not allowed. */
static void put_part(FILE *out, const char *text)
{
	for (; *text; text++)
		putc(strchr("{},=", *text) ? '_' : *text, out);
}

/* Writes a label of a series. @first: there is none before it. */
static void put_pair(FILE *out, const char *name, const char *value, bool first)
{
	fputs(first ? "" : ",", out);
	put_part(out, name);
	putc('=', out);
	put_part(out, value);
}

/* Returns "NAME{key=value,...}", which the caller frees; NULL if out of memory. */
static char *series(const struct push *p, const struct push_bodies *bodies)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);
	struct utsname machine;
	const char *host = push_host(p, &machine);
	bool first = !host;

	if (!out)
		return NULL;
	put_part(out, bodies->service);
	putc('{', out);
	if (host)
		put_pair(out, PUSH_HOST, host, true);
	for (size_t i = 0; i < p->nr_attributes; i += 2) {
		if (!strcmp(p->attributes[i], "service.name"))
			continue;
		put_pair(out, p->attributes[i], p->attributes[i + 1], first);
		first = false;
	}
	putc('}', out);
	if (!fclose(out))
		return ret;
	free(ret);
	return NULL;
}

char *push_query(const struct push *p, const struct push_bodies *bodies, size_t *size)
{
	const int64_t second = 1000000000;
	char *name = series(p, bodies), *ret = NULL;
	FILE *out = name ? open_memstream(&ret, size) : NULL;

	if (out) {
		fprintf(out, "name=%s%cformat=pprof%c", name, 0, 0);
		if (bodies->start > 0)
			fprintf(out, "from=%lld%cuntil=%lld%c", (long long)(bodies->start / second),
				0,
				(long long)(bodies->start / second + bodies->duration / second + 1),
				0);
		if (fclose(out)) {
			free(ret);
			ret = NULL;
		}
	}
	free(name);
	return ret;
}

static void add_query(struct words *w, const struct push *p, const struct push_bodies *bodies)
{
	size_t size, at;
	char *query = push_query(p, bodies, &size);

	w->failed |= !query;
	for (at = 0; query && at < size; at += strlen(query + at) + 1)
		add_option(w, "query", query + at);
	free(query);
}

static void make_words(struct words *w, const char *program, const struct push *p)
{
	add(w, "%s", program);
	add_option(w, "to", p->to);
	add_protocol(w, p);
	add_option(w, "token-file", p->token_file);
	add_option(w, "tenant", p->tenant);
	add_option(w, "cacert", p->cacert);
	add_option(w, "cert", p->cert);
	add_option(w, "key", p->key);
	add(w, "--timeout=%u", p->timeout);
	add(w, "--retries=%u", p->retries);
	add(w, "--max-wait=%u", p->max_wait);
}

static void forget_words(struct words *w)
{
	while (w->nr)
		free(w->v[--w->nr]);
}

/* Finds the program. Returns false after a message. */
static bool find_sender(char *path, size_t size)
{
	if (!find_object(SENDER, path, size))
		return true;
	complain("%s is not installed, which belongs to this command", SENDER);
	return false;
}

/* Starts the program with the bodies as its standard input. Returns its exit status. */
static int start(char *const *argv, int fd)
{
	pid_t pid;
	int status = 0;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (lseek(fd, 0, SEEK_SET) || dup2(fd, STDIN_FILENO) < 0)
			_exit(EXIT_FAILED);
		execv(argv[0], argv);
		complain("cannot execute %s: %s", argv[0], strerror(errno));
		_exit(EXIT_FAILED);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	if (pid < 0)
		complain("cannot start %s: %s", argv[0], strerror(errno));
	else if (WIFSIGNALED(status))
		complain("%s was ended by signal %d", argv[0], WTERMSIG(status));
	return pid < 0 || !WIFEXITED(status) ? EXIT_FAILED : WEXITSTATUS(status);
}

int push_send(const struct push *push, const struct push_bodies *bodies)
{
	struct words words = { 0 };
	char program[PATH_MAX];
	int status = EXIT_FAILED;

	if (!find_sender(program, sizeof(program)))
		return EXIT_FAILED;
	make_words(&words, program, push);
	if (push->protocol == PUSH_INGEST)
		add_query(&words, push, bodies);
	add(&words, "--requests=%zu", bodies->nr);
	if (words.failed)
		complain("%s", strerror(ENOMEM));
	else
		status = start(words.v, fileno(bodies->out));
	forget_words(&words);
	return status;
}

int push_send_symbols(const struct push *push, const char *build_id, int fd)
{
	struct words words = { 0 };
	char program[PATH_MAX];
	int status = EXIT_FAILED;

	if (!find_sender(program, sizeof(program)))
		return PUSH_USELESS;
	make_words(&words, program, push);
	add_option(&words, "symbols", build_id);
	if (words.failed)
		complain("%s", strerror(ENOMEM));
	else
		status = start(words.v, fd);
	forget_words(&words);
	return status;
}

/*
 * Executes the program in a process group of its own: signals from the terminal are for the recorder,
 * which ends it. A signal that the recorder blocks must not stay blocked, and the recorder's high
 * priority is not for sending.
 */
static void execute(char *const *argv, int fd)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	setpriority(PRIO_PROCESS, 0, 19);
	if (dup2(fd, STDIN_FILENO) >= 0)
		execv(argv[0], argv);
	complain("cannot execute %s: %s", argv[0], strerror(errno));
	_exit(EXIT_FAILED);
}

pid_t push_start_spooled(const struct push *push, const char *base, const char *name, int fd)
{
	struct words words = { 0 };
	char program[PATH_MAX];
	pid_t pid = -1;

	if (!find_sender(program, sizeof(program)))
		return -1;
	make_words(&words, program, push);
	add_option(&words, "spool", base);
	add_option(&words, "spool-name", name);
	add(&words, "--max-age=%lu", push->spool_age);
	add(&words, "--end-wait=%lu", push->spool_wait);
	if (push->counts && push->protocol == PUSH_OTLP)
		add(&words, "--push-counts");
	fflush(NULL);
	if (!words.failed)
		pid = fork();
	if (!pid)
		execute(words.v, fd);
	if (pid < 0)
		complain("cannot start %s: %s", program, strerror(words.failed ? ENOMEM : errno));
	forget_words(&words);
	return pid;
}
