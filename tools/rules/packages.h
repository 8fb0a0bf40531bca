/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packages.h - the programs and libraries of this system.
 */
#ifndef TOOLS_RULES_PACKAGES_H
#define TOOLS_RULES_PACKAGES_H

/**
 * package_files() - open each program and library once
 * @use: called with each file, which is its to close, and its name.
 * @arg: passed to @use.
 *
 * Looked at are the ELF files below /usr, /opt, /bin, /sbin and /lib*, not those that
 * hold debugging information only, nor other file systems mounted there.
 */
void package_files(void (*use)(void *arg, int fd, const char *path), void *arg);

#endif
