// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_perf.c - the text that `perf script` prints.
 *
 *   comm pid/tid  SECONDS.MICROS:  PERIOD EVENT:
 *   	ADDRESS function+0xOFFSET (file)
 *   	ADDRESS function (inlined)
 *   (empty line)
 *
 * Cautions stand before all records as lines that begin with "# ", as the header of `perf script`
 * does. If the profile kept times, there is one record per sample; otherwise, and where values are
 * changes of a level (shstk_moments_fall()), one per distinct stack, at the time 0, with its whole
 * value as the period. Values below 0 have no record.
 */
#include "export.h"

static void put_location(FILE *out, const struct shstk_symbol *symbol,
			 const struct shstk_location *location)
{
	const struct shstk_symmap *map = location->map;
	unsigned int i;

	for (i = 0; i < symbol->nr; i++) {
		fprintf(out, "\t%16llx %s", (unsigned long long)location->pc,
			symbol->frames[i].function);
		if (symbol->frames[i].inlined) {
			fputs(" (inlined)\n", out);
			continue;
		}
		if (symbol->start && symbol->resolved)
			fprintf(out, "+0x%llx", (unsigned long long)symbol->offset);
		fprintf(out, " (%s)\n", *map->path ? map->path : map->name);
	}
}

/* Writes one record; @time is in ns. */
static void put_moment(const struct shstk_profile *profile, FILE *out,
		       const struct shstk_record *record, unsigned long long time, int64_t value,
		       unsigned int type)
{
	const char *event = profile->nr_types ? profile->types[type].type : "none";
	const struct shstk_location *location;
	uint64_t i;

	if (value < 0)
		return;
	fprintf(out, "%s %5d/%-5d %5llu.%06llu: %10lld %s: \n",
		*record->comm ? record->comm : "[no name]", shstk_symproc_pid(record->proc),
		record->tid, time / 1000000000, time / 1000 % 1000000, (long long)value, event);
	for (i = 0; i < record->nr; i++) {
		location = profile->locations[record->locations[i]];
		put_location(out, shstk_location_symbol(profile, location), location);
	}
	if (record->note > SHSTK_NOTE_TRUNCATED)
		fprintf(out, "\t%16x %s ([unknown])\n", 0, shstk_note_name(record->note));
	putc('\n', out);
}

static int write_perf(const struct shstk_profile *profile, FILE *out,
		      const struct shstk_write_opts *opts)
{
	unsigned int type = shstk_shown_type(profile, opts);
	const struct shstk_moments *moments = &profile->moments;
	const bool timed = moments->most && !shstk_moments_fall(moments, type);
	size_t i;

	for (i = 0; i < profile->nr_cautions; i++)
		fprintf(out, "# caution: %s\n", profile->cautions[i]);
	for (i = 0; timed && i < moments->nr; i++) {
		const struct shstk_moment *moment = shstk_moments_at(moments, i);

		put_moment(profile, out, moment->record, moment->time, moment->values[type], type);
	}
	for (i = 0; !timed && i < profile->nr_records; i++)
		put_moment(profile, out, profile->records[i], 0, profile->records[i]->values[type],
			   type);
	return 0;
}

const struct shstk_format shstk_format_perf = {
	.name = "perf",
	.suffixes = ".perf",
	.write = write_perf,
};
