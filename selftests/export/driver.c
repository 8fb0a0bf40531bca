// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * driver.c - gives scripts access to libshstk-symbol, by commands on standard input.
 *
 * A command is a line of words separated by tabs; %XX in a word is that byte. Numbers may be
 * hexadecimal with 0x. Each command prints its answer and then a line "ok" or "error TEXT".
 *
 *   proc NAME PID               make the view of a process
 *   fork NAME PARENT PID        make the view of its child
 *   maps NAME FILE              set mappings from a maps text
 *   live NAME                   set mappings from /proc
 *   map NAME START END OFFSET PATH [BUILDID]
 *   image NAME START END FILE   add a mapping of an image that is in no file
 *   unmap NAME START END
 *   perfmap NAME [FILE]
 *   excess                      a line per file that takes too much: 1 memory, 2 time,
 *                               3 both; path
 *   missing                     how many .dwo files are missing, and the first one
 *   shown ROOM FUNCTION         a name as it is shown in so many bytes
 *   find NAME ADDR              which mapping: start, end, kind, name
 *   lookup NAME ADDR pc|ret     a line per frame: function, linkage name, file,
 *                               line, start line, inlined, offset, module,
 *                               build id, resolved; tabs between them
 *   type TYPE UNIT
 *   period TYPE UNIT N
 *   time START DURATION
 *   comment TEXT
 *   caution TEXT
 *   keep [N]                    keep times of samples, N at most
 *   sample NAME TID COMM END TIME VALUES STACK
 *                               VALUES and STACK are separated by commas; an
 *                               address ending in p is a program counter
 *   label KEY VALUE             give the next sample this label, too
 *   repeat N                    add the next sample that many times
 *   write PATH FORMAT [OPTION...]   FORMAT may be "-": by suffix; options
 *                               icicle, threads, type=N, title=TEXT, top=N
 *   check PATH FORMAT
 *
 * The first argument is the colon-separated list of debug folders. The second one may be
 * "full-names"; "kernel", which names the kernel's functions, too; "memory=BYTES" or "time=NS".
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shstk.h"
#include "symbol/profile.h"

#define WORDS_MAX 32
#define PROCS_MAX 64

static struct shstk_symbols *symbols;
static struct shstk_profile *profile;
static struct {
	char name[32];
	struct shstk_symproc *proc;
} procs[PROCS_MAX];
static int nr_procs;
static unsigned int nr_types;
static unsigned long repeat = 1;
static char labels[65536];
static size_t labels_size;

static void unescape(char *s)
{
	char *to = s, hex[3] = {};

	for (; *s; s++) {
		if (*s == '%' && isxdigit(s[1]) && isxdigit(s[2])) {
			memcpy(hex, s + 1, 2);
			*to++ = strtoul(hex, NULL, 16);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static uint64_t number(const char *s)
{
	return s ? strtoull(s, NULL, 0) : 0;
}

static struct shstk_symproc *get_proc(const char *name)
{
	int i;

	for (i = 0; name && i < nr_procs; i++)
		if (!strcmp(procs[i].name, name) && procs[i].proc)
			return procs[i].proc;
	fprintf(stderr, "driver: no process %s\n", name);
	exit(2);
}

static struct shstk_symproc **add_proc(const char *name)
{
	if (nr_procs == PROCS_MAX)
		exit(2);
	snprintf(procs[nr_procs].name, sizeof(procs[0].name), "%s", name);
	return &procs[nr_procs++].proc;
}

static int set_maps(struct shstk_symproc *proc, const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = malloc(1 << 20);
	size_t size;
	int ret;

	if (!file || !text)
		exit(2);
	size = fread(text, 1, 1 << 20, file);
	fclose(file);
	ret = shstk_symproc_set_maps(proc, text, size);
	free(text);
	printf("%d\n", ret);
	return ret < 0 ? ret : 0;
}

static int add_map(char **w)
{
	struct shstk_symmap_info info = {
		.start = number(w[2]),
		.end = number(w[3]),
		.offset = number(w[4]),
		.path = w[5],
	};
	uint8_t id[64];
	unsigned int i;

	if (w[6]) {
		for (i = 0; i < sizeof(id) && w[6][2 * i]; i++)
			sscanf(w[6] + 2 * i, "%2hhx", &id[i]);
		info.build_id = id;
		info.build_id_size = i;
	}
	return shstk_symproc_add(get_proc(w[1]), &info);
}

/* Adds a mapping of an image that is in no file; the image's bytes are read from a file. */
static int add_image(char **w)
{
	struct shstk_symmap_info info = {
		.start = number(w[2]),
		.end = number(w[3]),
		.path = "[vdso]",
	};
	FILE *file = fopen(w[4], "r");
	char *image = malloc(1 << 20);
	int ret;

	if (!file || !image)
		exit(2);
	info.image_size = fread(image, 1, 1 << 20, file);
	info.image = image;
	fclose(file);
	ret = shstk_symproc_add(get_proc(w[1]), &info);
	free(image);
	return ret;
}

static int missing(void)
{
	const char *first;
	size_t nr = shstk_symbols_missing(symbols, &first);

	printf("%zu\n", nr);
	if (first)
		printf("%s\n", first);
	return 0;
}

static int excess(void)
{
	const char *name;
	unsigned int what;

	for (size_t i = 0; (name = shstk_symbols_excess(symbols, i, &what)); i++)
		printf("%u\t%s\n", what, name);
	return 0;
}

static int find(char **w)
{
	static const char *const kinds[] = { "file", "vdso", "anon", "none" };
	const struct shstk_symmap *map;

	map = shstk_symproc_find(get_proc(w[1]), number(w[2]));
	printf("%llx\t%llx\t%s\t%s\n", (unsigned long long)map->start, (unsigned long long)map->end,
	       kinds[map->kind], map->name);
	return 0;
}

static int lookup(char **w)
{
	const struct shstk_symbol *symbol;
	const struct shstk_symframe *frame;
	unsigned int i;
	size_t k;

	symbol = shstk_symproc_lookup(get_proc(w[1]), number(w[2]),
				      strcmp(w[3], "pc") ? SHSTK_SYMADDR_RETURN : SHSTK_SYMADDR_PC);
	for (i = 0; i < symbol->nr; i++) {
		frame = symbol->frames + i;
		printf("%s\t%s\t%s\t%u\t%u\t%d\t%llx\t%s\t", frame->function, frame->linkage,
		       frame->file ? frame->file : "", frame->line, frame->start_line,
		       frame->inlined, (unsigned long long)symbol->offset, symbol->map->name);
		for (k = 0; k < symbol->map->build_id_size; k++)
			printf("%02x", symbol->map->build_id[k]);
		printf("\t%d\n", symbol->resolved);
	}
	return 0;
}

static unsigned int split_numbers(char *list, uint64_t *to, uint8_t *marks, unsigned int max)
{
	unsigned int n = 0;
	char *save, *word, *end;

	for (word = strtok_r(list, ",", &save); word && n < max;
	     word = strtok_r(NULL, ",", &save)) {
		to[n] = strtoull(word, &end, 0);
		if (marks)
			marks[n] = *end == 'p' ? SHSTK_MARK_PC : *end == 'g' ? SHSTK_MARK_GUESS : 0;
		n++;
	}
	return n;
}

static int sample(char **w)
{
	static uint64_t pcs[65536], values[64];
	static uint8_t marks[65536];
	struct shstk_sample s = {
		.proc = get_proc(w[1]),
		.tid = number(w[2]),
		.comm = w[3],
		.end = number(w[4]),
		.time = number(w[5]),
		.pcs = pcs,
		.marks = marks,
		.values = (int64_t *)values,
		.labels = labels,
		.labels_size = labels_size,
	};
	int err = 0;

	if (split_numbers(w[6], values, NULL, 64) != nr_types)
		exit(2);
	s.nr = w[7] ? split_numbers(w[7], pcs, marks, 65536) : 0;
	for (; repeat && !err; repeat--, s.time += 1000000)
		err = shstk_profile_add(profile, &s);
	repeat = 1;
	labels_size = 0;
	return err;
}

static void add_label(const char *text)
{
	size_t size = strlen(text) + 1;

	if (size > sizeof(labels) - labels_size)
		exit(2);
	memcpy(labels + labels_size, text, size);
	labels_size += size;
}

static int write_file(char **w, char *err, size_t size)
{
	struct shstk_write_opts opts = {};
	char **option;

	for (option = w + 3; w[2] && *option; option++) {
		opts.icicle |= !strcmp(*option, "icicle");
		opts.per_thread |= !strcmp(*option, "threads");
		if (!strncmp(*option, "type=", 5))
			opts.type = number(*option + 5);
		if (!strncmp(*option, "top=", 4))
			opts.top = number(*option + 4);
		if (!strncmp(*option, "title=", 6))
			opts.title = *option + 6;
	}
	return shstk_profile_write(profile, w[1], strcmp(w[2], "-") ? w[2] : NULL, &opts, err,
				   size);
}

static int run(char **w, char *err, size_t size)
{
	const char *c = w[0];
	int ret;

	if (!strcmp(c, "proc"))
		return shstk_symproc_create(symbols, number(w[2]), add_proc(w[1]));
	if (!strcmp(c, "fork"))
		return shstk_symproc_fork(get_proc(w[2]), number(w[3]), add_proc(w[1]));
	if (!strcmp(c, "maps"))
		return set_maps(get_proc(w[1]), w[2]);
	if (!strcmp(c, "live")) {
		ret = shstk_symproc_read_maps(get_proc(w[1]));
		return ret < 0 ? ret : 0;
	}
	if (!strcmp(c, "map"))
		return add_map(w);
	if (!strcmp(c, "image"))
		return add_image(w);
	if (!strcmp(c, "unmap"))
		return shstk_symproc_remove(get_proc(w[1]), number(w[2]), number(w[3]));
	if (!strcmp(c, "perfmap")) {
		ret = shstk_symproc_add_perf_map(get_proc(w[1]), w[2]);
		printf("%d\n", ret);
		return ret < 0 ? ret : 0;
	}
	if (!strcmp(c, "excess"))
		return excess();
	if (!strcmp(c, "missing"))
		return missing();
	if (!strcmp(c, "shown")) {
		static char label[SHSTK_LABEL_MAX];

		printf("%s\n", shstk_label(w[2], number(w[1]), label, sizeof(label)));
		return 0;
	}
	if (!strcmp(c, "find"))
		return find(w);
	if (!strcmp(c, "lookup"))
		return lookup(w);
	if (!strcmp(c, "type")) {
		nr_types++;
		ret = shstk_profile_add_type(profile, w[1], w[2]);
		return ret < 0 ? ret : 0;
	}
	if (!strcmp(c, "period"))
		return shstk_profile_set_period(profile, w[1], w[2], number(w[3]));
	if (!strcmp(c, "time")) {
		shstk_profile_set_time(profile, number(w[1]), number(w[2]));
		return 0;
	}
	if (!strcmp(c, "comment"))
		return shstk_profile_comment(profile, w[1]);
	if (!strcmp(c, "caution"))
		return shstk_profile_caution(profile, w[1]);
	if (!strcmp(c, "keep")) {
		shstk_profile_keep_times(profile, w[1] ? number(w[1]) : SIZE_MAX);
		return 0;
	}
	if (!strcmp(c, "life")) {
		const struct shstk_life life = {
			.time = number(w[2]),
			.comm = w[4],
			.pid = number(w[1]),
			.ended = !strcmp(w[3], "ended"),
		};

		return shstk_profile_live(profile, &life);
	}
	if (!strcmp(c, "sample"))
		return sample(w);
	if (!strcmp(c, "label")) {
		add_label(w[1]);
		add_label(w[2]);
		return 0;
	}
	if (!strcmp(c, "repeat")) {
		repeat = number(w[1]);
		return 0;
	}
	if (!strcmp(c, "write"))
		return write_file(w, err, size);
	if (!strcmp(c, "check"))
		return shstk_profile_check(w[1], strcmp(w[2], "-") ? w[2] : NULL, err, size);
	fprintf(stderr, "driver: no command %s\n", c);
	exit(2);
}

int main(int argc, char **argv)
{
	struct shstk_symbols_opts opts = {
		.debug_dirs = argc > 1 ? argv[1] : NULL,
		.full_names = argc > 2 && !strcmp(argv[2], "full-names"),
		.kernel = argc > 2 && !strcmp(argv[2], "kernel"),
		.memory = argc > 2 && !strncmp(argv[2], "memory=", 7) ? number(argv[2] + 7) : 0,
		.time = argc > 2 && !strncmp(argv[2], "time=", 5) ? number(argv[2] + 5) : 0,
	};
	char *line = NULL, *w[WORDS_MAX + 1], *word, *save, err[512];
	size_t size = 0;
	int n, ret;

	if (shstk_symbols_create(&opts, &symbols) || shstk_profile_create(symbols, &profile))
		return 2;
	while (getline(&line, &size, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		memset(w, 0, sizeof(w));
		for (n = 0, word = strtok_r(line, "\t", &save); word && n < WORDS_MAX;
		     word = strtok_r(NULL, "\t", &save)) {
			unescape(word);
			w[n++] = word;
		}
		if (!n)
			continue;
		*err = '\0';
		ret = run(w, err, sizeof(err));
		if (ret)
			printf("error %s\n", *err ? err : strerror(-ret));
		else
			puts("ok");
		fflush(stdout);
	}
	free(line);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return 0;
}
