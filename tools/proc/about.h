/* SPDX-License-Identifier: GPL-2.0-or-later */
/* about.h - what /proc tells of a process, as labels of its samples. */
#ifndef TOOLS_PROC_ABOUT_H
#define TOOLS_PROC_ABOUT_H

#include <stddef.h>
#include <sys/types.h>

#define ABOUT_MAX 4096 /* bytes of the labels of a process at most */

/**
 * about_process() - describe a living process
 * @pid: the process.
 * @labels: receives keys and values, each followed by a zero byte, as &struct shstk_sample has them:
 *	"process", the name of its first thread; "command", its command line, cut after 1 KiB;
 *	"cgroup", its control group; and "container", if the name of that has the ID of one. What
 *	/proc does not tell is left out. ABOUT_MAX bytes.
 *
 * Return: the bytes in @labels.
 */
size_t about_process(pid_t pid, char *labels);

#endif
