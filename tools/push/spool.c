// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spool.c - a folder with requests that wait to be sent, as spool.h describes.
 *
 * The file of a request begins with a head of one line,
 *
 *   shstk-request 1 QUERY-BYTES BODY-BYTES CRC32
 *
 * in which the checksum is that of all bytes behind the line: the query, then the body.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/push/push.h"
#include "tools/push/spool.h"
#include "tools/whole_io.h"

#define SUFFIX ".request"
#define HEAD "shstk-request 1 %08zx %08zx %08lx\n"
#define HEAD_SIZE 43 /* bytes of the head */
#define COUNTS "counts"
#define COUNTS_SIZE 1024 /* bytes of the file with counts at most */
#define COUNTS_SUM "sum " /* begins its last line, with the checksum of those before it */
#define COUNTS_TRIES 20 /* how often it is read before its lock is waited for */
#define SETTLED_NS \
	3000000000 /* a folder that did not change for so long has another time when it does */
#define SENDING ".sending" /* locked by the process that sends */
#define PUTTING ".putting" /* locked by the process that puts or counts */
#define UNFINISHED ".new-" /* begins the names of files that are being written */
#define UNFINISHED_AGE 3600 /* seconds after which nobody writes to such a file any more */

const char *const spool_count_names[SPOOL_COUNTS] = {
	[SPOOL_PUT] = "put",
	[SPOOL_SENT] = "sent",
	[SPOOL_SENT_BYTES] = "sent_bytes",
	[SPOOL_RETRIES] = "retries",
	[SPOOL_REJECTED] = "rejected",
	[SPOOL_FULL] = "dropped_full",
	[SPOOL_OLD] = "dropped_old",
	[SPOOL_REFUSED] = "dropped_refused",
	[SPOOL_DAMAGED] = "dropped_damaged",
};

/* ---- The folder ---- */

char *spool_default(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *ret = NULL;
	int n;

	if (!geteuid())
		return strdup("/var/lib/shstk/spool");
	if (state && *state == '/')
		n = asprintf(&ret, "%s/shstk/spool", state);
	else if (home && *home == '/')
		n = asprintf(&ret, "%s/.local/state/shstk/spool", home);
	else
		return NULL;
	return n < 0 ? NULL : ret;
}

/* Makes a folder and those that it lies in. What is there already stays as it is. */
static void make_folders(const char *path)
{
	char *copy = strdup(path);

	for (char *slash = copy; slash && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(copy, 0700);
		*slash = '/';
	}
	if (copy)
		mkdir(copy, 0700);
	free(copy);
}

/* Opens a folder that must be the user's and nobody else's. */
static int open_folder(int at, const char *path, const char *shown, struct reason *why)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = errno;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	if (fd < 0) {
		because(why, "cannot open the folder '%s': %s", shown, strerror(err));
		return -err;
	}
	because(why, "the folder '%s' is not only yours: chown and chmod 700 it, or give another",
		shown);
	close(fd);
	return -EPERM;
}

int spool_open(struct spool *spool, const char *base, const char *name, struct reason *why)
{
	int outer;

	*spool = (struct spool){ .dir = -1 };
	because(why, "out of memory");
	if (asprintf(&spool->path, "%s/%s", base, name) < 0)
		return -ENOMEM;
	make_folders(base);
	outer = open_folder(AT_FDCWD, base, base, why);
	if (outer >= 0) {
		mkdirat(outer, name, 0700);
		spool->dir = open_folder(outer, name, spool->path, why);
		close(outer);
	}
	if (spool->dir >= 0) {
		spool_add(spool, SPOOL_PUT, 0);
		return 0;
	}
	free(spool->path);
	return outer < 0 ? outer : spool->dir;
}

void spool_close(struct spool *spool)
{
	close(spool->dir);
	free(spool->path);
}

/* Opens a file of the folder for its lock, and waits for it unless @how has LOCK_NB. */
static int lock_file(const struct spool *spool, const char *name, int how)
{
	int fd = openat(spool->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return -errno;
	while (flock(fd, how)) {
		if (errno == EINTR)
			continue;
		err = errno == EWOULDBLOCK ? EAGAIN : errno;
		close(fd);
		return -err;
	}
	return fd;
}

int spool_lock(const struct spool *spool)
{
	return lock_file(spool, SENDING, LOCK_EX | LOCK_NB);
}

/* ---- Files ---- */

/* Reads so many bytes. Returns 0, -EBADMSG if the file ends before, or another negative errno. */
static int read_all(int fd, void *data, size_t size)
{
	ssize_t n = read_whole(fd, data, size);

	return n < 0 ? n : (size_t)n < size ? -EBADMSG : 0;
}

static uint64_t random_number(void)
{
	uint64_t ret;

	if (getrandom(&ret, sizeof(ret), 0) != sizeof(ret))
		ret = (uint64_t)time(NULL) << 32 | (uint64_t)getpid();
	return ret;
}

/* Begins a file that has another name until it is complete. Returns a descriptor. */
static int begin_file(const struct spool *spool, char name[SPOOL_NAME])
{
	int fd;

	snprintf(name, SPOOL_NAME, UNFINISHED "%016" PRIx64, random_number());
	fd = openat(spool->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/*
 * Closes a file once it is on the disk: otherwise a machine that loses power could keep the name that
 * it gets without the content. This may take long, so no lock is held meanwhile.
 */
static int end_file(int fd)
{
	int err = fdatasync(fd) ? -errno : 0;

	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* ---- Counts ---- */

/* Reads the file with counts. There is always a text; it is empty if there is no such file. */
static void read_text(const struct spool *spool, char text[COUNTS_SIZE])
{
	int fd = openat(spool->dir, COUNTS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, COUNTS_SIZE - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}

static unsigned long sum_of(const char *text, size_t size)
{
	return crc32(0, (const Bytef *)text, size);
}

/*
 * Returns whether a text is one that was written at once, not parts of two. Older versions wrote no
 * checksum.
 */
static bool is_whole(const char *text)
{
	const char *sum = strstr(text, COUNTS_SUM);

	return !sum || strtoul(sum + strlen(COUNTS_SUM), NULL, 10) == sum_of(text, sum - text);
}

/* Reads counts up to the checksum: a file that was damaged may have more behind what was written last. */
static void parse_counts(char *text, uint64_t counts[SPOOL_COUNTS])
{
	char *line;

	memset(counts, 0, SPOOL_COUNTS * sizeof(*counts));
	for (char *next = text;
	     (line = strsep(&next, "\n")) && strncmp(line, COUNTS_SUM, strlen(COUNTS_SUM));)
		for (int i = 0; i < SPOOL_COUNTS; i++) {
			size_t len = strlen(spool_count_names[i]);

			if (!strncmp(line, spool_count_names[i], len) && line[len] == ' ')
				counts[i] = strtoull(line + len, NULL, 10);
		}
}

/*
 * Without the lock, a read may see a part of what is written at that moment. It is read again then,
 * and at last with the lock, because who writes may have lost its CPU.
 */
void spool_counts(const struct spool *spool, uint64_t counts[SPOOL_COUNTS])
{
	char text[COUNTS_SIZE];
	int lock;

	read_text(spool, text);
	for (int i = 0; i < COUNTS_TRIES && !is_whole(text); i++)
		read_text(spool, text);
	if (!is_whole(text)) {
		lock = lock_file(spool, PUTTING, LOCK_EX);
		read_text(spool, text);
		if (lock >= 0)
			close(lock);
	}
	parse_counts(text, counts);
}

/*
 * Adds to a count. The caller has the lock. The file is written in place and always has the same
 * size, so that counting works while the disk is full.
 */
static int add_locked(const struct spool *spool, enum spool_count count, uint64_t n)
{
	int fd = openat(spool->dir, COUNTS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t counts[SPOOL_COUNTS];
	char text[COUNTS_SIZE];
	size_t size = 0;
	int err;

	if (fd < 0)
		return -errno;
	read_text(spool, text);
	parse_counts(text, counts);
	counts[count] += n;
	for (int i = 0; i < SPOOL_COUNTS; i++)
		size += snprintf(text + size, sizeof(text) - size, "%s %020" PRIu64 "\n",
				 spool_count_names[i], counts[i]);
	size += snprintf(text + size, sizeof(text) - size, COUNTS_SUM "%020lu\n",
			 sum_of(text, size));
	err = write_whole(fd, text, size);
	close(fd);
	return err;
}

int spool_add(const struct spool *spool, enum spool_count count, uint64_t n)
{
	int lock = lock_file(spool, PUTTING, LOCK_EX), err;

	if (lock < 0)
		return lock;
	err = add_locked(spool, count, n);
	close(lock);
	return err;
}

/* ---- Requests ---- */

static bool is_request(const char *name)
{
	size_t len = strlen(name), end = strlen(SUFFIX);

	return *name != '.' && len < SPOOL_NAME && len > end && !strcmp(name + len - end, SUFFIX);
}

/* Calls a function for each file. */
static void each_file(const struct spool *spool,
		      void (*look)(const struct spool *spool, const char *name, void *arg),
		      void *arg)
{
	int fd = openat(spool->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		look(spool, entry->d_name, arg);
	closedir(dir);
}

static void look_waiting(const struct spool *spool, const char *name, void *arg)
{
	struct spool_waiting *sum = arg;
	struct stat st;

	if (!is_request(name) || fstatat(spool->dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	sum->nr++;
	sum->bytes += st.st_size;
}

struct spool_waiting spool_waiting(const struct spool *spool)
{
	struct spool_waiting ret = { 0 };

	each_file(spool, look_waiting, &ret);
	return ret;
}

/*
 * Returns whether a time is more than so many ns before @now. It may be any number: a file system has
 * what it was given.
 */
static bool is_earlier(const struct timespec *time, const struct timespec *now, int64_t ns)
{
	const int64_t bound = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec - ns;

	if (time->tv_sec != bound / 1000000000)
		return time->tv_sec < bound / 1000000000;
	return time->tv_nsec < bound % 1000000000;
}

/*
 * Any change of the folder gives it another time, but clocks of file systems are coarse: what changes
 * right after it was read may give it the same time again. So only a folder that was at rest before is
 * trusted.
 */
struct spool_waiting spool_waiting_again(const struct spool *spool, struct spool_seen *seen)
{
	struct timespec now;
	struct stat st;

	clock_gettime(CLOCK_REALTIME, &now);
	if (fstat(spool->dir, &st))
		return spool_waiting(spool);
	if (seen->settled && st.st_mtim.tv_sec == seen->changed.tv_sec &&
	    st.st_mtim.tv_nsec == seen->changed.tv_nsec)
		return seen->waiting;
	seen->settled = is_earlier(&st.st_mtim, &now, SETTLED_NS);
	seen->changed = st.st_mtim;
	seen->waiting = spool_waiting(spool);
	return seen->waiting;
}

static void look_oldest(const struct spool *spool, const char *name, void *arg)
{
	struct spool_names *oldest = arg;
	size_t at = oldest->nr;

	(void)spool;
	if (!is_request(name))
		return;
	while (at && strcmp(name, oldest->name[at - 1]) < 0)
		at--;
	if (at == SPOOL_NAMES)
		return;
	if (oldest->nr < SPOOL_NAMES)
		oldest->nr++;
	memmove(oldest->name[at + 1], oldest->name[at], (oldest->nr - at - 1) * SPOOL_NAME);
	strcpy(oldest->name[at], name);
}

/* The time is the first part of a name, in digits that sort as it does. */
void spool_oldest(const struct spool *spool, struct spool_names *ret)
{
	ret->nr = 0;
	each_file(spool, look_oldest, ret);
}

uint64_t spool_time(const char *name)
{
	return strtoull(name, NULL, 16);
}

int spool_remove(const struct spool *spool, const char *name)
{
	if (!unlinkat(spool->dir, name, 0) || errno == ENOENT)
		return 0;
	return errno == EISDIR && !unlinkat(spool->dir, name, AT_REMOVEDIR) ? 0 : -errno;
}

static void look_unfinished(const struct spool *spool, const char *name, void *arg)
{
	const time_t *before = arg;
	struct stat st;

	if (strncmp(name, UNFINISHED, strlen(UNFINISHED)) ||
	    fstatat(spool->dir, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_mtime > *before)
		return;
	unlinkat(spool->dir, name, 0);
}

void spool_tidy(const struct spool *spool)
{
	time_t before = time(NULL) - UNFINISHED_AGE;

	each_file(spool, look_unfinished, &before);
}

static int write_request(int fd, const struct spool_request *request)
{
	uLong crc = crc32(0, (const Bytef *)request->query, request->query_size);
	char head[HEAD_SIZE + 1];
	int err;

	crc = crc32(crc, request->body, request->size);
	snprintf(head, sizeof(head), HEAD, request->query_size, request->size, crc);
	err = write_whole(fd, head, HEAD_SIZE);
	if (!err)
		err = write_whole(fd, request->query, request->query_size);
	return err ? err : write_whole(fd, request->body, request->size);
}

/* Writes a request to a file that is not seen yet. */
static int write_file(const struct spool *spool, const struct spool_request *request,
		      char name[SPOOL_NAME])
{
	int fd, err, end;

	*name = '\0';
	if (request->query_size > SPOOL_HEAD || request->size > PUSH_MOST)
		return -EMSGSIZE;
	fd = begin_file(spool, name);
	if (fd < 0)
		return fd;
	err = write_request(fd, request);
	end = end_file(fd);
	return err ? err : end;
}

/* Lets a file be seen, if there is room for it. The caller has the lock. */
static int show_file(const struct spool *spool, const char *name, size_t size, uint64_t most)
{
	struct timespec now;
	char to[SPOOL_NAME];

	if (spool_waiting(spool).bytes + size > most)
		return -ENOSPC;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(to, sizeof(to), "%016" PRIx64 "-%016" PRIx64 SUFFIX,
		 (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec, random_number());
	return renameat(spool->dir, name, spool->dir, to) ? -errno : 0;
}

int spool_put(const struct spool *spool, const struct spool_request *request, uint64_t most)
{
	const size_t size = HEAD_SIZE + request->query_size + request->size;
	char name[SPOOL_NAME];
	int err = write_file(spool, request, name), lock = lock_file(spool, PUTTING, LOCK_EX);

	if (!err)
		err = lock < 0 ? lock : show_file(spool, name, size, most);
	if (err == -EDQUOT || err == -EFBIG)
		err = -ENOSPC;
	if (err && *name)
		unlinkat(spool->dir, name, 0);
	if (lock >= 0 && (!err || err == -ENOSPC))
		add_locked(spool, err ? SPOOL_FULL : SPOOL_PUT, 1);
	if (lock >= 0)
		close(lock);
	/* The name outlives a loss of power, too. */
	if (!err)
		fsync(spool->dir);
	return err;
}

/* Reads what is behind the head, and compares its checksum. */
static int take_rest(int fd, struct spool_request *to, uLong crc)
{
	uint8_t more;
	int err;

	to->query = malloc(to->query_size + to->size + 1);
	if (!to->query)
		return -ENOMEM;
	to->body = (uint8_t *)to->query + to->query_size;
	err = read_all(fd, to->query, to->query_size + to->size);
	if (!err && (read(fd, &more, 1) != 0 ||
		     crc32(0, (const Bytef *)to->query, to->query_size + to->size) != crc ||
		     (to->query_size && to->query[to->query_size - 1])))
		err = -EBADMSG;
	if (err)
		free(to->query);
	return err;
}

int spool_take(const struct spool *spool, const char *name, struct spool_request *ret)
{
	int fd = openat(spool->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char head[HEAD_SIZE + 1] = "";
	unsigned long crc;
	int err;

	*ret = (struct spool_request){ 0 };
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	err = read_all(fd, head, HEAD_SIZE);
	if (err == -EISDIR ||
	    (!err && (sscanf(head, HEAD, &ret->query_size, &ret->size, &crc) != 3 ||
		      ret->query_size > SPOOL_HEAD || ret->size > PUSH_MOST)))
		err = -EBADMSG;
	if (!err)
		err = take_rest(fd, ret, crc);
	close(fd);
	return err;
}
