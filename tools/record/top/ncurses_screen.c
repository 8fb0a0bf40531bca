// SPDX-License-Identifier: GPL-2.0-or-later
/* ncurses_screen.c - ncurses, as ncurses_screen.h describes. */
#define NCURSES_NOMACROS 1 /* the names of functions are names of members here */
#include <curses.h>
#include <dlfcn.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "libshstk/symbol/utf8.h"
#include "tools/record/top/ncurses_screen.h"

#define MAX_COLUMNS 1000 /* of a line; screen.c takes no larger terminal */
#define NO_CHARACTER 0xfffd

/* Functions and a variable of the library, and what is drawn on. */
static struct {
	SCREEN *(*newterm)(const char *, FILE *, FILE *);
	int (*resizeterm)(int, int);
	int (*werase)(WINDOW *);
	int (*wmove)(WINDOW *, int, int);
	int (*wattrset)(WINDOW *, int);
	int (*waddnwstr)(WINDOW *, const wchar_t *, int);
	int (*clearok)(WINDOW *, bool);
	int (*wrefresh)(WINDOW *);
	char *(*tigetstr)(const char *);
	WINDOW **window; /* stdscr, the whole screen */
	FILE *out; /* the file in memory */
	int columns; /* of the terminal */
} lib;

static bool load(void)
{
	void *handle = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle)
		return false;
	lib.newterm = (typeof(lib.newterm))dlsym(handle, "newterm");
	lib.resizeterm = (typeof(lib.resizeterm))dlsym(handle, "resizeterm");
	lib.werase = (typeof(lib.werase))dlsym(handle, "werase");
	lib.wmove = (typeof(lib.wmove))dlsym(handle, "wmove");
	lib.wattrset = (typeof(lib.wattrset))dlsym(handle, "wattrset");
	lib.waddnwstr = (typeof(lib.waddnwstr))dlsym(handle, "waddnwstr");
	lib.clearok = (typeof(lib.clearok))dlsym(handle, "clearok");
	lib.wrefresh = (typeof(lib.wrefresh))dlsym(handle, "wrefresh");
	lib.tigetstr = (typeof(lib.tigetstr))dlsym(handle, "tigetstr");
	lib.window = (typeof(lib.window))dlsym(handle, "stdscr");
	return lib.newterm && lib.resizeterm && lib.werase && lib.wmove && lib.wattrset &&
	       lib.waddnwstr && lib.clearok && lib.wrefresh && lib.tigetstr && lib.window;
}

static FILE *memory_file(void)
{
	int fd = memfd_create("screen", MFD_CLOEXEC);
	FILE *ret = fd < 0 ? NULL : fdopen(fd, "r+");

	if (!ret && fd >= 0)
		close(fd);
	return ret;
}

/* Sets the library up, and leaves all signals to this program: it takes some of them. */
static bool begin(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGTSTP, SIGWINCH };
	struct sigaction before[sizeof(signals) / sizeof(*signals)];
	SCREEN *screen;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], NULL, &before[i]);
	screen = lib.newterm(getenv("TERM"), lib.out, stdin);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &before[i], NULL);
	return screen;
}

/* Returns whether a capability is a sequence: -1 and NULL stand for none. */
static bool is_sequence(const char *text)
{
	return text && text != (char *)-1;
}

static bool set_up(void)
{
	/* Names are in UTF-8, whatever the locale says of the terminal. */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	lib.out = load() ? memory_file() : NULL;
	return lib.out && begin() && is_sequence(lib.tigetstr("cup"));
}

bool curses_open(void)
{
	static bool asked, ret;

	if (!asked)
		ret = set_up();
	asked = true;
	return ret;
}

void curses_sequence(const char *capability, char *buf)
{
	const char *text = lib.tigetstr(capability);

	*buf = '\0';
	if (is_sequence(text) && strlen(text) < CURSES_TEXT)
		strcpy(buf, text);
}

void curses_resize(unsigned int rows, unsigned int columns)
{
	lib.columns = columns;
	lib.resizeterm(rows, columns);
}

void curses_clear(void)
{
	lib.werase(*lib.window);
}

/* Decodes the next character of @text, which is not empty, and moves on. */
static wchar_t next_character(const char **text)
{
	uint32_t point;
	size_t n = shstk_utf8_decode((const unsigned char *)*text, SIZE_MAX, &point);

	*text += n ? n : 1;
	return n && wcwidth(point) >= 0 ? (wchar_t)point : NO_CHARACTER;
}

/* Returns the number of columns of a character: that of U+FFFD need not be known. */
static int columns_of(wchar_t c)
{
	int n = wcwidth(c);

	return n < 0 ? 1 : n;
}

void curses_put(unsigned int row, const char *text, enum curses_style style)
{
	static const int attributes[] = { A_NORMAL, A_BOLD, A_REVERSE };
	int room = lib.columns;
	wchar_t line[MAX_COLUMNS];
	int n = 0;

	if (lib.wmove(*lib.window, row, 0) == ERR)
		return;
	while (*text && n < MAX_COLUMNS) {
		line[n] = next_character(&text);
		room -= columns_of(line[n]);
		if (room < 0)
			break;
		n++;
	}
	lib.wattrset(*lib.window, attributes[style]);
	lib.waddnwstr(*lib.window, line, n);
	lib.wattrset(*lib.window, A_NORMAL);
}

/* Returns what is in the file, and empties it. */
static char *take(size_t *size)
{
	int fd = fileno(lib.out);
	off_t end = lseek(fd, 0, SEEK_END);
	char *ret = end > 0 ? malloc(end) : NULL;
	ssize_t n = ret ? pread(fd, ret, end, 0) : 0;

	*size = n > 0 ? n : 0;
	lseek(fd, 0, SEEK_SET);
	if (ftruncate(fd, 0))
		*size = 0;
	return ret;
}

char *curses_show(bool whole, size_t *size)
{
	if (whole) {
		/* What the library wrote before belongs to a screen that is not there. */
		free(take(size));
		lib.clearok(*lib.window, TRUE);
	}
	lib.wrefresh(*lib.window);
	return take(size);
}
