/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.h - reads the JSON with which a server answers questions about debug files.
 *
 * Of a text only single members are wanted. It is walked once, from its beginning to its end, and is
 * taken only if all of it is JSON (RFC 8259; bytes of strings may be no UTF-8) and its outermost value
 * is an object. Nesting has a bound, each step goes forward, and no memory is allocated, so any bytes
 * may come.
 */
#ifndef TOOLS_PUSH_SEND_ANSWER_H
#define TOOLS_PUSH_SEND_ANSWER_H

#include <stddef.h>

#define ANSWER_DEPTH 16 /* values inside each other at most */

/**
 * enum answer_kind - what a member is
 * @ANSWER_ABSENT: it is not there, or null.
 * @ANSWER_TEXT: a string.
 * @ANSWER_TRUE: true.
 * @ANSWER_FALSE: false.
 * @ANSWER_OTHER: something else: a number, an object, an array.
 */
enum answer_kind {
	ANSWER_ABSENT,
	ANSWER_TEXT,
	ANSWER_TRUE,
	ANSWER_FALSE,
	ANSWER_OTHER,
};

/**
 * struct answer_member - a member that is wanted
 * @outer: name of the member of the outermost object that is an object with this one; NULL: this
 *	one is a member of the outermost object itself.
 * @name: its name.
 * @text: receives a string, with a zero byte behind it; what is no printable ASCII becomes '?'.
 * @room: bytes of @text.
 * @kind: receives enum answer_kind.
 */
struct answer_member {
	const char *outer;
	const char *name;
	char *text;
	size_t room;
	enum answer_kind kind;
};

/**
 * answer_read() - find members in a text
 * @text: the text.
 * @size: its bytes.
 * @members: the members that are wanted, which receive what was found.
 * @nr: number of elements of @members.
 *
 * A text with one of them twice, or with a string that does not fit, is refused, so that nobody takes
 * a part of it for the whole.
 *
 * Return: 0, or -EBADMSG: @members say nothing.
 */
int answer_read(const char *text, size_t size, struct answer_member *members, size_t nr);

#endif
