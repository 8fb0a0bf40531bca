// SPDX-License-Identifier: GPL-2.0-or-later
/* screen_name.c - the width of text for a terminal, as screen_name.h describes. */
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/report/screen_name.h"

#define WIDTH 80

unsigned int screen_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
		return WIDTH;
	return size.ws_col;
}

unsigned int screen_limit(void)
{
	return isatty(STDOUT_FILENO) ? screen_width() : 0;
}
