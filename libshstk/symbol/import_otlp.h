/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * import_otlp.h - reading messages of OpenTelemetry's profiles (otlp.h), ours and anybody's.
 */
#ifndef SHSTK_IMPORT_OTLP_H
#define SHSTK_IMPORT_OTLP_H

#include "import.h"

struct shstk_otlp_reader;

/**
 * enum shstk_otlp_part - what is read of a message
 * @SHSTK_OTLP_PART_END: what it says of the recording, if it is the last message.
 * @SHSTK_OTLP_PART_NAMES: the names of locations.
 * @SHSTK_OTLP_PART_SAMPLES: the samples.
 */
enum shstk_otlp_part {
	SHSTK_OTLP_PART_END,
	SHSTK_OTLP_PART_NAMES,
	SHSTK_OTLP_PART_SAMPLES,
};

/* Returns a reader for all messages of a file, or NULL when memory runs out. */
struct shstk_otlp_reader *shstk_otlp_reader_create(struct shstk_import *in);
void shstk_otlp_reader_destroy(struct shstk_otlp_reader *reader);

/* Reads a message. Returns 0, or a negative errno and sets the reason. */
int shstk_otlp_read(struct shstk_otlp_reader *reader, const uint8_t *data, size_t size,
		    enum shstk_otlp_part part);
/* Sets what the profile has of all messages together. Returns 0 or a negative errno. */
int shstk_otlp_finish(struct shstk_otlp_reader *reader);

/* Returns whether the last message was read. */
bool shstk_otlp_has_end(const struct shstk_otlp_reader *reader);
/* Returns where the last message says that names begin, or 0. */
uint64_t shstk_otlp_names_at(const struct shstk_otlp_reader *reader);
/* Returns what had been counted when the last of the messages was made, or NULL. */
const char *shstk_otlp_so_far(const struct shstk_otlp_reader *reader);

#endif /* SHSTK_IMPORT_OTLP_H */
