// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rings_test.c - tests that the rings of several CPUs are handed out as one stream, in the order of
 * time.
 *
 * The rings are memory of this test, so there are as many CPUs as it wants, and nothing is
 * recorded. Prints KTAP.
 */
#include "tools/perf/rings.c"

#define MOST_RINGS 300
#define SMALL_RING 4096 /* bytes: some records wrap around its end */
#define OF_EACH 40 /* records of each ring */

uint64_t now_ns(clockid_t clock)
{
	(void)clock;
	return 0;
}

/* The body of a record: its ring, and its number in the ring. */
struct number {
	uint32_t ring;
	uint32_t nr;
};

static struct perf_event_mmap_page pages[MOST_RINGS];
static uint8_t data[MOST_RINGS][SMALL_RING] __attribute__((aligned(8)));
static struct cpu_ring all[MOST_RINGS];
static struct cpu_ring none[MOST_RINGS]; /* none was replaced, and no walker has one */
static struct cpu_ring *heap[MOST_RINGS];

/*
 * What was handed out: the number of records in all and of each ring, time and ring of the last
 * one, and whether all came in order.
 */
static struct taken {
	uint64_t records;
	uint32_t of[MOST_RINGS];
	uint64_t time;
	uint32_t ring;
	bool ordered;
} taken;

static int take(void *arg, const struct perf_record *record)
{
	const struct number *n = record->body;

	(void)arg;
	/* Of two records of the same time, the one of the lower ring comes first. */
	if (record->time < taken.time || n->ring >= MOST_RINGS || n->nr != taken.of[n->ring] ||
	    (record->time == taken.time && n->ring < taken.ring))
		taken.ordered = false;
	taken.time = record->time;
	taken.ring = n->ring;
	taken.records++;
	taken.of[n->ring % MOST_RINGS]++;
	return 0;
}

static void write_word(uint32_t ring, uint64_t word)
{
	memcpy(&data[ring][pages[ring].data_head % SMALL_RING], &word, sizeof(word));
	pages[ring].data_head += sizeof(word);
}

/*
 * Writes a record that is no sample: its body, then thread, time and identifier. Some are longer.
 */
static void write_record(uint32_t ring, uint32_t nr, uint64_t time)
{
	struct perf_event_header head = { PERF_RECORD_SWITCH, 0, 48 + 8 * (nr % 4) };
	struct number number = { ring, nr };
	uint64_t word;

	memcpy(&word, &head, sizeof(word));
	write_word(ring, word);
	memcpy(&word, &number, sizeof(word));
	write_word(ring, word);
	for (uint32_t i = 0; i < 1 + nr % 4; i++)
		write_word(ring, 0);
	write_word(ring, 1 | 1ull << 32);
	write_word(ring, time);
	write_word(ring, 0);
}

/*
 * Fills each ring @times times, with times that lie between those of the others, and empties all.
 * Returns true if the records come as one stream.
 */
static bool is_one_stream(uint32_t nr_rings, unsigned int times)
{
	struct perf_rings r = { .rings = all, .old = none, .chains = none, .heap = heap };
	uint64_t time[MOST_RINGS] = { 0 }, seed = nr_rings;

	memset(pages, 0, sizeof(pages));
	taken = (struct taken){ .ordered = true };
	r.nr_rings = nr_rings;
	for (uint32_t i = 0; i < nr_rings; i++)
		all[i] = (struct cpu_ring){
			.cpu = i, .fd = -1, .page = &pages[i], .data = data[i], .size = SMALL_RING
		};
	for (unsigned int round = 0; round < times; round++) {
		for (uint32_t i = 0; i < nr_rings; i++) {
			time[i] = round * 1000;
			/* Every fifth ring is sometimes empty. */
			for (uint32_t n = 0; n < OF_EACH && (round % 2 == 0 || i % 5); n++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				time[i] += seed >> 60;
				write_record(i, taken.of[i] + n, time[i]);
			}
		}
		if (perf_rings_read(&r, true, take, NULL) || r.nr_heap)
			return false;
	}
	printf("# %u rings, %llu records\n", nr_rings, (unsigned long long)taken.records);
	return taken.ordered;
}

static uint64_t expected(uint32_t nr_rings, unsigned int times)
{
	uint64_t empty = times / 2 * ((nr_rings + 4) / 5);

	return OF_EACH * ((uint64_t)nr_rings * times - empty);
}

/* Writes the record that a process has the name of another program. */
static void write_comm(uint32_t ring, uint16_t misc, uint32_t pid, uint64_t time)
{
	struct perf_event_header head = { PERF_RECORD_COMM, misc, 48 };
	uint64_t word;

	memcpy(&word, &head, sizeof(word));
	write_word(ring, word);
	write_word(ring, pid | (uint64_t)pid << 32);
	write_word(ring, 'x');
	write_word(ring, 0);
	write_word(ring, time);
	write_word(ring, 0);
}

/* Tests that programs that were executed later are found before their records are handed out. */
static bool tells_of_programs(void)
{
	struct perf_rings r = {
		.rings = all, .old = none, .chains = none, .heap = heap, .nr_rings = 2
	};
	const uint16_t exec = PERF_RECORD_MISC_COMM_EXEC;
	bool good;

	memset(pages, 0, sizeof(pages));
	for (uint32_t i = 0; i < 2; i++)
		all[i] = (struct cpu_ring){
			.fd = -1, .page = &pages[i], .data = data[i], .size = SMALL_RING
		};
	write_record(1, 0, 10);
	write_comm(1, 0, 7, 20);
	write_comm(1, exec, 8, 30);
	good = !perf_rings_executes(&r, 7, 0) && perf_rings_executes(&r, 8, 29) &&
	       !perf_rings_executes(&r, 8, 30) && !perf_rings_executes(&r, 9, 0);
	all[1].tail = all[1].head = pages[1].data_head;
	return good && !perf_rings_executes(&r, 8, 0);
}

/* What came: for each record its CPU, and 's' for a chain or 'w' for another record. */
static char came[64];

static int note(void *arg, const struct perf_record *record)
{
	const size_t n = strlen(came);

	(void)arg;
	if (n + 2 < sizeof(came)) {
		came[n] = '0' + record->cpu;
		came[n + 1] = record->walked ? 's' : 'w';
	}
	return 0;
}

/* Writes a chain of no entries, as a walker does: the identifier is that of no event. */
static void write_chain(uint32_t ring, uint64_t time)
{
	struct perf_event_header head = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 64 };
	uint64_t word;

	memcpy(&word, &head, sizeof(word));
	write_word(ring, word);
	write_word(ring, 0);
	write_word(ring, 1 | 1ull << 32);
	write_word(ring, time);
	for (unsigned int i = 0; i < sizeof(struct walk_chain) / sizeof(word); i++)
		write_word(ring, i ? 0 : sizeof(struct walk_chain) - 4);
}

/* Writes what fills the end of a walker's ring, with old words that look like an early time. */
static void write_filler(uint32_t ring)
{
	struct perf_event_header head = { .size = 64 };
	uint64_t word;

	memcpy(&word, &head, sizeof(word));
	write_word(ring, word);
	for (unsigned int i = 0; i < 7; i++)
		write_word(ring, 1);
}

/* Tests that a walker's chains come in the order of time, behind what the kernel wrote on that CPU. */
static bool chains_are_among_records(void)
{
	struct perf_rings r = {
		.rings = all, .old = none, .chains = all + 2, .heap = heap, .nr_rings = 2
	};
	bool good;

	memset(pages, 0, sizeof(pages));
	for (uint32_t i = 0; i < 4; i++)
		all[i] = (struct cpu_ring){
			.cpu = i % 2,
			.fd = i < 2 ? (int)i : -1,
			.page = &pages[i],
			.data = data[i],
			.size = SMALL_RING,
		};
	write_record(0, 0, 10);
	write_record(0, 1, 20);
	write_record(1, 0, 10);
	write_chain(2, 5);
	write_filler(2);
	write_chain(2, 10);
	write_chain(2, 30);
	write_chain(3, 10);
	good = !add_identity(&r, 0, WALKED) && !perf_rings_read(&r, true, note, NULL) && !r.nr_heap;
	for (uint32_t i = 0; i < 4; i++)
		good &= pages[i].data_tail == pages[i].data_head;
	free(r.others);
	printf("# %s\n", came);
	return good && !strcmp(came, "0s0w0s1w1s0w0s");
}

/* Tests that all rings of a walker have one identifier, which is looked for at each of their records. */
static bool have_one_identifier(void)
{
	struct cpu_ring of_cpus[] = { { .cpu = 0 }, { .cpu = 1 }, { .cpu = 2 } }, chains[3] = { 0 };
	struct perf_rings r = { .rings = of_cpus, .chains = chains, .nr_rings = 3 };
	const int fd = memfd_create("ring", MFD_CLOEXEC);
	bool good = fd >= 0 && !ftruncate(fd, sizeof(struct walk_ring));

	for (int cpu = 0; cpu < 3; cpu++)
		good = good && !perf_rings_chains(&r, cpu, fd);
	good = good && r.nr_others == 1 && r.others[0].which == WALKED;
	for (int cpu = 0; cpu < 3; cpu++)
		unmap_ring(&chains[cpu]);
	free(r.others);
	if (fd >= 0)
		close(fd);
	return good;
}

enum room { NO_ROOM, ROOM, NO_LIMIT };

/*
 * Tests that there is room for the rings that take the place of others. Returns NO_LIMIT if this process may not
 * have as many open files as that takes.
 */
static enum room leaves_room(void)
{
	const struct perf_opts opts = { .main = perf_event_find("cpu-clock"), .nr_pids = 4 };
	const rlim_t needed = 2 * 4 * sysconf(_SC_NPROCESSORS_ONLN) + OTHER_FILES;
	struct rlimit limit = { needed, needed };
	bool good;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		return NO_LIMIT;
	good = perf_rings_fit(&opts, 0) && !perf_rings_fit(&opts, 1);
	limit.rlim_cur = limit.rlim_max = needed - 1;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return NO_LIMIT;
	return good && !perf_rings_fit(&opts, 0) ? ROOM : NO_ROOM;
}

static bool say(bool good, size_t nr, const char *name)
{
	printf("%sok %zu %s\n", good ? "" : "not ", nr, name);
	return good;
}

int main(void)
{
	static const uint32_t numbers[] = { 1, 2, 3, 4, 7, 64, MOST_RINGS };
	const size_t nr = sizeof(numbers) / sizeof(*numbers);
	unsigned int failed = 0;
	enum room room;

	printf("KTAP version 1\n1..%zu\n", nr + 4);
	for (size_t i = 0; i < nr; i++) {
		bool good = is_one_stream(numbers[i], 6) &&
			    taken.records == expected(numbers[i], 6);

		printf("%sok %zu records of %u rings come in the order of time, none is left\n",
		       good ? "" : "not ", i + 1, numbers[i]);
		failed += !good;
	}
	failed +=
		!say(tells_of_programs(), nr + 1,
		     "another program is known of before its record is handed out, if it is later");
	failed += !say(chains_are_among_records(), nr + 2,
		       "a walker's chains come in the order of time, behind records of the same");
	failed += !say(have_one_identifier(), nr + 3, "all rings of a walker have one identifier");
	room = leaves_room();
	failed += !say(room, nr + 4,
		       room == NO_LIMIT ?
			       "events fit # SKIP no room for the files of this many CPUs" :
			       "events fit if there is room for two sets of them");
	return !!failed;
}
