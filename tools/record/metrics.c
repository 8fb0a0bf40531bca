// SPDX-License-Identifier: GPL-2.0-or-later
/* metrics.c - figures of a recording for Prometheus. See metrics.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/record/metrics.h"
#include "tools/shstk.h"

#define EVERY_NS 5000000000 /* between two pages */
#define PREFIX "shstk_"

/* The counts of a spool, with the words that names end with or labels have. */
static const struct {
	enum spool_count count;
	const char *name, *help;
} sending[] = {
	{ SPOOL_PUT, "requests_put", "Requests that were put into the spool." },
	{ SPOOL_SENT, "requests_sent", "Requests that the server took." },
	{ SPOOL_SENT_BYTES, "sent_bytes", "Bytes of the bodies of requests that the server took." },
	{ SPOOL_RETRIES, "retries", "Attempts that were not the last one of their request." },
	{ SPOOL_REJECTED, "requests_rejected",
	  "Requests that were sent, of which the server rejected a part." },
};
static const struct {
	enum spool_count count;
	const char *reason;
} dropping[] = {
	{ SPOOL_FULL, "full" },
	{ SPOOL_OLD, "old" },
	{ SPOOL_REFUSED, "refused" },
	{ SPOOL_DAMAGED, "damaged" },
};

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void figure(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, PREFIX "%s %" PRIu64 "\n", name, value);
}

/* What was counted in all profiles so far. */
static struct sample_counts count(const struct recording *r)
{
	struct sample_counts ret = { 0 };

	if (r->going)
		r->backend->count(r, &ret);
	ret.samples += r->before.samples;
	ret.lost += r->before.lost;
	ret.truncated += r->before.truncated;
	return ret;
}

/* CPU time of this process and of those that wrote profiles. The command's is no part of it. */
static double cpu_seconds(const struct recording *r)
{
	struct rusage own = { 0 }, children = { 0 };

	getrusage(RUSAGE_SELF, &own);
	if (!r->pid)
		getrusage(RUSAGE_CHILDREN, &children);
	return rusage_seconds(&own) + rusage_seconds(&children);
}

static void print_recording(FILE *out, const struct recording *r)
{
	const struct sample_counts c = count(r);

	if (r->opts->heap) {
		figure(out, "record_allocations_total", "counter",
		       "Allocations that were recorded.", c.samples);
		figure(out, "record_allocations_lost_total", "counter",
		       "Allocations that are missing.", c.lost);
	} else {
		figure(out, "record_samples_total", "counter", "Samples that were recorded.",
		       c.samples);
		figure(out, "record_samples_lost_total", "counter",
		       "Samples and other records that were lost, because a ring was full.",
		       c.lost);
		figure(out, "record_samples_truncated_total", "counter",
		       "Samples whose stacks are cut at the outer end.", c.truncated);
	}
	head(out, "record_cpu_seconds_total", "counter",
	     "CPU time of the recorder, and of processes of its own that have ended.");
	fprintf(out, PREFIX "record_cpu_seconds_total %.3f\n", cpu_seconds(r));
}

static void print_sending(FILE *out, struct pusher *pusher)
{
	const struct spool_waiting waiting = spool_waiting_again(&pusher->spool, &pusher->seen);
	uint64_t counts[SPOOL_COUNTS];
	char name[64];

	spool_counts(&pusher->spool, counts);
	for (size_t i = 0; i < sizeof(sending) / sizeof(*sending); i++) {
		snprintf(name, sizeof(name), "push_%s_total", sending[i].name);
		figure(out, name, "counter", sending[i].help, counts[sending[i].count]);
	}
	head(out, "push_requests_dropped_total", "counter",
	     "Requests that were dropped, because the spool or the disk was full, or they were too old, refused by the server or damaged.");
	for (size_t i = 0; i < sizeof(dropping) / sizeof(*dropping); i++)
		fprintf(out, PREFIX "push_requests_dropped_total{reason=\"%s\"} %" PRIu64 "\n",
			dropping[i].reason, counts[dropping[i].count]);
	figure(out, "push_requests_waiting", "gauge", "Requests that wait in the spool.",
	       waiting.nr);
	figure(out, "push_spool_bytes", "gauge", "Bytes of the requests that wait in the spool.",
	       waiting.bytes);
}

/* Returns a page in memory that the caller frees, or NULL. */
static char *make_page(struct recording *r, size_t *size)
{
	char *page = NULL;
	FILE *out = open_memstream(&page, size);

	if (!out)
		return NULL;
	print_recording(out, r);
	if (r->opts->push.to)
		print_sending(out, &r->pusher);
	if (!fclose(out))
		return page;
	free(page);
	return NULL;
}

/*
 * Writes a file that all may read, whatever the umask is. It must be new: in a folder that others
 * may write to, a link of theirs could be in its place. Returns 0 or a negative errno.
 */
static int write_new(const char *path, const char *page, size_t size)
{
	int fd, err = 0;
	ssize_t n;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, page, size);
	if (n != (ssize_t)size)
		err = n < 0 ? -errno : -ENOSPC;
	if (!err && fchmod(fd, 0644))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* Writes a page. Returns 0 or a negative errno. */
static int write_page(struct recording *r)
{
	size_t size;
	char *page = make_page(r, &size), *path = NULL;
	int err = -ENOMEM;

	if (page && asprintf(&path, "%s.new", r->opts->metrics) >= 0) {
		err = write_new(path, page, size);
		if (!err && rename(path, r->opts->metrics))
			err = -errno;
		if (err)
			unlink(path);
		free(path);
	}
	free(page);
	return err;
}

static void complain_of(const struct recording *r, int err)
{
	complain("cannot write '%s': %s (--metrics)", r->opts->metrics, strerror(-err));
}

int metrics_begin(struct recording *r)
{
	int err = r->opts->metrics ? write_page(r) : 0;

	if (!err)
		return 0;
	complain_of(r, err);
	return EXIT_OWN;
}

/* Says only once that pages can't be written. */
static void renew_page(struct recording *r)
{
	int err = write_page(r);

	if (err && !r->unmeasured)
		complain_of(r, err);
	r->unmeasured = err;
}

void metrics_watch(struct recording *r, uint64_t at)
{
	if (!r->opts->metrics || at - r->measured < EVERY_NS)
		return;
	r->measured = at;
	renew_page(r);
}

void metrics_add_profile(struct recording *r)
{
	if (!r->backend->cumulative)
		r->before = count(r);
}

void metrics_end(struct recording *r)
{
	if (r->opts->metrics && r->going)
		renew_page(r);
}
