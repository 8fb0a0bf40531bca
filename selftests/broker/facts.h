/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * facts.h - prints test points in KTAP; counts them, and those that fail.
 */
#ifndef SELFTESTS_BROKER_FACTS_H
#define SELFTESTS_BROKER_FACTS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned int number, failed;

static void verdict(bool good, const char *fact)
{
	failed += !good;
	printf("%s %u %s\n", good ? "ok" : "not ok", ++number, fact);
	fflush(stdout);
}

static void __attribute__((unused)) skip(const char *fact, const char *why)
{
	printf("ok %u %s # SKIP %s\n", ++number, fact, why);
	fflush(stdout);
}

static _Noreturn void skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(4);
}

#endif
