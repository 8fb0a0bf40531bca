// SPDX-License-Identifier: GPL-2.0-or-later
/* rescue_test.c - tests what is told of a profile whose writer was killed. Prints KTAP. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/symbol/target.h"
#include "tools/record/rescue.h"

#include "kselftest_harness.h"

FIXTURE(file)
{
	char folder[32];
	char hidden[64];
	char name[64];
	struct shstk_left left;
	const char *path;
};

FIXTURE_SETUP(file)
{
	strcpy(self->folder, "/tmp/rescue_test-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->folder));
	snprintf(self->hidden, sizeof(self->hidden), "%s/hidden", self->folder);
	snprintf(self->name, sizeof(self->name), "%s/name", self->folder);
	self->left = (struct shstk_left){ self->hidden, self->name };
}

FIXTURE_TEARDOWN(file)
{
	unlink(self->hidden);
	unlink(self->name);
	rmdir(self->name);
	rmdir(self->folder);
}

static void make(const char *path)
{
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

TEST_F(file, gets_its_name)
{
	make(self->hidden);
	EXPECT_EQ(RESCUED_SAMPLES, rescue(&self->left, &self->path));
	EXPECT_STREQ(self->name, self->path);
	EXPECT_EQ(0, access(self->name, F_OK));
	EXPECT_NE(0, access(self->hidden, F_OK));
}

TEST_F(file, is_told_where_it_was_if_it_cannot_get_its_name)
{
	make(self->hidden);
	ASSERT_EQ(0, mkdir(self->name, 0700));
	EXPECT_EQ(RESCUED_SAMPLES, rescue(&self->left, &self->path));
	EXPECT_STREQ(self->hidden, self->path);
	EXPECT_EQ(0, access(self->hidden, F_OK));
}

TEST_F(file, is_whole_if_its_writer_had_named_it)
{
	make(self->name);
	EXPECT_EQ(RESCUED_WHOLE, rescue(&self->left, &self->path));
	EXPECT_STREQ(self->name, self->path);
}

TEST_F(file, is_lost_if_it_is_nowhere)
{
	EXPECT_EQ(RESCUED_NOTHING, rescue(&self->left, &self->path));
	EXPECT_EQ(NULL, self->path);
	self->left.hidden = NULL;
	EXPECT_EQ(RESCUED_NOTHING, rescue(&self->left, &self->path));
}

TEST_HARNESS_MAIN
