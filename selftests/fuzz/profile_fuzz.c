// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profile_fuzz.c - profiles that are read: whatever they contain, they are refused with a reason,
 * or can be written in all formats; what is read again from that has the same sums.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/export.h"

#define LIMIT (64u << 20)

/* Whether sums may have reached the limit of their type, which then depend on the order. */
static bool large;

static bool take(void *arg, struct shstk_profile *profile, struct shstk_sample *sample,
		 int64_t *values)
{
	(void)arg, (void)sample;
	for (unsigned int i = 0; i < profile->nr_types; i++)
		large |= values[i] > (1ll << 40) || values[i] < -(1ll << 40);
	return true;
}

static struct shstk_profile *read_profile(const void *data, size_t size,
					  struct shstk_symbols **symbols)
{
	const struct shstk_symbols_opts opts = { .no_servers = true, .memory = LIMIT };
	const struct shstk_read_opts how = { .take = take };
	struct shstk_profile *profile;
	char err[512] = "";

	if (shstk_symbols_create(&opts, symbols) || shstk_profile_create(*symbols, &profile))
		abort();
	if (!shstk_profile_read_bytes(profile, "file", data, size, &how, err, sizeof(err)))
		return profile;
	if (strncmp(err, "cannot read 'file': ", 20) || !err[20])
		abort();
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(*symbols);
	return NULL;
}

static char *write_profile(struct shstk_profile *profile, const char *format, size_t *size)
{
	const struct shstk_write_opts opts = { .inverted = !strcmp(format, "folded") };
	char *text;
	FILE *out = open_memstream(&text, size);

	if (!out || shstk_profile_print(profile, out, format, &opts))
		abort();
	fclose(out);
	return text;
}

/*
 * Reads a written profile and compares the sums. It can be larger than what was read at first, and
 * then be too large.
 */
static void read_again(const struct shstk_profile *profile, const char *text, size_t size)
{
	struct shstk_symbols *symbols;
	struct shstk_profile *again = size < LIMIT / 64 ? read_profile(text, size, &symbols) : NULL;

	if (!again)
		return;
	for (unsigned int i = 0; i < profile->nr_types && !large; i++)
		if (shstk_profile_total(profile, i) != shstk_profile_total(again, i))
			abort();
	shstk_profile_destroy(again);
	shstk_symbols_destroy(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = {
		"folded", "svg", "perf", "top", "json", "pb", "shstk"
	};
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	size_t n;

	large = false;
	profile = read_profile(data, size, &symbols);
	if (!profile)
		return 0;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char *text = write_profile(profile, formats[i], &n);

		if (!strcmp(formats[i], "pb") || !strcmp(formats[i], "shstk"))
			read_again(profile, text, n);
		free(text);
	}
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return 0;
}
