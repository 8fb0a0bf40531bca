// SPDX-License-Identifier: GPL-2.0-or-later
/* counts_test.c - tests what is read of a spool while another process changes it. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/push/spool.h"
#include "kselftest_harness.h"

#define HALF 40 /* bytes of a file that is half written */
#define LATE_MS 300 /* for which a reader is given the chance to be wrong */

FIXTURE(spool)
{
	char base[64];
	struct spool spool;
};

FIXTURE_SETUP(spool)
{
	struct reason why;

	snprintf(self->base, sizeof(self->base), "/tmp/counts_test.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->base));
	ASSERT_EQ(0, spool_open(&self->spool, self->base, "one", &why));
}

FIXTURE_TEARDOWN(spool)
{
	char command[128];

	spool_close(&self->spool);
	snprintf(command, sizeof(command), "rm -rf '%s'", self->base);
	EXPECT_EQ(0, system(command));
}

static int put(const struct spool *spool, const char *body)
{
	const struct spool_request request = { .body = (uint8_t *)body, .size = strlen(body) };

	return spool_put(spool, &request, 1 << 20);
}

/* Reads the counts in another process. Returns it; @fd gets what it read. */
static pid_t read_beside(const struct spool *spool, int *fd)
{
	uint64_t counts[SPOOL_COUNTS];
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		spool_counts(spool, counts);
		_exit(write(ends[1], counts, sizeof(counts)) != sizeof(counts));
	}
	close(ends[1]);
	*fd = ends[0];
	return pid;
}

TEST_F(spool, counts_are_added_up)
{
	uint64_t counts[SPOOL_COUNTS];

	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_RETRIES, 3));
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_DAMAGED, 1));
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_RETRIES, 4));
	spool_counts(&self->spool, counts);
	for (int i = 0; i < SPOOL_COUNTS; i++)
		EXPECT_EQ(i == SPOOL_RETRIES ? 7 : i == SPOOL_DAMAGED, counts[i]);
}

TEST_F(spool, counts_without_a_checksum_are_read)
{
	static const char old[] = "put 00000000000000000005\nsent 00000000000000000004\n";
	uint64_t counts[SPOOL_COUNTS];
	int fd = openat(self->spool.dir, "counts", O_WRONLY | O_TRUNC);

	ASSERT_EQ((ssize_t)strlen(old), write(fd, old, strlen(old)));
	close(fd);
	spool_counts(&self->spool, counts);
	EXPECT_EQ(5, counts[SPOOL_PUT]);
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_SENT, 1));
	spool_counts(&self->spool, counts);
	EXPECT_EQ(5, counts[SPOOL_PUT]);
	EXPECT_EQ(5, counts[SPOOL_SENT]);
}

/* A file that was damaged may be longer than what is written in its place. */
TEST_F(spool, what_is_behind_the_checksum_does_not_count)
{
	int fd = openat(self->spool.dir, "counts", O_WRONLY | O_TRUNC);
	uint64_t counts[SPOOL_COUNTS];

	ASSERT_LT(0, dprintf(fd, "%800s\nsent 7\n", ""));
	close(fd);
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_SENT, 1));
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_SENT, 1));
	spool_counts(&self->spool, counts);
	EXPECT_EQ(9, counts[SPOOL_SENT]);
}

/* The lock is held, as by a process that lost its CPU while it wrote the file. */
TEST_F(spool, counts_that_are_half_written_are_not_read)
{
	int lock = openat(self->spool.dir, ".putting", O_RDWR), fd, out, status;
	uint64_t counts[SPOOL_COUNTS];
	char before[1024], after[1024];
	ssize_t size;
	pid_t pid;

	fd = openat(self->spool.dir, "counts", O_RDWR);
	size = read(fd, before, sizeof(before));
	ASSERT_LT(HALF, size);
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_PUT, 1000));
	ASSERT_EQ(0, spool_add(&self->spool, SPOOL_DAMAGED, 1000));
	ASSERT_EQ(size, pread(fd, after, sizeof(after), 0));
	ASSERT_EQ(size - HALF, pwrite(fd, before + HALF, size - HALF, HALF));
	ASSERT_EQ(0, flock(lock, LOCK_EX));
	pid = read_beside(&self->spool, &out);
	poll(&(struct pollfd){ .fd = out, .events = POLLIN }, 1, LATE_MS);
	ASSERT_EQ(size - HALF, pwrite(fd, after + HALF, size - HALF, HALF));
	ASSERT_EQ(0, flock(lock, LOCK_UN));
	ASSERT_EQ((ssize_t)sizeof(counts), read(out, counts, sizeof(counts)));
	EXPECT_EQ(1000, counts[SPOOL_PUT]);
	EXPECT_EQ(1000, counts[SPOOL_DAMAGED]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(fd);
	close(lock);
	close(out);
}

/* Gives the folder a time, by which it is seen whether it was read again. */
static void set_time(const struct spool *spool, time_t seconds)
{
	const struct timespec times[] = { { seconds, 5 }, { seconds, 5 } };

	futimens(spool->dir, times);
}

TEST_F(spool, a_folder_at_rest_is_read_once)
{
	const time_t before = time(NULL) - 1000;
	struct spool_seen seen = { .settled = false };
	struct spool_waiting waiting;

	ASSERT_EQ(0, put(&self->spool, "a request"));
	set_time(&self->spool, before);
	waiting = spool_waiting_again(&self->spool, &seen);
	EXPECT_EQ(1, waiting.nr);
	EXPECT_EQ(spool_waiting(&self->spool).bytes, waiting.bytes);
	/* This could not happen unseen but for the time that it is given. */
	ASSERT_EQ(0, put(&self->spool, "another"));
	set_time(&self->spool, before);
	EXPECT_EQ(1, spool_waiting_again(&self->spool, &seen).nr);
	set_time(&self->spool, before + 1);
	EXPECT_EQ(2, spool_waiting_again(&self->spool, &seen).nr);
}

TEST_F(spool, a_folder_that_changed_just_now_is_read_again)
{
	struct spool_seen seen = { .settled = false };
	const time_t now = time(NULL) + 1000; /* later than any time of this test */

	ASSERT_EQ(0, put(&self->spool, "a request"));
	set_time(&self->spool, now);
	EXPECT_EQ(1, spool_waiting_again(&self->spool, &seen).nr);
	ASSERT_EQ(0, put(&self->spool, "another"));
	set_time(&self->spool, now);
	EXPECT_EQ(2, spool_waiting_again(&self->spool, &seen).nr);
}

TEST_HARNESS_MAIN
