/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Included before an upstream test: a kernel without userfaultfd, as far as
 * the test can see. It then skips that check and goes on.
 */
#include <sys/syscall.h>
#undef __NR_userfaultfd
#define __NR_userfaultfd 0xffff
