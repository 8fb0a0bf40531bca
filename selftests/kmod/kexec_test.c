// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kexec_test.c - tests that another kernel can replace this one while callchains are taken by
 * unwind rules
 *
 *	kexec_test shstk_perf.ko KERNEL SHSTK
 *
 * SHSTK is the command, which compiles this program's table. KERNEL is the file of the kernel that
 * runs now. This program is also the first process of the next kernel. There it reports the result
 * on the guest's line for reports (selftests/guest/init.c). It is the last step of its guest,
 * because nothing can follow it.
 */
#include <errno.h>
#include <linux/reboot.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "busy.h"
#include "kselftest.h"
#include "unload.h"

#define ARCHIVE "/tmp/kexec.cpio"
#define REPORT_BYTES 64

/* ---- The next kernel's files ---- */

/* Finds the device to which reports go, as the guest's init was told. */
static void find_report(char report[REPORT_BYTES])
{
	FILE *f = fopen("/t/guest", "re");
	char line[REPORT_BYTES + 16];

	*report = 0;
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "report=", 7))
			snprintf(report, REPORT_BYTES, "%.*s", (int)strcspn(line + 7, "\n"),
				 line + 7);
	if (f)
		fclose(f);
}

static void pad(FILE *f)
{
	while (ftell(f) % 4)
		fputc(0, f);
}

/* Writes one entry of a newc archive. */
static void add(FILE *f, const char *name, unsigned int mode, const void *data, size_t size)
{
	static unsigned int ino;

	fprintf(f, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ++ino, mode, 0, 0,
		1, 0, (unsigned int)size, 0, 0, 0, 0, (unsigned int)strlen(name) + 1, 0);
	fwrite(name, 1, strlen(name) + 1, f);
	pad(f);
	fwrite(data, 1, size, f);
	pad(f);
}

static void *read_self(size_t *size)
{
	FILE *f = fopen("/proc/self/exe", "re");
	char *data = malloc(16 << 20);

	*size = f && data ? fread(data, 1, 16 << 20, f) : 0;
	if (f)
		fclose(f);
	return data;
}

static int make_archive(void)
{
	char report[REPORT_BYTES];
	FILE *f = fopen(ARCHIVE, "we");
	size_t size;
	void *self = read_self(&size);

	find_report(report);
	if (!f || !size || !*report)
		ksft_exit_fail_msg("no archive: %s\n", strerror(errno));
	add(f, "dev", S_IFDIR | 0755, "", 0);
	add(f, "proc", S_IFDIR | 0755, "", 0);
	add(f, "report", S_IFREG | 0644, report, strlen(report));
	add(f, "init", S_IFREG | 0755, self, size);
	add(f, "TRAILER!!!", 0, "", 0);
	free(self);
	if (fclose(f))
		ksft_exit_fail_msg("no archive: %s\n", strerror(errno));
	return open(ARCHIVE, O_RDONLY | O_CLOEXEC);
}

static void load_kernel(const char *path)
{
	int kernel = open(path, O_RDONLY | O_CLOEXEC), archive = make_archive();
	char line[1024] = "";
	FILE *f = fopen("/proc/cmdline", "re");

	if (!f || !fgets(line, sizeof(line), f))
		ksft_exit_fail_msg("no command line\n");
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	if (syscall(SYS_kexec_file_load, kernel, archive, strlen(line) + 1, line, 0))
		ksft_exit_fail_msg("kexec_file_load: %s\n", strerror(errno));
}

/* ---- In the next kernel ---- */

static void raw_terminal(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t))
		return;
	cfmakeraw(&t);
	cfsetspeed(&t, B115200);
	tcsetattr(fd, TCSANOW, &t);
}

static int open_report(void)
{
	char report[REPORT_BYTES] = "";
	FILE *f = fopen("/report", "re");
	int fd = -1;

	if (f && !fgets(report, sizeof(report), f))
		*report = 0;
	for (int i = 0; i < BUSY_PATIENCE && fd < 0; i++) {
		usleep(1000);
		fd = open(report, O_RDWR | O_NOCTTY | O_CLOEXEC);
	}
	raw_terminal(fd);
	return fd;
}

/* Reports the warnings and worse that the kernel logged while it came up. */
static void report_log(int report)
{
	static char rec[8192];
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	while ((n = read(log, rec, sizeof(rec) - 1)) > 0) {
		char *text;

		rec[n] = 0;
		rec[strcspn(rec, "\n")] = 0;
		text = strchr(rec, ';');
		if (text && (atoi(rec) & 7) <= 4)
			dprintf(report, "K 1 %d %s\n", atoi(rec) & 7, text + 1);
	}
	close(log);
}

static void be_next(void)
{
	int report;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	report = open_report();
	report_log(report);
	dprintf(report, "O 1 ok 2 the next kernel runs\nE 1 exit 0 0\nbye\n");
	/* The reader of the report ends the emulator. */
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct busy busy;
	int err;

	if (getpid() == 1)
		be_next();
	ksft_print_header();
	if (argc < 4)
		ksft_exit_fail_msg("kexec_test shstk_perf.ko KERNEL SHSTK\n");
	err = module_load(argv[1]);
	if (err)
		ksft_exit_skip("%s: %s\n", argv[1], strerror(-err));
	ksft_set_plan(2);
	load_kernel(argv[2]);
	ksft_test_result(busy_load_table(argv[3]) && busy_begin(&busy) && busy_await(&busy),
			 "callchains are served\n");
	fflush(NULL);
	/* The guest's init forwards what was printed to the report. */
	sleep(2);
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
	ksft_exit_fail_msg("reboot: %s\n", strerror(errno));
}
