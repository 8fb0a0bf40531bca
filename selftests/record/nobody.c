// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nobody.c - executes a program as an ordinary user, without root's rights.
 *
 *   nobody PROGRAM [ARGUMENT...]
 */
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

#define NOBODY 65534

int main(int argc, char **argv)
{
	if (argc < 2)
		return 99;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)) {
		perror("nobody");
		return 99;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 99;
}
