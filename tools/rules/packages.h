/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packages.h - finds the programs and libraries of this system.
 */
#ifndef TOOLS_RULES_PACKAGES_H
#define TOOLS_RULES_PACKAGES_H

/**
 * package_files() - open each program and library once
 * @use: is called with each file, which it must close, and its name.
 * @arg: passed to @use.
 *
 * The function looks at the ELF files below /usr, /opt, /bin, /sbin and /lib*. It skips files with
 * debug information only, and other file systems that are mounted there.
 */
void package_files(void (*use)(void *arg, int fd, const char *path), void *arg);

#endif
