/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame_records.h - the frame records of a trace, in the form in which they are compared.
 *
 * Code that keeps frame pointers saves its caller's right below the return address. So one load of
 * 16 bytes reads both words.
 */
#ifndef SHSTK_FRAME_RECORDS_H
#define SHSTK_FRAME_RECORDS_H

#include <stdint.h>

/* 32 bits of each word of a frame record. */
struct frame_half {
	uint32_t fp;
	uint32_t ra;
};

/**
 * struct frame_records - frame records of neighbouring frames
 * @base: address of the innermost record.
 * @place: for each record, its distance from @base in units of 8 bytes.
 * @low: for each record, the lower halves of its words.
 * @high: the upper halves, which are the same for all records.
 * @from: number of frames in front of the innermost one that has a record here.
 * @end: number of frames in front of the outermost one, and itself.
 */
struct frame_records {
	const uint64_t *base;
	uint16_t *place;
	struct frame_half *low;
	struct frame_half high;
	int from, end;
};

/**
 * struct frame_four - four neighbouring frames of a short trace, in two lines of the cache
 * @raw: their return addresses.
 * @fp: the word below the return address, where it is a saved frame pointer that counts.
 * @mask: ~0 where it is, 0 where that word does not count.
 * @place: for each frame, the distance of the word below its return address from
 *	frame_fours.base, in units of 8 bytes.
 */
struct frame_four {
	uint64_t raw[4];
	uint64_t fp[4];
	uint64_t mask[4];
	uint16_t place[4];
} __attribute__((aligned(64)));

/**
 * struct frame_fours - all frames of a short trace behind the innermost one, at least 4
 * @base: address of the word below the innermost return address.
 * @four: the frames 0 to 3, 4 to 7 and so on.
 * @last: behind them, the last four frames.
 */
struct frame_fours {
	const uint64_t *base;
	struct frame_four *four, *last;
};

#endif
