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

#endif
