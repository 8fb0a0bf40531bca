// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * helper.c - loads unwind rules into the kernel while somebody records.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/shstk_rules.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/rules/cache.h"
#include "tools/rules/helper.h"
#include "tools/rules/daemon.h"
#include "tools/rules/chain_status.h"

void rules_read_state(struct rules_state *ret)
{
	uint64_t listeners;
	bool loaded = rules_module_number("rules/tables", &ret->tables);

	rules_module_number("rules/listeners", &listeners);
	ret->served = listeners > 0;
	ret->may_load = loaded && !geteuid() && !access(SHSTK_RULES_DEVICE, R_OK | W_OK);
}

/*
 * Runs the daemon's work, but without messages: a user who records does not want to read which
 * files have no table, and the systemd that $NOTIFY_SOCKET names did not start this process.
 */
static void serve(int ready, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), device;

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	unsetenv("NOTIFY_SOCKET");
	prctl(PR_SET_NAME, "shstk rules");
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0 || getppid() != parent)
		_exit(1);
	_exit(rules_serve(device, cache_open(CACHE_FOLDER), ready));
}

/* Waits until the helper closes its end, because it is ready or because it has died. */
static void await(int ready)
{
	struct pollfd p = { .fd = ready };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

pid_t rules_helper_start(void)
{
	pid_t parent = getpid(), pid;
	int ready[2];

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		serve(ready[1], parent);
	}
	if (pid < 0)
		pid = -errno;
	close(ready[1]);
	if (pid > 0)
		await(ready[0]);
	close(ready[0]);
	return pid;
}

void rules_helper_end(pid_t pid)
{
	if (pid < 1)
		return;
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
