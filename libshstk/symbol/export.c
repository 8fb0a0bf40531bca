// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export.c - chooses a format, and writes a file so that it is either complete or not there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export.h"
#include "target.h"

/* All formats. The first one whose suffix fits a name is taken, so longer suffixes come first. */
static const struct shstk_format *const formats[] = {
	&shstk_format_pprof,   &shstk_format_folded, &shstk_format_svg,
	&shstk_format_perf,    &shstk_format_top,    &shstk_format_speedscope,
	&shstk_format_firefox, &shstk_format_trace,  &shstk_format_json,
	&shstk_format_pb,      &shstk_format_html,   &shstk_format_callgrind,
	&shstk_format_shstk,
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

static bool has_suffix(const char *path, const char *suffixes)
{
	size_t len = strlen(path), n;

	while (*suffixes) {
		n = strcspn(suffixes, " ");
		if (len > n && !memcmp(path + len - n, suffixes, n))
			return true;
		suffixes += n;
		suffixes += *suffixes == ' ';
	}
	return false;
}

static const struct shstk_format *find(const char *name, const char *path)
{
	size_t i;

	for (i = 0; i < NR_FORMATS; i++) {
		if (name ? !strcmp(name, formats[i]->name) :
			   path && has_suffix(path, formats[i]->suffixes))
			return formats[i];
	}
	return NULL;
}

const char *shstk_format_find(const char *format, const char *path)
{
	const struct shstk_format *found = find(format, path);

	return found ? found->name : NULL;
}

const char *shstk_format_suffix(const char *format, int *len)
{
	const struct shstk_format *found = find(format, NULL);

	*len = found ? strcspn(found->suffixes, " ") : 0;
	return found ? found->suffixes : "";
}

const char *shstk_format_list(void)
{
	return "pprof, pb, folded, svg, html, speedscope, firefox, trace, callgrind, perf, top, json, shstk";
}

void shstk_format_value(char *buf, size_t size, int64_t value, const char *unit)
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	static const char *const bytes[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = value;
	int i = 0;

	if (!strcmp(unit, "nanoseconds")) {
		for (; i < 3 && (v >= 1000 || v <= -1000); i++)
			v /= 1000;
		snprintf(buf, size, i ? "%.3f %s" : "%.0f %s", v, times[i]);
	} else if (!strcmp(unit, "bytes")) {
		for (; i < 4 && (v >= 1024 || v <= -1024); i++)
			v /= 1024;
		snprintf(buf, size, i ? "%.2f %s" : "%.0f %s", v, bytes[i]);
	} else if (!strcmp(unit, "count")) {
		snprintf(buf, size, "%lld", (long long)value);
	} else {
		snprintf(buf, size, "%lld %s", (long long)value, unit);
	}
}

static const struct shstk_write_opts default_opts;

static int print(struct shstk_profile *profile, FILE *out, const struct shstk_format *format,
		 const struct shstk_write_opts *opts)
{
	int err;

	shstk_profile_prepare(profile);
	err = format->write(profile, out, opts ? opts : &default_opts);
	if (err)
		return err;
	errno = 0;
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

int shstk_profile_print(struct shstk_profile *profile, FILE *out, const char *format,
			const struct shstk_write_opts *opts)
{
	const struct shstk_format *found = find(format, NULL);

	return found ? print(profile, out, found, opts) : -EINVAL;
}

static const struct shstk_format *choose(const char *path, const char *format, char *err,
					 size_t err_size)
{
	const struct shstk_format *found = find(format, path);

	if (found)
		return found;
	if (format)
		snprintf(err, err_size, "unknown format '%s' (there are: %s)", format,
			 shstk_format_list());
	else
		snprintf(
			err, err_size,
			"cannot tell a format from the name '%s' (.shstk, .pb.gz, .pb, .folded, .svg, .html, .speedscope.json, .firefox.json, .trace.json, .callgrind, .perf, .txt, .json)",
			path);
	return NULL;
}

static int say(const char *path, int code, char *err, size_t err_size)
{
	if (code)
		snprintf(err, err_size, "cannot write '%s': %s", path, strerror(-code));
	return code;
}

int shstk_profile_write(struct shstk_profile *profile, const char *path, const char *format,
			const struct shstk_write_opts *opts, char *err, size_t err_size)
{
	const struct shstk_format *found = choose(path, format, err, err_size);
	struct shstk_target target;
	int ret;

	if (!found)
		return -EINVAL;
	ret = shstk_target_open(&target, path);
	if (ret)
		return say(path, ret, err, err_size);
	ret = print(profile, target.out, found, opts);
	if (ret)
		shstk_target_discard(&target);
	else
		ret = shstk_target_finish(&target);
	return say(path, ret, err, err_size);
}

int shstk_profile_check(const char *path, const char *format, char *err, size_t err_size)
{
	struct shstk_target target;
	struct stat st;
	int ret;

	if (!choose(path, format, err, err_size))
		return -EINVAL;
	/* Opening and closing the FIFO would make its reader see the end of the data, and exit. */
	if (strcmp(path, "-") && !stat(path, &st) && S_ISFIFO(st.st_mode))
		return say(path, access(path, W_OK) ? -errno : 0, err, err_size);
	ret = shstk_target_open(&target, path);
	if (!ret)
		shstk_target_discard(&target);
	return say(path, ret, err, err_size);
}
