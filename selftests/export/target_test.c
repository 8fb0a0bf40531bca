// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target_test.c - a file that is written further loses its name and gets another one, also on file
 * systems such as NFS, which cannot refuse to replace a file. Prints KTAP.
 *
 * Those are imitated by the function that the C library has for it, which is replaced here.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbol/target.h"

#define THEIRS "theirs\n"
#define FIRST "first\n"
#define SECOND "second\n"

static char folder[] = "/tmp/shstk-target-XXXXXX";
/* Renaming has no flags, as on NFS. */
static bool plain;
static unsigned int number;
static bool failed;

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	if (!plain || !flags)
		return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
	errno = EINVAL;
	return -1;
}

static void point(bool ok, const char *fact)
{
	printf("%sok %u %s: %s\n", ok ? "" : "not ", ++number,
	       plain ? "a file system like NFS" : "an ordinary file system", fact);
	failed |= !ok;
}

static const char *place(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int last;
	char *path = paths[last++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

/* The name that the file is first written under. */
static const char *hidden(void)
{
	char name[64];

	snprintf(name, sizeof(name), ".shstk-%d-0.tmp", getpid());
	return place(name);
}

static bool put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	return out && fputs(text, out) >= 0 && !fclose(out);
}

static bool has(const char *path, const char *text)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	return n >= 0 && !strcmp(buf, text);
}

static bool is_gone(const char *path)
{
	return access(path, F_OK) && errno == ENOENT;
}

static void check(void)
{
	struct shstk_target target;
	bool ok = !shstk_target_open(&target, place("a"));

	ok = ok && fputs(FIRST, target.out) >= 0 && !fflush(target.out) &&
	     !shstk_target_name(&target) && has(place("a"), FIRST) && put(hidden(), THEIRS);
	point(ok, "a file has its name while it is written");
	if (!ok)
		return;
	ok = !shstk_target_rename(&target, place("b"));
	point(ok && is_gone(place("a")) && is_gone(place("b")), "it loses its name");
	ok = fputs(SECOND, target.out) >= 0 && !shstk_target_finish(&target);
	point(ok && has(place("b"), FIRST SECOND) && is_gone(place("a")), "it gets another one");
	point(has(hidden(), THEIRS), "meanwhile it did not take the place of another file");
	unlink(hidden());
	unlink(place("a"));
	unlink(place("b"));
}

int main(void)
{
	puts("KTAP version 1\n1..9");
	if (!mkdtemp(folder))
		return 1;
	check();
	plain = true;
	check();
	point(!rmdir(folder), "no other file is left");
	return failed;
}
