// SPDX-License-Identifier: GPL-2.0-or-later
/* jvm.c - libjvm.so, as far as a recorder looks: its name. For jit.c. */
int jvm(void);

int jvm(void)
{
	return 0;
}
