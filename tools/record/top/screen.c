// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * screen.c - draws lines on the terminal again and again, reads keys, and restores the terminal
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

#include "tools/record/top/ncurses_screen.h"
#include "tools/record/top/keys.h"
#include "tools/record/top/screen.h"
#include "tools/shortened.h"

#define PATIENCE 100 /* ms to wait for a terminal that takes no more */
#define PIECE 256 /* bytes of one write: a terminal that is ready to take any takes this many */
#define MAX_SIDE 1000 /* rows and columns of a terminal, at most */

/*
 * Escape sequences: @enter selects the second screen, where the terminal has one, and hides the
 * cursor, @leave undoes that.
 */
static char enter[2 * CURSES_TEXT];
static char leave[3 * CURSES_TEXT];

/*
 * Whether the terminal was taken, whether its settings for keys were changed, and the settings
 * before. A signal handler uses them too.
 */
static volatile sig_atomic_t taken;
static volatile sig_atomic_t keys;
static struct termios before;

/* Whether the terminal shows something else than what was drawn last. */
static bool stale;

bool screen_wanted(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

bool screen_possible(void)
{
	return screen_wanted() && curses_open();
}

/*
 * Writes @text to the terminal. Returns whether it took all of that. Signal handlers may call it.
 */
static bool put(const char *text, size_t size)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (size) {
		ssize_t n = size < PIECE ? size : PIECE;

		if (poll(&out, 1, PATIENCE) != 1 || !(out.revents & POLLOUT))
			return false;
		n = write(STDOUT_FILENO, text, n);
		if (n <= 0)
			return false;
		text += n;
		size -= n;
	}
	return true;
}

/* Signal handlers may call it. */
void screen_leave(void)
{
	int error = errno;

	if (taken) {
		taken = 0;
		put(leave, strlen(leave));
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

/* Asks how this terminal is taken and given back. */
static void find_sequences(void)
{
	char text[4][CURSES_TEXT];

	curses_sequence("smcup", text[0]);
	curses_sequence("civis", text[1]);
	snprintf(enter, sizeof(enter), "%s%s", text[0], text[1]);
	curses_sequence("sgr0", text[0]);
	curses_sequence("cnorm", text[1]);
	curses_sequence("rmcup", text[2]);
	/* Where there is one screen only, it is emptied. */
	curses_sequence("clear", text[3]);
	snprintf(leave, sizeof(leave), "%s%s%s", text[0], text[1], *text[2] ? text[2] : text[3]);
}

void screen_enter(void)
{
	static bool prepared;
	struct termios raw;

	if (!prepared) {
		find_sequences();
		keys_prepare();
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
	put(enter, strlen(enter));
	stale = true;
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

void screen_begin(unsigned int *rows, unsigned int *columns)
{
	screen_size(rows, columns);
	curses_resize(*rows, *columns);
	curses_clear();
}

void screen_line(unsigned int row, const char *text, enum curses_style style)
{
	curses_put(row, text, style);
}

void screen_end(void)
{
	size_t size;
	char *text = curses_show(stale, &size);

	/* If the terminal takes no more, the rest is left out, and all is drawn the next time. */
	stale = !text || !put(text, size);
	free(text);
}

int screen_key(void)
{
	return keys ? keys_read(STDIN_FILENO) : 0;
}
