// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * running_files.c - finds the files whose code running processes execute.
 *
 * The kernel tells what a process has mapped under a lock of that process. Its threads may keep the
 * lock for as long as they like: for example while one waits for a page of a file that a program
 * serves and does not give. So a process of its own asks everything and hands over the files. If it
 * says nothing for a while it is killed, and another one continues behind the process at which it
 * was. Then the other processes of that user are skipped, because each of them would take as long.
 * The same happens when all processes of a user together have taken too long: a user may have any
 * number of processes that each take a little less than one may.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/rules/confine.h"
#include "tools/rules/mounts.h"
#include "tools/rules/running_files.h"
#include "tools/rules/subordinate.h"
#include "tools/shstk.h"

/*
 * How long the searching process may be silent, how long it may look at one process and at all processes
 * of a user other than root, and how long to wait for its end, in ms.
 */
#define SILENCE_MS 1000
#define PROCESS_MS 5000
#define USER_MS 30000
#define END_MS 100
/* What the caller takes counts for the process and for its user, too, after this many ns. */
#define SPARED 60000000000
#define SPARED_USER 120000000000
/* After this many skipped processes, whose users made it wait, the search ends. */
#define MAX_PASSED 16

struct seen_file {
	dev_t dev;
	ino_t ino;
};

/**
 * struct searched_user - a user whose processes are looked at
 * @uid: the user.
 * @took: ns for which the processes were looked at that were left.
 * @spared: ns that the caller took for files of all the user's processes.
 */
struct searched_user {
	uid_t uid;
	uint64_t took;
	uint64_t spared;
};

/**
 * struct file_search - the state of a search for files
 * @seen: files that were found already, a tree of struct seen_file.
 * @own: mounts that this process sees.
 * @mounts: mounts that the process at @at sees, in the mount namespace @space.
 * @space: mount namespace of @mounts.
 * @by_root: nobody but root of this process's user namespace can mount there.
 * @to: socket to which the searching process sends files.
 * @at: process that the searching process looks at.
 * @began: CLOCK_MONOTONIC in ns, when it began to, later by what the caller took meanwhile.
 * @spared: ns that the caller took for its files.
 * @uid: user for whom that process counts, see user_of(); 0: root, or not known yet.
 * @users: all users but root who were met, a tree of struct searched_user.
 * @after: processes with a number up to this one are skipped.
 * @addr: an address at which the process is to execute a file, or 0.
 * @passed: processes of these users are skipped; @nr_passed of them.
 * @nr_passed: number of elements of @passed.
 * @subordinate: ids that count as other users.
 */
struct file_search {
	void *seen;
	struct mounts own, mounts;
	ino_t space;
	bool by_root;
	int to;
	pid_t at;
	uint64_t began;
	uint64_t spared;
	uid_t uid;
	void *users;
	pid_t after;
	uint64_t addr;
	uid_t passed[MAX_PASSED];
	unsigned int nr_passed;
	const struct subordinate *subordinate;
};

/**
 * struct search_message - a message of the searching process: that it comes to a process or, with a
 * descriptor, that it has found a file of that process; the last message has @pid 0
 * @pid: the process; 0 at the end of the search.
 * @uid: user for whom the process counts; 0 until the second message about it.
 * @err: at the end of the search: 0 or a negative errno.
 * @path: name of the file.
 */
struct search_message {
	pid_t pid;
	uid_t uid;
	int err;
	char path[PATH_MAX];
};

static int compare(const void *a, const void *b)
{
	const struct seen_file *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* Returns whether a file is seen for the first time, and remembers it. */
static bool is_new(struct file_search *s, const struct stat *st)
{
	struct seen_file *seen = malloc(sizeof(*seen)), **found;

	if (!seen)
		return false;
	*seen = (struct seen_file){ st->st_dev, st->st_ino };
	found = tsearch(seen, &s->seen, compare);
	if (found && *found == seen)
		return true;
	free(seen);
	return false;
}

/* ---- Users ---- */

static int compare_users(const void *a, const void *b)
{
	const struct searched_user *x = a, *y = b;

	return x->uid < y->uid ? -1 : x->uid > y->uid;
}

/* Returns the user for whom the process at @s->at counts; NULL if that is root, or memory runs out. */
static struct searched_user *user_at(struct file_search *s)
{
	struct searched_user wanted = { .uid = s->uid }, *new, **found;

	if (!s->uid)
		return NULL;
	found = tfind(&wanted, &s->users, compare_users);
	if (found)
		return *found;
	new = malloc(sizeof(*new));
	if (!new)
		return NULL;
	*new = wanted;
	if (tsearch(new, &s->users, compare_users))
		return new;
	free(new);
	return NULL;
}

/* Counts for its user how long the process was looked at that is left now. */
static void leave_process(struct file_search *s)
{
	struct searched_user *user = user_at(s);

	if (user)
		user->took += now_ns(CLOCK_MONOTONIC) - s->began;
}

/* ---- Messages of the searching process ---- */

union rights {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Sends the message @f with the descriptor @fd; -1 means no descriptor. */
static void tell(int to, struct search_message *f, int fd)
{
	struct iovec v = { .iov_base = f, .iov_len = sizeof(*f) - PATH_MAX + strlen(f->path) + 1 };
	union rights c = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&c.header), &fd, sizeof(fd));
		h.msg_control = &c;
		h.msg_controllen = sizeof(c);
	}
	if (sendmsg(to, &h, MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* Returns how many ms of @most are left when @ns have passed. */
static int left_of(uint64_t most, uint64_t ns)
{
	return ns / 1000000 < most ? (int)(most - ns / 1000000) : 0;
}

/* Returns for how many ms the next message of the searching process is waited for. */
static int patience(struct file_search *s)
{
	const uint64_t looked = now_ns(CLOCK_MONOTONIC) - s->began;
	const struct searched_user *user = user_at(s);
	const int process = left_of(PROCESS_MS, looked);
	const int all = user ? left_of(USER_MS, looked + user->took) : PROCESS_MS;
	const int left = process < all ? process : all;

	return left < SILENCE_MS ? left : SILENCE_MS;
}

/*
 * Receives a message into @f, for which it waits @ms. *@fd receives the descriptor of the file, or -1.
 * Returns 0 or a negative errno.
 */
static int hear(int from, int stop, int ms, struct search_message *f, int *fd)
{
	struct pollfd p[] = {
		{ .fd = from, .events = POLLIN },
		{ .fd = stop, .events = POLLIN },
	};
	struct iovec v = { .iov_base = f, .iov_len = sizeof(*f) };
	union rights c;
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	int n = ms ? poll(p, 2, ms) : 0;

	*fd = -1;
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (!n)
		return -ETIMEDOUT;
	if (p[1].revents)
		return -ECANCELED;
	memset(f, 0, sizeof(*f));
	/*
	 * If the process ended without a message, @f stays zeroed, which is the message for the
	 * end.
	 */
	if (recvmsg(from, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return 0;
	f->path[sizeof(f->path) - 1] = '\0';
	if (CMSG_FIRSTHDR(&h))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(*fd));
	return 0;
}

/* ---- In the searching process ---- */

/* Returns the number of a namespace of the process, or 0. */
static ino_t namespace_of(pid_t pid, const char *kind)
{
	struct stat st;
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	else
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Returns whether the process's mount namespace belongs to this process's user namespace. */
static bool is_by_root(pid_t pid)
{
	char path[64];
	int space, owner;
	struct stat st;
	bool ret;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	space = open(path, O_RDONLY | O_CLOEXEC);
	owner = space < 0 ? -1 : ioctl(space, NS_GET_USERNS);
	ret = owner >= 0 && !fstat(owner, &st) && st.st_ino == namespace_of(0, "user");
	if (owner >= 0)
		close(owner);
	if (space >= 0)
		close(space);
	return ret;
}

/*
 * Reads the mounts that the process sees, unless its mount namespace is that of the process before. Who
 * is in a namespace of an ordinary user's cannot enter one of root's meanwhile.
 */
static void read_mounts(struct file_search *s, pid_t pid)
{
	const ino_t space = namespace_of(pid, "mnt");

	if (space && space == s->space)
		return;
	free(s->mounts.v);
	s->by_root = is_by_root(pid);
	mounts_read(pid, &s->mounts);
	/* The process may have ended, and another one have got its number. */
	s->by_root &= namespace_of(pid, "mnt") == space;
	s->space = space;
}

/*
 * Returns whether those who ask a file system about a file do not wait forever. An overlay may lie over
 * FUSE if an ordinary user mounted it, in a namespace of the user's. @by_root: it is mounted where only
 * root can mount.
 */
static bool may_ask(const struct file_search *s, const struct mount *mount, bool by_root)
{
	const struct mount *own;

	if (!mount->stacked || by_root)
		return !mount->fuse;
	own = mounts_find(&s->own, mount->dev);
	return own && own->stacked;
}

/*
 * Returns whether asking about the mapped file cannot block. FUSE might never answer, nor a file
 * system that was unmounted and may have been FUSE. A process with another root directory does not
 * see the mount on which the file lies, so our own mounts are searched, too.
 */
static bool answers(const struct file_search *s, const struct mapping *m)
{
	const struct mount *mount = mounts_find(&s->mounts, m->dev);

	if (mount)
		return may_ask(s, mount, s->by_root);
	mount = mounts_find(&s->own, m->dev);
	return mount && may_ask(s, mount, true);
}

/*
 * Returns whether nobody can make those wait who ask about the open file, which may be of O_PATH. The
 * mount decides through which it was opened: a mapping of an overlay may tell the device of the file
 * below. Mounts may have changed, so they are read again; the number is that of no other mount as long
 * as the file is open.
 */
static bool is_safe(struct file_search *s, pid_t pid, int fd)
{
	const int id = mounts_id_of(fd);
	const struct mount *mount;

	if (id < 0)
		return false;
	s->space = 0;
	read_mounts(s, pid);
	free(s->own.v);
	mounts_read(0, &s->own);
	mount = mounts_find_id(&s->mounts, id);
	if (mount)
		return may_ask(s, mount, s->by_root);
	mount = mounts_find_id(&s->own, id);
	return mount && may_ask(s, mount, true);
}

/* Opens the file @name, a link in /proc/PID/map_files, if that cannot take forever. Returns it or -1. */
static int open_link(struct file_search *s, pid_t pid, const char *name)
{
	const int place = open(name, O_PATH | O_CLOEXEC);
	int fd;

	if (place < 0)
		return -1;
	fd = is_safe(s, pid, place) ? regular_reopen(place) : -1;
	close(place);
	return fd;
}

/* Opens the file by its name, as the process sees it. Returns it or -1. */
static int open_name(struct file_search *s, pid_t pid, const char *path)
{
	struct stat st;
	int fd = regular_open_of(pid, path);

	if (fd < 0)
		return -1;
	if (is_safe(s, pid, fd) && !fstat(fd, &st) && is_new(s, &st))
		return fd;
	close(fd);
	return -1;
}

/*
 * Opens a mapped file. The link in /proc/PID/map_files leads to the file itself, whatever the root
 * directory of the process is. Unlike the addresses in maps, those in the link's name have no
 * leading zeros. Who may not follow it (CAP_CHECKPOINT_RESTORE) opens the file by its name.
 */
static void use_mapping(struct file_search *s, pid_t pid, const struct mapping *m)
{
	struct search_message f = { .pid = s->at, .uid = s->uid };
	char name[128];
	struct stat st;
	bool by_link;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		 m->end);
	by_link = !stat(name, &st);
	if (by_link && (!S_ISREG(st.st_mode) || !is_new(s, &st)))
		return;
	fd = by_link ? open_link(s, pid, name) : open_name(s, pid, m->path);
	if (fd < 0)
		return;
	snprintf(f.path, sizeof(f.path), "%s", m->path);
	tell(s->to, &f, fd);
	close(fd);
}

/* Returns the user who started the process, whatever rights it has and shows now. */
static uid_t started_by(pid_t pid)
{
	char path[64], line[256];
	unsigned int uid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f) && sscanf(line, "Uid: %u", &uid) != 1)
		;
	fclose(f);
	return uid;
}

/*
 * Returns the user who created the outermost user namespace below this process's own in which another
 * process is; 0 if that is root, or there is none. Namespaces can be nested 32 deep.
 */
static uid_t namespace_owner(pid_t pid)
{
	const ino_t own = namespace_of(0, "user");
	uid_t ret = 0, owner;
	struct stat st;
	char path[64];
	int at, up;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	at = open(path, O_RDONLY | O_CLOEXEC);
	while (at >= 0) {
		if (fstat(at, &st) || st.st_ino == own || ioctl(at, NS_GET_OWNER_UID, &owner))
			break;
		ret = owner;
		up = ioctl(at, NS_GET_PARENT);
		close(at);
		at = up;
	}
	if (at >= 0)
		close(at);
	return ret;
}

/*
 * Returns the user for whom the process counts. All subordinate ids of a user namespace count as the user
 * who created it, unless that was root; so they do outside of it, as far as @known says whose they are.
 */
static uid_t user_of(pid_t pid, const struct subordinate *known)
{
	const uid_t owner = namespace_owner(pid);

	return subordinate_user(known, owner ? owner : started_by(pid));
}

/* Returns whether a file is executed at an address, as far as one mapping tells. */
static bool is_executed_at(const struct mapping *m, uint64_t addr)
{
	return m->exec && m->inode && m->start <= addr && addr < m->end;
}

/* Sends the files of one process. Returns 0 or a negative errno. */
static int search_process(struct file_search *s, pid_t pid)
{
	struct search_message f = { .pid = pid };
	bool there = !s->addr;
	struct mapping m;
	struct maps maps;
	int err;

	/* From now on, whatever the search waits for belongs to this process. */
	tell(s->to, &f, -1);
	s->at = pid;
	s->uid = f.uid = user_of(pid, s->subordinate);
	for (unsigned int i = 0; i < s->nr_passed; i++)
		if (s->passed[i] == s->uid)
			return 0;
	tell(s->to, &f, -1);
	err = maps_open(pid, "maps", &maps);
	if (err)
		return err;
	read_mounts(s, pid);
	while (maps_next(&maps, &m)) {
		there |= is_executed_at(&m, s->addr);
		if (m.exec && *m.path == '/' && answers(s, &m))
			use_mapping(s, pid, &m);
	}
	maps_close(&maps);
	return there ? 0 : -ENXIO;
}

/* Sends the files of all processes behind @s->after. Returns 0 or a negative errno. */
static int search_all(struct file_search *s)
{
	DIR *dir = tasks_open(0);
	pid_t pid;

	if (!dir)
		return -errno;
	/* The kernel lists the processes in the order of their numbers. */
	while ((pid = tasks_next(dir)))
		if (pid > s->after)
			search_process(s, pid);
	closedir(dir);
	return 0;
}

/* Is the searching process: sends the files of @pid, or of all processes if it is 0. */
static void search(struct file_search *s, pid_t pid)
{
	struct search_message end = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may outlive its parent, of which nothing is to stay open or locked then. */
	sandbox_close_others(&s->to, 1);
	mounts_read(0, &s->own);
	end.err = pid ? search_process(s, pid) : search_all(s);
	tell(s->to, &end, -1);
	_exit(0);
}

/* ---- Outside of the searching process ---- */

/*
 * Kills a child. A process that waits in the kernel may not end at once; it is not waited for
 * longer than END_MS. Returns whether it has ended.
 */
static bool end(pid_t child)
{
	kill(child, SIGKILL);
	for (int i = 0; i < END_MS; i++) {
		if (waitpid(child, NULL, WNOHANG))
			return true;
		usleep(1000);
	}
	return false;
}

/*
 * Starts the searching process. *@from receives the socket for its messages. Returns -1 on failure.
 */
static pid_t start(struct file_search *s, pid_t pid, int *from)
{
	int both[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both))
		return -1;
	child = fork();
	if (!child) {
		close(both[0]);
		s->to = both[1];
		search(s, pid);
	}
	close(both[1]);
	*from = both[0];
	if (child < 0)
		close(*from);
	return child;
}

/*
 * What the caller took for a file is no time for which the process was looked at, unless the process or
 * its user has so many files that others would wait for them.
 */
static void spare(struct file_search *s, uint64_t took)
{
	struct searched_user *user = user_at(s);

	if (s->spared < SPARED && (!user || user->spared < SPARED_USER))
		s->began += took;
	s->spared += took;
	if (user)
		user->spared += took;
}

/*
 * Gives a file that was handed over to the caller. The next searching process also knows it as
 * seen.
 */
static void use_file(struct file_search *s, const struct running *r, int fd, const char *path)
{
	const uint64_t began = now_ns(CLOCK_MONOTONIC);
	struct stat st;

	if (fstat(fd, &st) || !is_new(s, &st))
		close(fd);
	else
		r->use(r->arg, fd, path);
	spare(s, now_ns(CLOCK_MONOTONIC) - began);
}

/*
 * Receives what the searching process sends. Returns 0 or a negative errno; -ETIMEDOUT if it waits
 * for the process @s->at.
 */
static int listen_to(struct file_search *s, const struct running *r, int from)
{
	struct search_message f;
	int err, fd;

	for (;;) {
		err = hear(from, r->stop, patience(s), &f, &fd);
		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		if (!f.pid)
			return f.err;
		if (s->at != f.pid) {
			leave_process(s);
			s->began = now_ns(CLOCK_MONOTONIC);
			s->spared = 0;
		}
		s->at = f.pid;
		s->uid = f.uid;
		if (fd >= 0)
			use_file(s, r, fd, f.path);
	}
}

/*
 * Runs one searching process. Returns 0 or a negative errno; -ETIMEDOUT if it was silent too long.
 */
static int search_once(struct file_search *s, const struct running *r)
{
	int from, err;
	pid_t child = start(s, r->pid, &from);
	bool ended;

	if (child < 0)
		return -errno;
	s->at = 0;
	s->uid = 0;
	s->began = now_ns(CLOCK_MONOTONIC);
	s->spared = 0;
	err = listen_to(s, r, from);
	close(from);
	ended = end(child);
	if (r->stuck)
		*r->stuck = ended ? 0 : child;
	return err;
}

/*
 * Prepares the search to continue behind the process that it waits for. Returns whether it should.
 */
static bool pass_over(struct file_search *s)
{
	if (s->nr_passed == MAX_PASSED)
		return false;
	s->after = s->at;
	/* The other processes of root are still looked at. */
	s->passed[s->nr_passed++] = s->uid ? s->uid : (uid_t)-1;
	return true;
}

static void forget(struct file_search *s)
{
	while (s->seen) {
		struct seen_file *seen = *(struct seen_file **)s->seen;

		tdelete(seen, &s->seen, compare);
		free(seen);
	}
	while (s->users) {
		struct searched_user *user = *(struct searched_user **)s->users;

		tdelete(user, &s->users, compare_users);
		free(user);
	}
}

int running_files(const struct running *r)
{
	struct file_search s = { .addr = r->addr, .subordinate = r->subordinate };
	int err;

	do
		err = search_once(&s, r);
	while (err == -ETIMEDOUT && !r->pid && pass_over(&s));
	forget(&s);
	return err;
}
