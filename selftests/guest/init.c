// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The only program a guest starts by itself: mounts what tests expect, runs
 * the steps listed in /t/steps one after another and reports over a line of
 * its own, so that a test's output can not be taken for a verdict.
 *
 * /t/guest holds "key=value" lines:
 *   report=PATH   device the report goes to (a second serial line or a
 *                 virtio-serial port)
 *   payload=PATH  read a newc archive from this device and unpack it at /
 *                 first: how a guest restored from a snapshot gets its tests
 *   shell=1       give the console a shell instead
 *
 * /t/steps holds one step a line, fields separated by tabs:
 *   run TIMEOUT COMMAND     COMMAND is run by sh, in /t, on a terminal of its
 *                           own; TIMEOUT in seconds of the guest's clock
 *   insmod FILE [PARAMS]
 *   rmmod NAME
 *
 * The report, one line each, N counts steps from 1 (0 is the boot):
 *   hello RELEASE UPTIME_MS
 *   S N                     the step starts
 *   O N TEXT                a line of its output
 *   K N PRIORITY TEXT       a line of the kernel's log
 *   T N FLAGS               the kernel's taint flags changed to this
 *   E N KIND VALUE MS       it ended: exit CODE, signal NUMBER, timeout
 *                           SECONDS or error ERRNO, after so much guest time
 *   bye
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 4096
#define TIMES_MOST 6 /* the time from one result to the next that a whole step may take */

static int report_fd = -1;
static int kmsg_fd = -1;
static unsigned int step_now;
static unsigned long taint_last;

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t got = write(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= got;
	}
	return true;
}

__attribute__((format(printf, 1, 2))) static void report(const char *fmt, ...)
{
	char buf[LINE_BYTES + 64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof(buf) - 2)
		n = sizeof(buf) - 2;
	buf[n++] = '\n';
	write_all(report_fd >= 0 ? report_fd : 1, buf, n);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return;
	write_all(fd, text, strlen(text));
	close(fd);
}

static void raw_terminal(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t))
		return;
	cfmakeraw(&t);
	cfsetspeed(&t, B115200);
	tcsetattr(fd, TCSANOW, &t);
}

/* Reports what the kernel logged since the last call; of boot messages, only serious ones. */
static void report_kmsg(void)
{
	static char rec[LINE_BYTES * 2];
	unsigned long taint = taint_last;
	FILE *f;
	ssize_t n;

	while (kmsg_fd >= 0) {
		char *text, *end, *line;
		int prio;

		n = read(kmsg_fd, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		rec[n] = 0;
		prio = atoi(rec) & 7;
		text = strchr(rec, ';');
		if (!text || (!step_now && prio > 4))
			continue;
		end = strchr(++text, '\n');
		if (end)
			*end = 0;
		while ((line = strsep(&text, "\r")) != NULL)
			report("K %u %d %s", step_now, prio, line);
	}
	f = fopen("/proc/sys/kernel/tainted", "re");
	if (f) {
		if (fscanf(f, "%lu", &taint) == 1 && taint != taint_last)
			report("T %u %lu", step_now, taint);
		fclose(f);
	}
	taint_last = taint;
}

/* Counts lines. @results: how many of them were results of tests, "ok 1 ..." or "not ok 1 ...". */
struct lines {
	char buf[LINE_BYTES];
	size_t n;
	unsigned int results;
};

static bool begins(const struct lines *l, const char *text)
{
	size_t n = strlen(text);

	return l->n >= n && !memcmp(l->buf, text, n);
}

static void lines_flush(struct lines *l)
{
	if (l->n)
		report("O %u %.*s", step_now, (int)l->n, l->buf);
	if (begins(l, "ok ") || begins(l, "not ok "))
		l->results++;
	l->n = 0;
}

static void lines_add(struct lines *l, const char *p, size_t n)
{
	for (; n; p++, n--) {
		if (*p == '\n') {
			if (!l->n)
				report("O %u ", step_now);
			lines_flush(l);
		} else if (*p != '\r' && *p != 0) {
			l->buf[l->n++] = *p;
			if (l->n == sizeof(l->buf))
				lines_flush(l);
		}
	}
}

static int open_pty(char *name, size_t size)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int zero = 0;
	unsigned int num;

	if (fd < 0 || ioctl(fd, TIOCSPTLCK, &zero) || ioctl(fd, TIOCGPTN, &num))
		return -1;
	snprintf(name, size, "/dev/pts/%u", num);
	return fd;
}

static void run_child(const char *tty, const char *command)
{
	sigset_t none;
	int fd;

	setsid();
	fd = open(tty, O_RDWR);
	if (fd < 0)
		_exit(126);
	ioctl(fd, TIOCSCTTY, 0);
	raw_terminal(fd);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, 0);
	if (fd > 2)
		close(fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/t"))
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

/* Ends every process, as nothing of a step may live on in the next one. */
static void kill_everything(void)
{
	long long until = now_ms() + 2000;

	kill(-1, SIGKILL);
	while (now_ms() < until) {
		if (waitpid(-1, NULL, WNOHANG) < 0)
			return;
		usleep(1000);
	}
}

/*
 * How long a step may take: @timeout seconds up to each of its results, because on a busy machine a
 * long test is slow without being hung.
 */
struct patience {
	int timeout;
	unsigned int results;
	long long until;
	long long end;
};

static struct patience patience(int timeout)
{
	long long now = now_ms();

	return (struct patience){
		.timeout = timeout,
		.until = now + timeout * 1000LL,
		.end = now + TIMES_MOST * timeout * 1000LL,
	};
}

static bool is_over(struct patience *p, const struct lines *out)
{
	long long now = now_ms();

	if (out->results != p->results)
		p->until = now + p->timeout * 1000LL;
	p->results = out->results;
	return now > p->until || now > p->end;
}

static void run_step(int timeout, const char *command)
{
	struct patience patient = patience(timeout);
	struct lines out = { .n = 0 };
	long long start = now_ms();
	int master, status = 0, done = 0, timed_out = 0;
	char tty[32];
	pid_t pid;

	master = open_pty(tty, sizeof(tty));
	if (master < 0) {
		report("E %u error %d 0", step_now, errno);
		return;
	}
	pid = fork();
	if (pid < 0) {
		report("E %u error %d 0", step_now, errno);
		close(master);
		return;
	}
	if (!pid)
		run_child(tty, command);

	for (;;) {
		struct pollfd p = { .fd = master, .events = POLLIN };
		char buf[8192];
		ssize_t n;
		int ready;
		pid_t got;

		ready = poll(&p, 1, done ? 0 : 10);
		if (ready > 0 && (p.revents & POLLIN)) {
			n = read(master, buf, sizeof(buf));
			if (n > 0) {
				lines_add(&out, buf, n);
				continue;
			}
		} else if (ready > 0 && !done) {
			/* Nobody has opened the terminal yet, or all have closed it. */
			usleep(2000);
		}
		if (done)
			break;
		while ((got = waitpid(-1, &status, WNOHANG)) > 0 && got != pid)
			;
		if (got == pid) {
			done = 1;
		} else if (is_over(&patient, &out)) {
			timed_out = 1;
			kill_everything();
			done = 1;
		}
	}
	kill_everything();
	close(master);
	lines_flush(&out);
	report_kmsg();
	if (timed_out)
		report("E %u timeout %d %lld", step_now, timeout, now_ms() - start);
	else if (WIFSIGNALED(status))
		report("E %u signal %d %lld", step_now, WTERMSIG(status), now_ms() - start);
	else
		report("E %u exit %d %lld", step_now, WEXITSTATUS(status), now_ms() - start);
}

/* Reports leaks. It does so only in a debug kernel that looks for them. */
static void report_leaks(void)
{
	const char *path = "/sys/kernel/debug/kmemleak";
	char line[512];
	int scans;
	FILE *f;

	if (access(path, W_OK))
		return;
	/*
	 * A scan passes over objects that are young, have changed since, or seem to be referenced.
	 */
	for (scans = 0; scans < 4; scans++) {
		if (scans)
			sleep(6);
		put_file(path, "scan");
	}
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		report("K %u 4 kmemleak: %s", step_now, line);
	}
	if (f)
		fclose(f);
	put_file(path, "clear"); /* each leak is reported once */
}

static void module_step(int load, char *arg)
{
	long long start = now_ms();
	char *params = load ? strchr(arg, ' ') : NULL;
	long ret;
	int err;

	if (params)
		*params++ = 0;
	if (load) {
		int fd = open(arg, O_RDONLY | O_CLOEXEC);

		ret = fd < 0 ? -1 : syscall(SYS_finit_module, fd, params ? params : "", 0);
		err = errno;
		if (fd >= 0)
			close(fd);
	} else {
		ret = syscall(SYS_delete_module, arg, O_NONBLOCK);
		err = errno;
		if (!ret)
			report_leaks();
	}
	report_kmsg();
	if (ret)
		report("E %u error %d %lld", step_now, err, now_ms() - start);
	else
		report("E %u exit 0 %lld", step_now, now_ms() - start);
}

static void run_steps(const char *path)
{
	static char line[LINE_BYTES];
	FILE *f = fopen(path, "re");

	if (!f) {
		report("E 0 error %d 0", errno);
		return;
	}
	while (fgets(line, sizeof(line), f)) {
		char *rest = line, *what, *arg;

		line[strcspn(line, "\n")] = 0;
		what = strsep(&rest, "\t");
		arg = rest;
		if (!what || !arg)
			continue;
		step_now++;
		report("S %u", step_now);
		if (!strcmp(what, "run")) {
			int timeout = atoi(strsep(&rest, "\t"));

			run_step(timeout, rest ? rest : "false");
		} else {
			module_step(!strcmp(what, "insmod"), arg);
		}
	}
	fclose(f);
}

static void mount_one(const char *type, const char *where, const char *opt)
{
	mkdir(where, 0755);
	mount(type, where, type, 0, opt);
}

static void mount_all(void)
{
	mount_one("proc", "/proc", NULL);
	mount_one("sysfs", "/sys", NULL);
	mount_one("devtmpfs", "/dev", NULL);
	mount_one("devpts", "/dev/pts", "ptmxmode=0666");
	mount_one("tmpfs", "/dev/shm", NULL);
	/*
	 * All files lie in memory: the guest's own, and those that tests write. The kernel's
	 * default, half of the memory, is too small where programs of Debian are among them.
	 */
	mount(NULL, "/", NULL, MS_REMOUNT, "size=80%");
	mount_one("tmpfs", "/tmp", "size=80%");
	mount_one("tmpfs", "/run", NULL);
	mount_one("tracefs", "/sys/kernel/tracing", NULL);
	mount_one("debugfs", "/sys/kernel/debug", NULL);
	mount_one("securityfs", "/sys/kernel/security", NULL);
	mount_one("bpf", "/sys/fs/bpf", NULL);
	mount_one("cgroup2", "/sys/fs/cgroup", NULL);
	chmod("/tmp", 01777);
	chmod("/dev/shm", 01777);
	symlink("/proc/self/fd", "/dev/fd");
}

static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	if (fd > 2)
		close(fd);
}

static int read_all(int fd, void *p, size_t n)
{
	char *c = p;

	while (n) {
		ssize_t got = read(fd, c, n);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0) {
			/* Nobody has opened the other end yet. */
			usleep(1000);
			continue;
		}
		c += got;
		n -= got;
	}
	return 0;
}

static unsigned long hex8(const char *p)
{
	char buf[9];

	memcpy(buf, p, 8);
	buf[8] = 0;
	return strtoul(buf, NULL, 16);
}

/* Copies n bytes, or reads over them: returns why they cannot be written, or 0. */
static int copy_out(int in, int out, size_t n)
{
	int error = out < 0 ? errno : 0;
	static char buf[1 << 16];

	while (n) {
		size_t part = n < sizeof(buf) ? n : sizeof(buf);

		read_all(in, buf, part);
		if (!error && !write_all(out, buf, part))
			error = errno;
		n -= part;
	}
	return error;
}

/* Unpacks a newc archive: files, directories and symbolic links. */
static void unpack(const char *path)
{
	char head[110], name[PATH_MAX + 1], pad[4];
	int in = open(path, O_RDWR | O_CLOEXEC);

	if (in < 0) {
		report("E 0 error %d 0", errno);
		return;
	}
	for (;;) {
		unsigned long mode, size, namesize;
		char to[PATH_MAX];
		int out, error;

		read_all(in, head, sizeof(head));
		if (memcmp(head, "070701", 6)) {
			report("E 0 error %d 0", EBADMSG);
			return;
		}
		mode = hex8(head + 14);
		size = hex8(head + 54);
		namesize = hex8(head + 94);
		if (!namesize || namesize >= sizeof(to)) {
			report("E 0 error %d 0", EBADMSG);
			return;
		}
		read_all(in, name + 1, namesize);
		name[0] = '/';
		name[namesize] = 0;
		read_all(in, pad, (4 - (sizeof(head) + namesize) % 4) % 4);
		if (!strcmp(name + 1, "TRAILER!!!"))
			break;
		snprintf(to, sizeof(to), "%s", name);
		if (S_ISDIR(mode)) {
			mkdir(to, mode & 07777);
		} else if (S_ISLNK(mode) && size < sizeof(name)) {
			read_all(in, name, size);
			name[size] = 0;
			unlink(to);
			symlink(name, to);
		} else {
			unlink(to);
			out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 07777);
			error = copy_out(in, out, size);
			if (error)
				report("E 0 error %d 0", error);
			if (out >= 0)
				close(out);
		}
		read_all(in, pad, (4 - size % 4) % 4);
	}
	close(in);
}

static int setting(const char *key, char *value, size_t size)
{
	FILE *f = fopen("/t/guest", "re");
	size_t n = strlen(key);
	char line[256];
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, key, n) && line[n] == '=') {
			snprintf(value, size, "%s", line + n + 1);
			found = 1;
		}
	}
	if (f)
		fclose(f);
	return found;
}

static void give_shell(void)
{
	int status;
	pid_t pid;

	printf("\nAs root in /t; the build's programs are there. exit ends the guest.\n");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd;

		setsid();
		fd = open("/dev/console", O_RDWR);
		ioctl(fd, TIOCSCTTY, 1);
		chdir("/t");
		execl("/bin/busybox", "sh", "-i", NULL);
		_exit(127);
	}
	while (waitpid(-1, &status, 0) != pid)
		;
}

int main(void)
{
	struct utsname un;
	char value[256];
	bool complete;

	mount_all();
	open_console();
	umask(022);
	setenv("PATH", "/t:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/root", 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("TERM", "dumb", 1);
	setenv("SHSTK_GUEST", "1", 1);
	sethostname("guest", 5);
	put_file("/proc/sys/kernel/printk", "7");
	put_file("/proc/sys/kernel/core_pattern", "/tmp/core");
	put_file("/proc/sys/kernel/perf_event_paranoid", "-1");
	put_file("/proc/sys/kernel/kptr_restrict", "0");
	put_file("/proc/sys/debug/exception-trace", "1");

	complete = !unlink("/complete");
	if (setting("shell", value, sizeof(value))) {
		if (!complete)
			printf("init: not all files fit into the guest's memory: see --memory\n");
		give_shell();
		sync();
		reboot(RB_POWER_OFF);
	}

	kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (setting("report", value, sizeof(value))) {
		for (int i = 0; i < 500 && report_fd < 0; i++) {
			report_fd = open(value, O_RDWR | O_NOCTTY | O_CLOEXEC);
			if (report_fd < 0)
				usleep(10000);
		}
		if (report_fd < 0)
			printf("init: %s: %s\n", value, strerror(errno));
		else
			raw_terminal(report_fd);
	}
	uname(&un);
	report("hello %s %lld", un.release, now_ms());
	report_kmsg();
	if (!complete)
		report("E 0 error %d 0", ENOSPC);
	if (setting("payload", value, sizeof(value))) {
		unpack(value);
		report("hello %s %lld", un.release, now_ms());
	}
	run_steps("/t/steps");
	report("bye");
	if (isatty(report_fd))
		tcdrain(report_fd);
	/* The reader of the report ends the emulator. */
	for (;;)
		pause();
}
