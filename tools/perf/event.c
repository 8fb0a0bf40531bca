// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * event.c - finds perf events by the names that people give them.
 *
 * What the kernel says of its events is read from /sys and tracefs. Names of the CPU's own events
 * (skl::UOPS_RETIRED:ALL) are known to libpfm4, which is loaded only when nothing else knows the
 * name.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf/event.h"

#define DEVICES "/sys/bus/event_source/devices"
#define NAME_ROOM 128
#define TEXT_ROOM 512
#define EVENT_ROOM 200 /* bytes of an event as people write it */
#define NESTED 2 /* levels of names: an event of a PMU is made of terms, which are no events */

#define CLOCK(n, event)                                                                 \
	{                                                                               \
		.name = n, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##event, \
		.clock = true                                                           \
	}
#define SOFTWARE(n, event)                                                             \
	{                                                                              \
		.name = n, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##event \
	}
#define HARDWARE(n, event)                                                             \
	{                                                                              \
		.name = n, .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##event \
	}

static const struct perf_event events[] = {
	CLOCK("cpu-clock", CPU_CLOCK),
	CLOCK("task-clock", TASK_CLOCK),
	SOFTWARE("page-faults", PAGE_FAULTS),
	SOFTWARE("major-faults", PAGE_FAULTS_MAJ),
	SOFTWARE("migrations", CPU_MIGRATIONS),
	HARDWARE("cycles", CPU_CYCLES),
	HARDWARE("instructions", INSTRUCTIONS),
	HARDWARE("branches", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", BRANCH_MISSES),
	HARDWARE("cache-references", CACHE_REFERENCES),
	HARDWARE("cache-misses", CACHE_MISSES),
};

/* Other names of these events, and events that are not worth a place in a list. */
static const struct perf_event aliases[] = {
	SOFTWARE("faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", PAGE_FAULTS_MIN),
	SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
	SOFTWARE("context-switches", CONTEXT_SWITCHES),
	SOFTWARE("cs", CONTEXT_SWITCHES),
	SOFTWARE("alignment-faults", ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", EMULATION_FAULTS),
	HARDWARE("cpu-cycles", CPU_CYCLES),
	HARDWARE("branch-instructions", BRANCH_INSTRUCTIONS),
	HARDWARE("bus-cycles", BUS_CYCLES),
	HARDWARE("ref-cycles", REF_CPU_CYCLES),
	HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("idle-cycles-backend", STALLED_CYCLES_BACKEND),
};

#define NR_EVENTS (sizeof(events) / sizeof(events[0]))
#define NR_ALIASES (sizeof(aliases) / sizeof(aliases[0]))

bool perf_event_by_kernel(const struct perf_event *event)
{
	return (event->type == PERF_TYPE_SOFTWARE || event->type == PERF_TYPE_TRACEPOINT) &&
	       !event->clock && !event->raw;
}

bool perf_event_in_kernel(const struct perf_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		event->config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

const struct perf_event *perf_event_find(const char *name)
{
	for (size_t i = 0; i < NR_EVENTS; i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

const char *perf_event_names(void)
{
	static char names[256];
	size_t n = 0;

	for (size_t i = 0; i < NR_EVENTS && n < sizeof(names); i++)
		n += snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "", events[i].name);
	return names;
}

static bool find_named(const char *name, struct perf_event *ret)
{
	const struct perf_event *event = perf_event_find(name);

	for (size_t i = 0; !event && i < NR_ALIASES; i++)
		if (!strcmp(aliases[i].name, name))
			event = &aliases[i];
	if (event)
		*ret = *event;
	return event;
}

/*
 * Parses rHEX, a number that is written to the counter's control register. Returns false if it is
 * something else.
 */
static bool find_code(const char *name, struct perf_event *ret)
{
	char *end;

	if (name[0] != 'r' || !isxdigit((unsigned char)name[1]))
		return false;
	ret->config = strtoull(name + 1, &end, 16);
	ret->type = PERF_TYPE_RAW;
	return !*end;
}

/* ---- PMU/TERM=VALUE,.../ ---- */

/* Reads the first line of a file below a device's folder. Returns false if there is none. */
static bool read_line(const char *device, const char *folder, const char *file, char *ret,
		      size_t size)
{
	char path[3 * NAME_ROOM + sizeof(DEVICES)];
	FILE *in;
	bool ok;

	if (strchr(file, '/') || !strcmp(file, ".."))
		return false;
	snprintf(path, sizeof(path), DEVICES "/%s/%s%s", device, folder, file);
	in = fopen(path, "re");
	if (!in)
		return false;
	ok = fgets(ret, size, in);
	fclose(in);
	if (ok)
		ret[strcspn(ret, "\n")] = '\0';
	return ok;
}

/*
 * Puts the lowest bits of @value into the bits that @ranges names, such as "0-7,32". Returns false
 * if
 * @ranges is invalid or @value has more bits.
 */
static bool put_bits(const char *ranges, uint64_t value, uint64_t *config)
{
	unsigned long first, last;
	char *end;

	while (*ranges) {
		first = last = strtoul(ranges, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == ranges || first > last || last > 63)
			return false;
		for (; first <= last; first++, value >>= 1)
			*config |= (value & 1) << first;
		ranges = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return false;
	}
	return !value;
}

static uint64_t *find_config(struct perf_event *event, const char *name)
{
	return !strcmp(name, "config")	? &event->config :
	       !strcmp(name, "config1") ? &event->config1 :
	       !strcmp(name, "config2") ? &event->config2 :
					  NULL;
}

static bool put_terms(const char *device, const char *terms, int depth, struct perf_event *ret);

static bool put_term(const char *device, const char *name, uint64_t value, int depth,
		     struct perf_event *ret)
{
	uint64_t *config = find_config(ret, name);
	char text[TEXT_ROOM], *colon;

	if (config) {
		*config = value;
		return true;
	}
	if (read_line(device, "format/", name, text, sizeof(text))) {
		colon = strchr(text, ':');
		if (!colon)
			return false;
		*colon = '\0';
		config = find_config(ret, text);
		return config && put_bits(colon + 1, value, config);
	}
	return depth < NESTED && read_line(device, "events/", name, text, sizeof(text)) &&
	       put_terms(device, text, depth + 1, ret);
}

static bool put_terms(const char *device, const char *terms, int depth, struct perf_event *ret)
{
	char copy[TEXT_ROOM], *save = NULL, *equals, *end;
	uint64_t value;

	if (strlen(terms) >= sizeof(copy))
		return false;
	strcpy(copy, terms);
	for (char *term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		value = 1;
		equals = strchr(term, '=');
		if (equals) {
			*equals = '\0';
			value = strtoull(equals + 1, &end, 0);
			if (end == equals + 1 || *end)
				return false;
		}
		if (!put_term(device, term, value, depth, ret))
			return false;
	}
	return true;
}

/*
 * Finds an event of the form PMU/TERM=VALUE,.../. Returns 0; -ENOENT if @name has another form;
 * -EINVAL.
 */
static int find_of_device(char *name, struct perf_event *ret, struct reason *why)
{
	char *slash = strchr(name, '/'), *end, type[32];
	size_t size = strlen(name);

	if (!slash || slash == name || slash - name >= NAME_ROOM || name[size - 1] != '/' ||
	    slash == name + size - 1)
		return -ENOENT;
	*slash = name[size - 1] = '\0';
	if (strcmp(name, "..") && read_line(name, "", "type", type, sizeof(type))) {
		ret->type = strtoul(type, &end, 10);
		if (!put_terms(name, slash + 1, 0, ret))
			return because(why,
				       "event source '%s' has nothing like '%s'; see " DEVICES
				       "/%s/format and events",
				       name, slash + 1, name),
			       -EINVAL;
		return 0;
	}
	because(why, "there is no event source '%s' in " DEVICES, name);
	return -EINVAL;
}

/* ---- Tracepoints ---- */

/* Finds a tracepoint. Returns 0; -ENOENT if @name is not one; another negative errno. */
static int find_tracepoint(const char *name, struct perf_event *ret, struct reason *why)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	const char *colon = strchr(name, ':');
	char path[TEXT_ROOM];
	unsigned long long id;
	FILE *in = NULL;
	int err = 0;

	if (!colon || strchr(name, '/') || colon == name || !colon[1] || strchr(colon + 1, ':'))
		return -ENOENT;
	for (size_t i = 0; !in && i < 2; i++) {
		snprintf(path, sizeof(path), "%s/events/%.*s/%s/id", roots[i], (int)(colon - name),
			 name, colon + 1);
		in = fopen(path, "re");
		if (!in && errno != ENOENT)
			err = -errno;
	}
	if (!in && err)
		because(why, "tracepoint %.199s: its id in tracefs cannot be read: %s", name,
			strerror(-err));
	if (!in)
		return err ? err : -ENOENT;
	ret->type = PERF_TYPE_TRACEPOINT;
	err = fscanf(in, "%llu", &id) == 1 ? 0 : -EINVAL;
	ret->config = id;
	fclose(in);
	return err;
}

/* ---- libpfm4 ---- */

struct pfm_library {
	typeof(pfm_initialize) *begin;
	typeof(pfm_get_os_event_encoding) *find;
	typeof(pfm_strerror) *words;
};

static bool load(struct pfm_library *lib)
{
	void *handle = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return false;
	lib->begin = (typeof(lib->begin))dlsym(handle, "pfm_initialize");
	lib->find = (typeof(lib->find))dlsym(handle, "pfm_get_os_event_encoding");
	lib->words = (typeof(lib->words))dlsym(handle, "pfm_strerror");
	return lib->begin && lib->find && lib->words;
}

/* Says that the event is unknown and which ones are known. */
static void explain(const char *name, const char *words, struct reason *why)
{
	bool tracepoint = strchr(name, ':') && access("/sys/kernel/tracing/events", F_OK);

	because(why,
		"unknown event '%s'; known are %s, rHEX, PMU/TERM=VALUE/, SUBSYSTEM:TRACEPOINT%s, and the CPU's own names (%s)",
		name, perf_event_names(),
		tracepoint ? " once tracefs is mounted at /sys/kernel/tracing" : "", words);
}

static int find_by_library(const char *name, struct perf_event *ret, struct reason *why)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg), .cpu = -1 };
	struct pfm_library lib;
	int err;

	if (!load(&lib)) {
		explain(name, "if libpfm4 is installed", why);
		return -ENOENT;
	}
	err = lib.begin();
	if (err == PFM_SUCCESS)
		err = lib.find(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
	if (err != PFM_SUCCESS) {
		explain(name, lib.words(err), why);
		return -ENOENT;
	}
	ret->type = attr.type;
	ret->config = attr.config;
	ret->config1 = attr.config1;
	ret->config2 = attr.config2;
	ret->no_kernel = attr.exclude_kernel;
	ret->no_user = attr.exclude_user;
	return 0;
}

/* ---- All kinds ---- */

/* Cuts modifiers off the end of @name: ":uk", or "uk" after the last slash of a PMU's event. */
static void take_modifiers(char *name, struct perf_event *ret)
{
	char *at = strrchr(name, ':'), *slash = strrchr(name, '/');
	bool user = false, kernel = false;
	unsigned int precise = 0;

	if (slash && (!at || at < slash))
		at = slash;
	if (!at || !at[1] || strspn(at + 1, "ukp") != strlen(at + 1))
		return;
	for (const char *letter = at + 1; *letter; letter++) {
		user |= *letter == 'u';
		kernel |= *letter == 'k';
		precise += *letter == 'p';
	}
	ret->no_kernel = user && !kernel;
	ret->no_user = kernel && !user;
	ret->precise = precise < 3 ? precise : 3;
	at[*at == '/'] = '\0';
}

static int find(char *name, struct perf_event *ret, struct reason *why)
{
	int err;

	if (find_named(name, ret) || find_code(name, ret))
		return 0;
	err = find_of_device(name, ret, why);
	if (err == -ENOENT)
		err = find_tracepoint(name, ret, why);
	return err == -ENOENT ? find_by_library(name, ret, why) : err;
}

int perf_event_parse(const char *text, struct perf_event *ret, struct reason *why)
{
	struct perf_event modified = { .name = text };
	char name[EVENT_ROOM];
	int err;

	*ret = modified;
	if (strlen(text) >= sizeof(name)) {
		because(why, "the event's name is longer than %zu bytes", sizeof(name) - 1);
		return -EINVAL;
	}
	strcpy(name, text);
	take_modifiers(name, &modified);
	err = find(name, ret, why);
	ret->name = text;
	ret->clock = ret->type == PERF_TYPE_SOFTWARE && (ret->config == PERF_COUNT_SW_CPU_CLOCK ||
							 ret->config == PERF_COUNT_SW_TASK_CLOCK);
	ret->no_kernel |= modified.no_kernel;
	ret->no_user |= modified.no_user;
	ret->precise = modified.precise;
	return err;
}
