// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * contexts.c - finds the processes whose threads publish trace contexts, and joins what was read of
 * them with samples. See contexts.h.
 *
 * What a process publishes of itself is found and read as OTEP 4719 says ("Reading Protocol"): a
 * mapping with a certain name has a header, whose time tells changes. Only then are its files looked
 * through for the variable (OTEP 4947, "Reading Protocol").
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/otlp_process.h"
#include "tools/convert/context_labels.h"
#include "tools/convert/contexts.h"
#include "tools/convert/context_variable.h"
#include "tools/convert/living_files.h"
#include "tools/convert/mappings.h"
#include "tools/language/languages.h"
#include "tools/proc/maps.h"
#include "tools/shstk.h"

#define MAX_MOMENTS 16384 /* threads whose last context belongs to no sample yet */
#define MAX_APART 1000000000 /* ns between a context and its sample, at most */
#define SOON 20000000 /* ns until a process is looked at again, at least */
#define LATE 30000000000 /* ns, at most */
#define PUBLISHED 200000000 /* ns, if it publishes: its header may have moved */
#define PART 2 /* otherwise, this part of the time since it was first looked at */
#define TRIES 3 /* of reading what may be changing */
#define FILES 512 /* that were looked through and are remembered */

/* The header of a process context (OTEP 4719, "Header Structure"). */
struct header {
	uint64_t signature;
	uint32_t version;
	uint32_t size;
	uint64_t published;
	uint64_t payload;
};

/* A file that a process has mapped. */
struct searched_file {
	uint64_t start;
	uint64_t dev;
	uint64_t inode;
};

/**
 * struct context_watch - what is known of a process
 * @pid: the process.
 * @files: where its files and its memory are found.
 * @first: when it was first looked at, in ns.
 * @last: when it was last looked at.
 * @next: when it is looked at again.
 * @published: the header's time when the process context was read; 0: there is none.
 * @moved: files that were not looked through yet are to be.
 * @searched: files that were looked through; NULL: none.
 * @nr_searched: number of @searched.
 * @told: what the BPF program was told.
 * @process: the process context.
 */
struct context_watch {
	pid_t pid;
	const struct mappings_files *files;
	uint64_t first;
	uint64_t last;
	uint64_t next;
	uint64_t published;
	bool moved;
	struct searched_file *searched;
	unsigned int nr_searched;
	struct context_process told;
	struct shstk_otlp_process process;
};

/* The context of a thread that belongs to no sample yet. */
struct kept_context {
	UT_hash_handle hh;
	int tid;
	uint64_t time;
	uint64_t pc;
	struct context_record record;
	uint8_t attributes[];
};

struct contexts {
	struct languages *languages;
	struct kept_context *kept;
};

struct contexts *contexts_create(struct languages *languages)
{
	struct contexts *all = calloc(1, sizeof(*all));

	if (all)
		all->languages = languages;
	return all;
}

void contexts_destroy(struct contexts *all)
{
	if (all)
		contexts_lost(all);
	free(all);
}

/* ---- Process contexts ---- */

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct context_watch *w = arg;

	return w->files->read(w->files->arg, w->pid, addr, buf, size);
}

static bool read_header(struct context_watch *w, uint64_t at, struct header *ret)
{
	return !read_memory(w, at, ret, sizeof(*ret)) && ret->signature == CONTEXT_SIGNATURE &&
	       ret->version == CONTEXT_VERSION;
}

/* Reads the message of a header, unless it is being changed. Returns whether it was read. */
static bool read_message(struct context_watch *w, uint64_t at, const struct header *head)
{
	uint8_t *bytes = head->size <= SHSTK_OTLP_PROCESS_MAX ? malloc(head->size + 1) : NULL;
	struct header after;
	bool ret = bytes && head->published && !read_memory(w, head->payload, bytes, head->size);

	/* The second look tells whether the message was changed in between. */
	ret = ret && read_header(w, at, &after) && after.published == head->published;
	if (ret) {
		shstk_otlp_process_free(&w->process);
		ret = !shstk_otlp_process_read(bytes, head->size, &w->process);
	}
	free(bytes);
	return ret;
}

/* Reads the process context whose header is at an address. Returns whether there is one. */
static bool try_process(struct context_watch *w, uint64_t at)
{
	struct header head;

	for (int i = 0; i < TRIES; i++) {
		if (!read_header(w, at, &head))
			return false;
		if (!read_message(w, at, &head))
			continue;
		w->published = head.published;
		w->told.header = at;
		return true;
	}
	return false;
}

/* The same, as long as the process's account has time: it may change its message all the time. */
static bool read_process(struct context_watch *w, uint64_t at)
{
	struct shstk_account *account = w->files->account(w->files->arg, w->pid);
	bool ret = false;

	if (!account)
		return false;
	if (shstk_account_begin(account))
		ret = try_process(w, at);
	shstk_account_end(account);
	return ret;
}

static bool is_process_context(const char *path)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					     "/memfd:OTEL_CTX" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(path, names[i], strlen(names[i])))
			return true;
	return false;
}

/* ---- Variables ---- */

/* Finds the variable of a file. Returns as context_variable_find() does. */
static int search_file(struct context_watch *w, const struct mappings_map *map,
		       struct shstk_account *account, struct context_variable *ret)
{
	struct language_module module = {
		.fd = w->files->open(w->files->arg, w->pid, map),
		.start = map->start,
		.offset = map->offset,
		.read = read_memory,
		.arg = w,
		.account = account,
	};
	int err;

	if (module.fd < 0)
		return -ENOENT;
	err = context_variable_find(&module, CONTEXT_VARIABLE, ret);
	close(module.fd);
	return err;
}

static bool is_searched(const struct context_watch *w, const struct searched_file *file)
{
	for (unsigned int i = 0; i < w->nr_searched; i++)
		if (!memcmp(&w->searched[i], file, sizeof(*file)))
			return true;
	return false;
}

/* Adds the variable of a file that was not looked through yet. Returns false if it is not ready. */
static bool add_variable(struct context_watch *w, const struct mappings_map *map,
			 struct shstk_account *account)
{
	const struct searched_file file = { map->start, map->dev, map->inode };
	struct context_process *told = &w->told;
	struct context_variable it;
	int err;

	if (is_searched(w, &file))
		return true;
	err = search_file(w, map, account, &it);
	if (err == -EAGAIN)
		return false;
	if (!err && told->nr < CONTEXT_VARIABLES)
		told->variables[told->nr++] = it;
	if (w->nr_searched < FILES)
		w->searched[w->nr_searched++] = file;
	return true;
}

/* Looks through the files that a process has mapped. Returns whether all were ready. */
static bool search_files(struct context_watch *w, struct shstk_account *account)
{
	bool ret = true;
	struct mapping m;
	struct maps maps;

	if (maps_open(w->pid, "maps", &maps))
		return false;
	while (maps_next(&maps, &m) && shstk_account_on(account)) {
		struct mappings_map map;

		if (!m.exec || !mappings_is_file(m.path))
			continue;
		map = live_map(&m);
		ret &= add_variable(w, &map, account);
	}
	maps_close(&maps);
	return ret;
}

/* Looks through them as long as the process's account has time. */
static void find_variables(struct context_watch *w)
{
	struct shstk_account *account = w->files->account(w->files->arg, w->pid);

	if (!w->searched)
		w->searched = calloc(FILES, sizeof(*w->searched));
	if (!w->searched || !account)
		return;
	if (shstk_account_begin(account))
		w->moved = !search_files(w, account);
	shstk_account_end(account);
}

static void forget_variables(struct context_watch *w)
{
	w->told.nr = w->nr_searched = 0;
	memset(w->told.variables, 0, sizeof(w->told.variables));
}

/* Looks through the mappings of the process for its context, and reads that. */
static bool search_process(struct context_watch *w)
{
	struct mapping m;
	struct maps maps;
	bool ret = false;

	if (maps_open(w->pid, "maps", &maps))
		return false;
	while (!ret && maps_next_named(&maps, "OTEL_CTX", &m))
		if (is_process_context(m.path))
			ret = read_process(w, m.start);
	maps_close(&maps);
	return ret;
}

/* The same, as long as the process's account has time. Returns whether there is a context. */
static bool find_process(struct context_watch *w)
{
	struct shstk_account *account = w->files->account(w->files->arg, w->pid);
	bool ret = false;

	if (!account)
		return false;
	if (shstk_account_begin(account))
		ret = search_process(w);
	shstk_account_end(account);
	return ret;
}

/* ---- Processes ---- */

/* Reads again what is known already, if it has changed. Returns whether it is still there. */
static bool look_again(struct context_watch *w)
{
	struct header head;

	if (!w->published || !read_header(w, w->told.header, &head))
		return false;
	if (!head.published || head.published == w->published)
		return true;
	return read_process(w, w->told.header);
}

/* Tells the BPF program of a process, again and again: it forgets some if there are many. */
static void look(struct contexts *all, struct context_watch *w)
{
	const bool there = look_again(w);

	if (!there && !find_process(w)) {
		if (w->published)
			languages_set_context(all->languages, w->pid, NULL);
		shstk_otlp_process_free(&w->process);
		w->published = 0;
		return;
	}
	if (!there)
		forget_variables(w);
	if (!w->process.threads)
		return;
	if (w->moved || !w->nr_searched)
		find_variables(w);
	if (w->told.nr)
		languages_set_context(all->languages, w->pid, &w->told);
}

static uint64_t next_look(const struct context_watch *w, uint64_t time)
{
	uint64_t later = (time - w->first) / PART;

	if (w->published && w->process.threads && !w->moved)
		return time + PUBLISHED;
	return time + (later < SOON ? SOON : later > LATE ? LATE : later);
}

void contexts_watch(struct contexts *all, struct context_watch **watch, pid_t pid,
		    const struct mappings_files *files, uint64_t time)
{
	struct context_watch *w = *watch;

	if ((w && time < w->next) || !files->read || !files->open || !files->account)
		return;
	if (!w)
		w = *watch = calloc(1, sizeof(*w));
	if (!w)
		return;
	if (!w->files)
		w->first = time;
	w->pid = pid;
	w->files = files;
	w->last = time;
	look(all, w);
	w->next = next_look(w, time);
}

void context_watch_moved(struct context_watch *watch)
{
	if (!watch || !watch->published)
		return;
	watch->moved = true;
	if (watch->next > watch->last + SOON)
		watch->next = watch->last + SOON;
}

void context_watch_free(struct context_watch *watch)
{
	if (!watch)
		return;
	shstk_otlp_process_free(&watch->process);
	free(watch->searched);
	free(watch);
}

/* ---- Records ---- */

static void forget(struct contexts *all, struct kept_context *k)
{
	HASH_DEL(all->kept, k);
	free(k);
}

static int keep(struct contexts *all, int tid, uint64_t time, const struct context_moment *m,
		size_t size)
{
	struct kept_context *k;

	HASH_FIND_INT(all->kept, &tid, k);
	if (k)
		forget(all, k);
	/* Samples of these were lost. */
	if (HASH_COUNT(all->kept) >= MAX_MOMENTS)
		forget(all, all->kept);
	k = malloc(sizeof(*k) + size);
	if (!k)
		return -ENOMEM;
	memset(k, 0, sizeof(*k));
	k->tid = tid;
	k->time = time;
	k->pc = m->pc;
	k->record = m->record;
	memcpy(k->attributes, m->attributes, size);
	HASH_ADD_INT(all->kept, tid, k);
	if (k->hh.tbl)
		return 1;
	free(k);
	return -ENOMEM;
}

int contexts_take(struct contexts *all, int tid, uint64_t time, const void *record, size_t size)
{
	const struct context_moment *m = record;

	if (size < offsetof(struct context_moment, attributes) || m->kind != LANGUAGE_CONTEXT)
		return 0;
	size -= offsetof(struct context_moment, attributes);
	return m->record.size <= size ? keep(all, tid, time, m, m->record.size) : 1;
}

bool contexts_have(const struct contexts *all, int tid)
{
	struct kept_context *k;

	HASH_FIND_INT(all->kept, &tid, k);
	return k;
}

void contexts_lost(struct contexts *all)
{
	struct kept_context *k, *next;

	HASH_ITER(hh, all->kept, k, next)
	{
		forget(all, k);
	}
}

/* ---- Samples ---- */

/* Reads the names of attributes again, if one is not known yet. */
static void know_keys(struct context_watch *w, const struct kept_context *k)
{
	if (context_last_attribute(&k->record, k->attributes) >= (int)w->process.nr_keys)
		look_again(w);
}

static bool belongs(const struct kept_context *k, const struct context_sample *sample)
{
	uint64_t apart = k->time > sample->time ? k->time - sample->time : sample->time - k->time;

	return k->pc == sample->pc && apart < MAX_APART;
}

size_t contexts_label(struct contexts *all, struct context_watch *watch,
		      const struct context_sample *sample, char *buf)
{
	struct kept_context *k;
	size_t ret = 0;

	HASH_FIND_INT(all->kept, &sample->tid, k);
	if (!k)
		return 0;
	if (belongs(k, sample) && watch) {
		know_keys(watch, k);
		ret = context_labels(&k->record, k->attributes, watch->process.keys,
				     watch->process.nr_keys, buf);
	}
	forget(all, k);
	return ret;
}
