// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * screen.c - draws a text on the terminal again and again, reads keys, and restores the terminal
 * in every case but SIGKILL. See screen.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/record/top/screen.h"
#include "tools/shortened.h"

#define PATIENCE 100 /* ms to wait for a terminal that takes no more */
#define PIECE 256 /* bytes of one write: a terminal that is ready to take any takes this many */
#define MAX_SIDE 1000 /* rows and columns of a terminal, at most */

/* Escape sequences: @enter selects the second screen and hides the cursor, @leave undoes that. */
static const char enter[] = "\033[?1049h\033[?25l";
static const char leave[] = "\033[?25h\033[?1049l";

/*
 * Whether the terminal was taken, whether its settings for keys were changed, and the settings
 * before. A signal handler uses them too.
 */
static volatile sig_atomic_t taken;
static volatile sig_atomic_t keys;
static struct termios before;

bool screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

/* Writes @text to the terminal. Signal handlers may call it. */
static void put(const char *text, size_t size)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (size) {
		ssize_t n = size < PIECE ? size : PIECE;

		if (poll(&out, 1, PATIENCE) != 1 || !(out.revents & POLLOUT))
			return;
		n = write(STDOUT_FILENO, text, n);
		if (n <= 0)
			return;
		text += n;
		size -= n;
	}
}

/* Signal handlers may call it. */
void screen_leave(void)
{
	int error = errno;

	if (taken) {
		taken = 0;
		put(leave, sizeof(leave) - 1);
		if (keys)
			tcsetattr(STDIN_FILENO, TCSANOW, &before);
	}
	errno = error;
}

/* Gives the terminal back before the signal ends this process. */
static void on_deadly(int signo)
{
	screen_leave();
	raise(signo);
}

/*
 * Installs on_deadly() for the signals that would end this process, except those for which the main
 * loop waits.
 */
static void catch_deadly(void)
{
	static const int deadly[] = { SIGSEGV, SIGFPE,	SIGILL,	 SIGABRT,  SIGSYS,
				      SIGTRAP, SIGPIPE, SIGALRM, SIGUSR1,  SIGUSR2,
				      SIGXCPU, SIGXFSZ, SIGPROF, SIGVTALRM };
	struct sigaction action = { .sa_handler = on_deadly, .sa_flags = SA_RESETHAND };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		if (!sigaction(deadly[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(deadly[i], &action, NULL);
	shortened_otherwise(screen_leave);
}

void screen_enter(void)
{
	static bool prepared;
	struct termios raw;

	if (!prepared) {
		atexit(screen_leave);
		catch_deadly();
		prepared = true;
	}
	keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &before);
	taken = 1;
	if (keys) {
		raw = before;
		raw.c_lflag &= ~(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	put(enter, sizeof(enter) - 1);
}

void screen_suspend(void)
{
	sigset_t stop;

	screen_leave();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	screen_enter();
}

unsigned int screen_columns(int fd)
{
	struct winsize size = { 0 };

	ioctl(fd, TIOCGWINSZ, &size);
	return size.ws_col && size.ws_col < MAX_SIDE ? size.ws_col : 80;
}

void screen_size(unsigned int *rows, unsigned int *columns)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*rows = size.ws_row && size.ws_row < MAX_SIDE ? size.ws_row : 24;
	*columns = screen_columns(STDOUT_FILENO);
}

size_t screen_fit(const char *line, size_t size, unsigned int columns)
{
	size_t n = 0;

	for (; n < size; n++) {
		/* In UTF-8 all bytes of a character but the first begin with the bits 10. */
		if ((line[n] & 0xc0) == 0x80)
			continue;
		if (!columns--)
			break;
	}
	return n;
}

void screen_draw(const char *text, size_t size)
{
	const char *end = text + size;
	unsigned int rows, columns;
	char *frame = NULL;
	size_t length;
	FILE *out = open_memstream(&frame, &length);

	if (!out)
		return;
	screen_size(&rows, &columns);
	fputs("\033[H", out);
	for (unsigned int row = 0; row < rows && text < end; row++) {
		const char *stop = memchr(text, '\n', end - text);
		size_t line = (stop ? stop : end) - text;

		/*
		 * Characters may be two columns wide: line wrapping is off, so that they do not go
		 * on in the next line.
		 */
		fprintf(out, "%s\033[?7l%.*s\033[?7h\033[K", row ? "\r\n" : "",
			(int)screen_fit(text, line, columns), text);
		text += line + 1;
	}
	fputs("\033[J", out);
	fclose(out);
	if (frame)
		put(frame, length);
	free(frame);
}

int screen_key(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char key;
	ssize_t n;

	if (!keys || poll(&in, 1, 0) != 1)
		return 0;
	n = read(STDIN_FILENO, &key, 1);
	if (n == 1)
		return key;
	return in.revents & (POLLHUP | POLLERR) ? -1 : 0;
}
