// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * asked_test.c - tests how requests for tables are served: which are forgotten, so that the next process
 * asks again, which files count as those that were asked for, and whose turn it is.
 *
 * The server of tables runs in a child process, with stand-ins for the maps of the BPF program. The
 * files are copies of the vDSO, which this program has mapped. Prints KTAP.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/own_mounts.h"
#include "tools/bpf/serve_tables.h"
#include "tools/rules/device.h"

#define RING 8192 /* bytes of the ring buffer */
#define LIMIT 100000 /* ms until the server has served all */
#define TRIES 20
#define FILES 24

/* Users. The server believes what the record of a request says. */
enum { USER = 1000, OTHER, ATTACKER, VICTIM };

/* Stand-ins for descriptors of maps. */
enum { TABLES = 1000, KNOWN, CONFIG };

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

static void skip(const char *name, const char *why)
{
	printf("ok %u %s # SKIP %s\n", ++number, name, why);
}

/**
 * struct shared - what the server and this test share
 * @served: the state of the server.
 * @full: there is no memory for another table.
 * @waiting: pieces of work that wait.
 * @forgotten: requests that were forgotten.
 * @made: inode numbers of the files that got a table, in that order.
 * @nr_made: number of elements of @made.
 */
struct shared {
	struct served served;
	bool full;
	unsigned int waiting;
	unsigned int forgotten;
	uint64_t made[FILES];
	unsigned int nr_made;
};

static struct shared *shared;

/* ---- The maps ---- */

static int forget(int fd, const void *key)
{
	(void)fd, (void)key;
	shared->forgotten++;
	return 0;
}

/* No other file of a process is taken. Notes the files that get a table. */
static int update(int fd, const void *key, const void *value, __u64 flags)
{
	const struct walk_file *file = key;

	if (flags == BPF_NOEXIST)
		return -1;
	if (fd == KNOWN && *(const __u32 *)value && shared->nr_made < FILES)
		shared->made[shared->nr_made++] = file->ino;
	return 0;
}

static int create(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 entries,
		  const struct bpf_map_create_opts *opts)
{
	int fd;

	(void)type, (void)key, (void)opts;
	if (shared->full) {
		errno = ENOMEM;
		return -1;
	}
	fd = memfd_create(name, MFD_CLOEXEC);
	return fd >= 0 && !ftruncate(fd, (off_t)value * entries) ? fd : -1;
}

static void *share(size_t size)
{
	void *ret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (ret == MAP_FAILED)
		exit(1);
	return ret;
}

/* Puts @nr requests into a new ring buffer. */
static struct ring make_ring(const struct walk_asked *asked, int nr)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	uint64_t *consumed = share(page), *produced = share(page + 2 * RING);
	uint8_t *record = (uint8_t *)produced + page;
	const uint32_t size = sizeof(*asked);

	for (int i = 0; i < nr; i++) {
		memcpy(record + *produced, &size, sizeof(size));
		memcpy(record + *produced + BPF_RINGBUF_HDR_SZ, &asked[i], size);
		*produced += BPF_RINGBUF_HDR_SZ + size;
	}
	return (struct ring){ consumed, produced, RING };
}

/* ---- The server ---- */

static void restart(void)
{
	memset(shared, 0, sizeof(*shared));
}

static bool begets; /* the server begins with a child that waits because of the first user */

static void beget(struct served *s)
{
	const pid_t server = getpid(), child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The server may have been killed before that. */
		while (getppid() == server)
			pause();
		_exit(0);
	}
	s->users[0].stuck = child;
}

static const char *subuid; /* what the server has as /etc/subuid, unless NULL */

/* Has the server hear requests and serve them, with what it knew before. Returns whether it did. */
static bool serve(const struct walk_asked *asked, int nr)
{
	static const struct libbpf lib = { .map_delete_elem = forget,
					   .map_update_elem = update,
					   .map_create = create };
	struct ring ring = make_ring(asked, nr);
	struct served *s = &shared->served;
	bool done = false;
	int ready[2];
	pid_t server;

	if (pipe(ready) || write(ready[1], "", 1) != 1)
		exit(1);
	s->lib = &lib, s->asked = ready[0], s->ring = ring, s->cache = -1, s->stop = -1;
	s->tables = TABLES, s->files = KNOWN, s->config = CONFIG;
	s->next += !s->next;
	s->nr_waiting = &shared->waiting;
	/* The list was in the memory of the server that was before. */
	s->subordinate = (struct subordinate){ 0 };
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (begets)
			beget(s);
		if (!subuid || own_file(subuid, "/etc/subuid"))
			serve_asked(s);
		_exit(1);
	}
	for (int i = 0; i < LIMIT && !done; i++) {
		done = __atomic_load_n(ring.consumed, __ATOMIC_ACQUIRE) == *ring.produced &&
		       !__atomic_load_n(&shared->waiting, __ATOMIC_ACQUIRE);
		usleep(done ? 0 : 1000);
	}
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	ring_unmap(&ring);
	return done;
}

/*
 * Has a new server serve one request. Returns whether it did. On a busy machine the server may find no
 * time to look, for which it makes the user wait.
 */
static bool ask(const struct walk_asked *asked)
{
	bool served = false;

	for (int i = 0; i < TRIES && !served; i++) {
		restart();
		served = serve(asked, 1) && !shared->served.users[0].again;
	}
	return served;
}

/* ---- Files ---- */

/**
 * struct file - a file that this process executes
 * @asked: a request for it.
 * @at: where it is mapped.
 */
struct file {
	struct walk_asked asked;
	void *at;
};

static char folder[PATH_MAX];

/* Returns whether the file is mapped now. */
static bool map_file(int fd, struct file *ret)
{
	struct rules_file vdso;
	struct stat st;

	if (rules_file_vdso(&vdso) || write(fd, vdso.data, vdso.size) != (ssize_t)vdso.size ||
	    fstat(fd, &st))
		return false;
	ret->at = mmap(NULL, vdso.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ret->asked = (struct walk_asked){
		.file = { .ino = st.st_ino,
			  .sec = st.st_ctim.tv_sec,
			  .nsec = st.st_ctim.tv_nsec,
			  .dev = major(st.st_dev) << 20 | minor(st.st_dev) },
		.addr = (uintptr_t)ret->at,
		.pid = getpid(),
		.uid = USER,
	};
	return ret->at != MAP_FAILED;
}

/* Makes a file and maps it. Returns false if that is impossible here. */
static bool make_file(int i, struct file *ret)
{
	char path[PATH_MAX + 32];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "%s/file-%d", folder, i);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	good = fd >= 0 && map_file(fd, ret);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Sets the name of a file that HotSpot's library would have. */
static void set_jit_name(char path[PATH_MAX + 32])
{
	snprintf(path, PATH_MAX + 32, "%s/libjvm.so", folder);
}

static void remove_files(void)
{
	char path[PATH_MAX + 32];

	set_jit_name(path);
	unlink(path);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/file-%d", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

/* ---- Requests that are forgotten ---- */

/* A request for a file that no process has, as if it were executed at the address. */
static struct walk_asked request(pid_t pid, const void *addr, uid_t uid)
{
	return (struct walk_asked){
		.file = { .ino = 1, .sec = 1 }, .addr = (uintptr_t)addr, .pid = pid, .uid = uid
	};
}

static void test_forgotten(const void *code)
{
	struct walk_asked of = request(getpid(), code, USER);
	const struct served *s = &shared->served;
	pid_t ended = fork();

	if (!ended)
		_exit(0);
	waitpid(ended, NULL, 0);
	verdict(ask(&of) && shared->forgotten == 1 && !s->known && s->users[0].next_refused == 1,
		"a file in whose place there is another one can be asked for again");
	verdict(serve(&of, 1) && shared->forgotten == 2 && s->users[0].next_refused == 1,
		"by the same user in vain for a while");
	of.uid = OTHER;
	verdict(serve(&of, 1) && shared->forgotten == 3 &&
			(s->users[1].next_refused == 1 || s->users[1].again),
		"by another user at once");
	of = request(getpid(), shared, USER);
	verdict(ask(&of) && shared->forgotten == 1 && !s->known && !s->users[0].next_refused,
		"one of a process that executes nothing there any more is forgotten");
	of = request(ended, code, USER);
	verdict(ask(&of) && shared->forgotten == 1 && !s->known && !s->users[0].next_refused,
		"and so is one of a process that has ended");
}

/* ---- Tables that cannot be made now ---- */

/* Has a new server ask for the file while there is no memory for its table. Returns whether it did. */
static bool ask_in_vain(const struct walk_asked *asked)
{
	bool served = false;

	for (int i = 0; i < TRIES && !served; i++) {
		restart();
		shared->full = true;
		served = serve(asked, 1) && shared->served.tries.files[0].nr;
	}
	shared->full = false;
	return served;
}

static void test_tries(const struct file *file)
{
	struct served *s = &shared->served;
	struct tried *tried = s->tries.files;
	/* Something to hear while the time is over. */
	const struct walk_asked other = request(getpid(), shared, OTHER);

	verdict(ask_in_vain(&file->asked) && !shared->forgotten && s->known == 1 &&
			!s->users[0].again,
		"a file whose table has no room now is left alone, and its user is not");
	tried->user = &s->users[0];
	tried->again = 1;
	verdict(serve(&other, 1) && shared->forgotten == 2 && !s->known && !s->users[0].files,
		"until its time is over: then it is forgotten, and counts for nobody");
	verdict(serve(&file->asked, 1) && shared->nr_made == 1 && !tried->nr && s->known == 1,
		"and gets its table when it is asked for again");
}

static void test_too_many(const struct file *file)
{
	const struct served *s = &shared->served;
	bool served = false;

	for (int i = 0; i < TRIES && !served; i++) {
		restart();
		shared->served.most_bytes = 1;
		served = serve(&file->asked, 1) && shared->forgotten == 1 && s->nr_users;
	}
	verdict(served && s->users[0].again && !s->known && !s->users[0].files,
		"a file that is one too many of its user's counts for nobody");
}

/* ---- A child that waits in the kernel ---- */

static void test_stuck(const void *code)
{
	const struct walk_asked of = request(getpid(), code, USER);
	struct served_user *user = shared->served.users;
	const struct turn waits = {
		.kind = TURNS_OPEN, .asked = of, .fd = -1, .user = &user->turns
	};
	bool kept;

	restart();
	serve_user(&shared->served, USER);
	/* One request waits already, and another one comes. */
	shared->waiting = turns_add(&shared->served.turns, &waits);
	begets = true;
	kept = serve(&of, 1) && shared->forgotten == 2 && !user->next_refused;
	begets = false;
	verdict(kept, "nobody looks at processes of who makes a child wait");
	/* The child has ended with that server. */
	verdict(serve(&of, 1) && !user->stuck && (user->next_refused == 1 || user->again),
		"until that has ended");
}

/* ---- Which file it is ---- */

static bool shows_devices(void)
{
	struct statfs fs;

	return !statfs(folder, &fs) && (unsigned long)fs.f_type != OVERLAYFS_SUPER_MAGIC &&
	       (unsigned long)fs.f_type != BTRFS_SUPER_MAGIC;
}

static void test_identity(const struct file *file)
{
	const char *device = "one with the same inode number and time on another device is not";
	struct walk_asked of = file->asked;

	verdict(ask(&of) && !shared->forgotten && shared->nr_made == 1 &&
			shared->made[0] == of.file.ino,
		"a file that is where it was said to be gets its table");
	of.file.dev ^= 1;
	if (shows_devices())
		verdict(ask(&of) && shared->forgotten == 1 && !shared->nr_made, device);
	else
		skip(device, "this file system shows files with devices of its own");
	of = file->asked;
	of.file.nsec ^= 1;
	verdict(ask(&of) && shared->forgotten == 1 && !shared->nr_made,
		"nor is one that was changed at another time");
}

/* ---- A file with another name ---- */

/*
 * In a child process: maps the file @path in a namespace of its own, in which it is mounted as HotSpot's
 * library. Returns where; NULL if that is not permitted.
 */
static void *map_as_jit(const char *path)
{
	char name[PATH_MAX + 32];
	void *at;
	int fd;

	set_jit_name(name);
	close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || mount(path, name, NULL, MS_BIND, NULL))
		return NULL;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	at = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* Begins a process that does so. Returns its number; *@at receives where the file is mapped, or NULL. */
static pid_t begin_as_jit(const char *path, void **at)
{
	int told[2];
	pid_t ret;

	*at = NULL;
	if (pipe(told))
		exit(1);
	ret = fork();
	if (!ret) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*at = map_as_jit(path);
		if (write(told[1], at, sizeof(*at)) != sizeof(*at))
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	if (ret < 0)
		exit(1);
	/* It has ended if not even the attempt is permitted. */
	if (read(told[0], at, sizeof(*at)) != sizeof(*at))
		*at = NULL;
	close(told[0]);
	return ret;
}

static void test_name(const struct file *file)
{
	const char *fact = "one that its user has mounted as HotSpot's library gets its table, too";
	struct walk_asked of = file->asked;
	char path[PATH_MAX + 32];
	pid_t child;
	void *at;

	snprintf(path, sizeof(path), "%s/file-0", folder);
	child = begin_as_jit(path, &at);
	of.pid = child;
	of.addr = (uintptr_t)at;
	if (at)
		verdict(ask(&of) && !shared->forgotten && shared->nr_made == 1, fact);
	else
		skip(fact, "a user cannot mount a file here");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ---- Whose turn it is ---- */

/* One user asks for all files but the last, and then another user asks for that one. */
static void test_turns(const struct file *files)
{
	struct walk_asked asked[FILES];
	unsigned int place = 0;
	bool served = false;

	for (int i = 0; i < FILES; i++) {
		asked[i] = files[i].asked;
		asked[i].uid = i < FILES - 1 ? ATTACKER : VICTIM;
	}
	for (int i = 0; i < TRIES && !served; i++) {
		restart();
		served = serve(asked, FILES) && shared->nr_made == FILES;
	}
	while (place < shared->nr_made && shared->made[place] != asked[FILES - 1].file.ino)
		place++;
	printf("# the table of the other user's file is number %u of %u\n", place + 1,
	       shared->nr_made);
	verdict(served && place < FILES / 2,
		"a user with one file does not wait until all files of another user have their tables");
}

/* ---- Further ids ---- */

/* Returns whether a process can see this file as /etc/subuid. */
static bool can_see_as_subuid(const char *path)
{
	int status = 1;
	const pid_t child = fork();

	if (!child)
		_exit(!own_file(path, "/etc/subuid"));
	return waitpid(child, &status, 0) == child && !status;
}

/* Tests that the server reads who has which further ids. */
static void test_further_ids(const struct file *file)
{
	const char *fact = "a request by a further id of a user's is that user's";
	struct walk_asked asked = file->asked;
	char path[PATH_MAX + 32];
	FILE *f;

	snprintf(path, sizeof(path), "%s/subuid", folder);
	f = fopen(path, "w");
	if (!f)
		exit(1);
	fprintf(f, "%d:200000:65536\n", OTHER);
	fclose(f);
	if (can_see_as_subuid(path)) {
		asked.uid = 200001;
		subuid = path;
		verdict(ask(&asked) && shared->served.nr_users == 1 &&
				shared->served.users[0].uid == OTHER,
			fact);
		subuid = NULL;
	} else {
		skip(fact, "there is no /etc/subuid, or nothing can be mounted here");
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	static struct file files[FILES];
	char own[PATH_MAX];
	bool mapped = true;

	(void)argc;
	snprintf(own, sizeof(own), "%s", argv[0]);
	snprintf(folder, sizeof(folder), "%s/asked-XXXXXX", dirname(own));
	puts("KTAP version 1");
	if (!mkdtemp(folder)) {
		puts("1..0 # SKIP no folder can be made beside this program");
		return 4;
	}
	for (int i = 0; i < FILES; i++)
		mapped &= make_file(i, &files[i]);
	if (!mapped) {
		remove_files();
		puts("1..0 # SKIP files beside this program cannot be executed");
		return 4;
	}
	puts("1..17");
	fflush(stdout);
	shared = share(sizeof(*shared));
	test_forgotten(main);
	test_tries(&files[0]);
	test_too_many(&files[0]);
	test_stuck(main);
	test_identity(&files[0]);
	test_name(&files[0]);
	test_turns(files);
	test_further_ids(&files[0]);
	remove_files();
	return !!failed;
}
