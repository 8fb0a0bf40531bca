// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * suspend_test.c - tests that the machine can go to sleep while callchains are taken by unwind
 * rules
 *
 *	suspend_test SHSTK
 *
 * SHSTK is the command, which compiles this program's table. shstk_perf.ko is loaded. Each step on
 * the way to sleep is made and undone by the kernel's own test (/sys/power/pm_test). Afterwards
 * callchains come as before.
 */
#include <errno.h>
#include <string.h>

#include "busy.h"
#include "kselftest.h"

static const struct {
	const char *state, *level;
} sleeps[] = {
	{ "freeze", "freezer" }, { "freeze", "devices" }, { "mem", "devices" },
	{ "mem", "platform" },	 { "mem", "processors" }, { "mem", "core" },
};

#define NR_SLEEPS (sizeof(sleeps) / sizeof(sleeps[0]))

/* Writes a text to a file. Returns 0 or an errno. */
static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

static bool can(const char *path, const char *word)
{
	char text[128] = "";
	FILE *f = fopen(path, "re");
	bool there = f && fgets(text, sizeof(text), f) && strstr(text, word);

	if (f)
		fclose(f);
	return there;
}

int main(int argc, char **argv)
{
	struct busy busy;

	ksft_print_header();
	if (access("/sys/power/pm_test", W_OK))
		ksft_exit_skip("the kernel has no test of going to sleep\n");
	if (argc < 2 || !busy_load_table(argv[1]))
		ksft_exit_fail_msg("suspend_test SHSTK: no table\n");
	ksft_set_plan(1 + NR_SLEEPS);
	put("/sys/module/suspend/parameters/pm_test_delay", "1");
	ksft_test_result(busy_begin(&busy) && busy_await(&busy), "callchains are served\n");
	for (unsigned int i = 0; i < NR_SLEEPS; i++) {
		int err;

		if (!can("/sys/power/state", sleeps[i].state)) {
			ksft_test_result_skip("no %s here\n", sleeps[i].state);
			continue;
		}
		put("/sys/power/pm_test", sleeps[i].level);
		err = put("/sys/power/state", sleeps[i].state);
		ksft_test_result(!err && busy_await(&busy),
				 "%s, as far as %s, and then as ever: %s\n", sleeps[i].state,
				 sleeps[i].level, strerror(err));
	}
	put("/sys/power/pm_test", "none");
	busy_end(&busy);
	ksft_finished();
}
