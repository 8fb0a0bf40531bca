// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export.c - chooses a format, and writes a file so that it is either complete or not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export.h"

/* All formats. The first one whose suffix fits a name is taken, so longer suffixes come first. */
static const struct shstk_format *const formats[] = {
	&shstk_format_pprof, &shstk_format_folded, &shstk_format_svg,
	&shstk_format_perf,  &shstk_format_top,	   &shstk_format_speedscope,
	&shstk_format_json,  &shstk_format_pb,	   &shstk_format_html,
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
	return "pprof, pb, folded, svg, html, speedscope, perf, top, json";
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

static int print(const struct shstk_profile *profile, FILE *out, const struct shstk_format *format,
		 const struct shstk_write_opts *opts)
{
	int err = format->write(profile, out, opts ? opts : &default_opts);

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

/**
 * struct target - a file being written
 * @path: name that is shown to people.
 * @final: path of the file itself, links followed.
 * @temp: path that is written to, then renamed to @final; NULL if @final is written directly.
 * @out: the stream.
 */
struct target {
	const char *path;
	char *final;
	char *temp;
	FILE *out;
};

/*
 * Opens "DIR/.shstk-PID-N.tmp" beside the file, with the access rights of the old file. Returns a
 * descriptor or a negative errno.
 */
static int open_temp(struct target *target, const struct stat *old)
{
	const char *slash = strrchr(target->final, '/');
	mode_t mode = old ? old->st_mode & 0777 : 0666;
	int dir = slash ? slash - target->final + 1 : 0;
	int fd = -1, n;

	for (n = 0; n < 100 && fd < 0; n++) {
		free(target->temp);
		if (asprintf(&target->temp, "%.*s.shstk-%d-%d.tmp", dir, target->final, getpid(),
			     n) < 0) {
			target->temp = NULL;
			return -ENOMEM;
		}
		fd = open(target->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0) {
		n = errno;
		free(target->temp);
		target->temp = NULL;
		return -n;
	}
	if (old)
		fchmod(fd, mode);
	return fd;
}

/*
 * Opens a device or a FIFO. A FIFO that nobody reads is an error: it is not waited for. Returns a
 * descriptor or a negative errno.
 */
static int open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/*
 * Returns the descriptor that a name such as /dev/stdout or /dev/fd/3 stands for; -1 for other
 * names.
 */
static int number_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	char *end;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		const char *digits = path + strlen(folders[i]);
		long n;

		if (strncmp(path, folders[i], strlen(folders[i])) || *digits < '0' || *digits > '9')
			continue;
		n = strtol(digits, &end, 10);
		return *end || n > INT_MAX ? -1 : n;
	}
	return -1;
}

/*
 * Duplicates a descriptor. So the file is written as it was opened, at its end if it was opened for
 * appending. Returns a descriptor or a negative errno.
 */
static int open_again(int number)
{
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Opens what @target is written to. Returns a descriptor or a negative errno. */
static int open_final(struct target *target)
{
	struct stat st;

	if (stat(target->final, &st)) {
		if (errno == ENOENT)
			return open_temp(target, NULL);
		return -errno;
	}
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISREG(st.st_mode)) {
		if (access(target->final, W_OK))
			return -errno;
		return open_temp(target, &st);
	}
	return open_special(target->final);
}

static void discard(struct target *target)
{
	if (target->out && target->out != stdout)
		fclose(target->out);
	if (target->temp)
		unlink(target->temp);
	free(target->temp);
	free(target->final);
}

static int open_target(struct target *target, const char *path)
{
	int fd;

	*target = (struct target){ .path = path };
	if (!strcmp(path, "-")) {
		target->out = stdout;
		return 0;
	}
	target->final = realpath(path, NULL);
	if (!target->final)
		target->final = strdup(path);
	if (!target->final)
		return -ENOMEM;
	fd = number_of(path) < 0 ? open_final(target) : open_again(number_of(path));
	if (fd < 0) {
		discard(target);
		return fd;
	}
	target->out = fdopen(fd, "w");
	if (!target->out) {
		close(fd);
		discard(target);
		return -ENOMEM;
	}
	return 0;
}

static int finish(struct target *target)
{
	FILE *out = target->out;
	int err = 0;

	target->out = NULL;
	if (out != stdout && fclose(out))
		err = -errno;
	if (!err && target->temp && rename(target->temp, target->final))
		err = -errno;
	if (!err) {
		free(target->temp);
		target->temp = NULL;
	}
	discard(target);
	return err;
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
			"cannot tell a format from the name '%s' (.pb.gz, .pb, .folded, .svg, .html, .speedscope.json, .perf, .txt, .json)",
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
	struct target target;
	int ret;

	if (!found)
		return -EINVAL;
	ret = open_target(&target, path);
	if (ret)
		return say(path, ret, err, err_size);
	ret = print(profile, target.out, found, opts);
	if (ret)
		discard(&target);
	else
		ret = finish(&target);
	return say(path, ret, err, err_size);
}

int shstk_profile_check(const char *path, const char *format, char *err, size_t err_size)
{
	struct target target;
	struct stat st;
	int ret;

	if (!choose(path, format, err, err_size))
		return -EINVAL;
	/* Opening and closing the FIFO would make its reader see the end of the data, and exit. */
	if (strcmp(path, "-") && !stat(path, &st) && S_ISFIFO(st.st_mode))
		return say(path, access(path, W_OK) ? -errno : 0, err, err_size);
	ret = open_target(&target, path);
	if (!ret)
		discard(&target);
	return say(path, ret, err, err_size);
}
