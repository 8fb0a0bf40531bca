// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * root.c - files as another process sees them.
 *
 * A process in a container maps files of another file system tree. Its root folder is opened while
 * it lives; the descriptor keeps mount and folder, so that its files can also be opened after its
 * end. Links in that tree must be followed inside it, which openat2(2) does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regular.h"
#include "root.h"

/* Returns whether a thread has ended, or never had memory of its own. */
static bool has_ended(int pid)
{
	char path[64], to[1];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, to, sizeof(to)) < 0 && errno == ENOENT;
}

int shstk_living_thread(int pid)
{
	struct dirent *e;
	char path[64];
	int tid = 0;
	DIR *dir;

	if (!has_ended(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !tid && (e = readdir(dir)))
		if (atoi(e->d_name) > 0 && !has_ended(atoi(e->d_name)))
			tid = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return tid ? tid : pid;
}

static bool identify(int pid, struct shstk_root *id)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/root/.", pid);
	if (stat(path, &st))
		return false;
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st))
		return false;
	id->mnt_ns = st.st_ino;
	return true;
}

static bool same(const struct shstk_root *a, const struct shstk_root *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mnt_ns == b->mnt_ns;
}

static struct shstk_root *add(struct shstk_root **list, const struct shstk_root *id)
{
	struct shstk_root *root = malloc(sizeof(*root));

	if (!root)
		return NULL;
	*root = *id;
	root->next = *list;
	*list = root;
	return root;
}

static int pin(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static struct shstk_root *this_process_root(struct shstk_root **list)
{
	struct shstk_root id = { .fd = -1 };
	struct shstk_root *root;

	for (root = *list; root; root = root->next)
		if (root->fd < 0)
			return root;
	identify(getpid(), &id);
	return add(list, &id);
}

struct shstk_root *shstk_root_get(struct shstk_root **list, int pid)
{
	struct shstk_root *own = this_process_root(list), *root;
	struct shstk_root id;

	if (!own || pid <= 0)
		return own;
	pid = shstk_living_thread(pid);
	if (!identify(pid, &id))
		return own;
	for (root = *list; root; root = root->next)
		if (same(root, &id))
			return root;
	id.fd = pin(pid);
	if (id.fd < 0)
		return own;
	root = add(list, &id);
	if (!root)
		close(id.fd);
	return root;
}

void shstk_root_put_all(struct shstk_root **list)
{
	struct shstk_root *root, *next;

	for (root = *list; root; root = next) {
		next = root->next;
		if (root->fd >= 0)
			close(root->fd);
		free(root);
	}
	*list = NULL;
}

int shstk_root_open(const struct shstk_root *root, const char *path, int flags)
{
	return regular_open_below(root->fd, path, flags);
}
