// SPDX-License-Identifier: GPL-2.0-or-later
/* bodies.c - reads a profile and makes the bodies of requests of it, as push.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "libshstk/symbol/export.h"
#include "libshstk/symbol/json.h"
#include "libshstk/symbol/keep.h"
#include "tools/push/base64.h"
#include "tools/push/push.h"
#include "tools/report/perf_file.h"
#include "tools/shstk.h"

#define GZIP 31 /* of deflateInit2(): the largest window, and a header of gzip */

/* What take_message() needs. */
struct making {
	const struct push *push;
	struct push_bodies *bodies;
};

static int put_spool(const struct making *m, const void *data, size_t size)
{
	struct spool_request request = { .body = (uint8_t *)data, .size = size };
	int err;

	if (m->push->protocol == PUSH_INGEST) {
		request.query = push_query(m->push, m->bodies, &request.query_size);
		if (!request.query)
			return -ENOMEM;
	}
	err = spool_put(m->bodies->spool, &request, m->push->spool_size);
	free(request.query);
	if (!err)
		m->bodies->nr++;
	return err;
}

static int put(const struct making *m, const void *data, size_t size)
{
	struct push_bodies *to = m->bodies;
	const uint8_t head[4] = { size >> 24, size >> 16, size >> 8, size };

	if (size > PUSH_MOST)
		return -E2BIG;
	if (to->spool)
		return put_spool(m, data, size);
	errno = 0;
	fwrite(head, 1, sizeof(head), to->out);
	fwrite(data, 1, size, to->out);
	if (ferror(to->out))
		return errno ? -errno : -EIO;
	to->nr++;
	return 0;
}

/* Compresses by gzip into memory that the caller frees. Returns the size, or 0. */
static size_t pack_gzip(const uint8_t *plain, size_t size, uint8_t **ret)
{
	z_stream z = { .next_in = (uint8_t *)plain, .avail_in = size };
	size_t max, n = 0;

	*ret = NULL;
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY))
		return 0;
	max = deflateBound(&z, size);
	*ret = malloc(max);
	z.next_out = *ret;
	z.avail_out = max;
	if (*ret && deflate(&z, Z_FINISH) == Z_STREAM_END)
		n = max - z.avail_out;
	deflateEnd(&z);
	return n;
}

/* Does the same by zstd. */
static size_t pack_zstd(const uint8_t *plain, size_t size, uint8_t **ret)
{
	size_t max = ZSTD_compressBound(size), n = 0;

	*ret = malloc(max);
	if (*ret)
		n = ZSTD_compress(*ret, max, plain, size, ZSTD_CLEVEL_DEFAULT);
	return ZSTD_isError(n) ? 0 : n;
}

static int take_message(void *arg, const uint8_t *message, size_t size)
{
	const struct making *m = arg;
	uint8_t *packed;
	size_t n;
	int err;

	if (m->push->packing == PUSH_PLAIN)
		return put(m, message, size);
	n = m->push->packing == PUSH_GZIP ? pack_gzip(message, size, &packed) :
					    pack_zstd(message, size, &packed);
	err = n ? put(m, packed, n) : -ENOMEM;
	free(packed);
	return err;
}

/* Reads the file. Returns an exit status. */
static int read_profile(struct shstk_profile *profile, const char *path)
{
	const struct shstk_read_opts opts = { 0 };

	return report_read(profile, path, &opts) ? EXIT_FAILED : EXIT_OK;
}

static const char *reason_of(int err)
{
	return err == -E2BIG || err == -EMSGSIZE ? "it is too large for one" : strerror(-err);
}

/* Says what became of a profile: @path, or what was just recorded. */
static int failed(const char *path, int err)
{
	if (path)
		complain("cannot make a request of '%s': %s", path, reason_of(err));
	else if (err == -ENOSPC)
		complain(
			"a profile, or a part of it, is dropped: the spool (--spool-size) or its disk is full");
	else
		complain("a profile, or a part of it, is lost: %s", reason_of(err));
	return EXIT_FAILED;
}

/* Says what all messages have. */
static struct shstk_otlp_about about_of(const struct push *push, const char *title)
{
	return (struct shstk_otlp_about){
		.title = title,
		.type = push->type,
		.no_names = push->no_names,
		.resource = (const char *const *)push->attributes,
		.nr_resource = push->nr_attributes,
	};
}

/* Messages of OpenTelemetry are made while the file is read. */
static int make_otlp(struct making *m, struct shstk_profile *profile, const char *path)
{
	const struct shstk_otlp_about about = about_of(m->push, NULL);
	struct shstk_keep *keep;
	int err = shstk_keep_create_for(profile, &about, take_message, m, &keep), status;

	if (err)
		return failed(path, err);
	shstk_profile_keep(profile, keep);
	status = read_profile(profile, path);
	shstk_profile_keep(profile, NULL);
	if (status != EXIT_OK) {
		shstk_keep_drop(keep);
		return status;
	}
	err = shstk_keep_finish(keep, 0);
	return err ? failed(path, err) : EXIT_OK;
}

/* Messages of a profile in memory. */
static int make_otlp_of(struct making *m, struct shstk_profile *profile, const char *title)
{
	const struct shstk_otlp_about about = about_of(m->push, title);
	struct shstk_keep *keep;
	int err = shstk_keep_create_for(profile, &about, take_message, m, &keep);

	if (err)
		return failed(NULL, err);
	err = shstk_keep_profile(keep, profile);
	if (err)
		shstk_keep_drop(keep);
	else
		err = shstk_keep_finish(keep, 0);
	return err ? failed(NULL, err) : EXIT_OK;
}

/* Returns a text in base64, which the caller frees; NULL if out of memory. */
static char *base64(const char *data, size_t size)
{
	char *ret = malloc(BASE64_SIZE(size) + 1);

	if (ret)
		*base64_put(ret, (const uint8_t *)data, size) = '\0';
	return ret;
}

/* Makes a name of OpenTelemetry's a name of a label: letters, digits and _. */
static void make_label(char *name)
{
	for (char *c = name; *c; c++)
		if (!((*c | 32) >= 'a' && (*c | 32) <= 'z') && (c == name || *c < '0' || *c > '9'))
			*c = '_';
}

static void put_label(struct json *json, const char *name, const char *value)
{
	char *label = strdup(name);

	if (label) {
		make_label(label);
		shstk_json_open(json, NULL, '{');
		shstk_json_string(json, "name", label);
		shstk_json_string(json, "value", value);
		shstk_json_close(json);
	}
	free(label);
}

/* Returns the kind of the profile, by the names that servers know. */
static const char *kind_of(const struct shstk_profile *profile)
{
	for (unsigned int i = 0; i < profile->nr_types; i++)
		if (!strcmp(profile->types[i].type, "cpu"))
			return "process_cpu";
		else if (!strcmp(profile->types[i].unit, "bytes"))
			return "memory";
	return "shstk";
}

static void put_labels(struct json *json, const struct making *m,
		       const struct shstk_profile *profile)
{
	const struct push *p = m->push;
	bool parca = p->protocol == PUSH_PARCA;
	struct utsname machine;
	const char *host = push_host(p, &machine);

	if (parca)
		shstk_json_open(json, "labels", '{');
	shstk_json_open(json, "labels", '[');
	put_label(json, "__name__", kind_of(profile));
	put_label(json, "service.name", m->bodies->service);
	if (host)
		put_label(json, PUSH_HOST, host);
	for (size_t i = 0; i < p->nr_attributes; i += 2)
		if (strcmp(p->attributes[i], "service.name"))
			put_label(json, p->attributes[i], p->attributes[i + 1]);
	shstk_json_close(json);
	if (parca)
		shstk_json_close(json);
}

/* Both servers take a list of series, each with labels and profiles. */
static int put_json(const struct making *m, const struct shstk_profile *profile, const char *text)
{
	char *body = NULL;
	size_t size = 0;
	struct json json = { .out = open_memstream(&body, &size) };
	int err;

	if (!json.out)
		return -ENOMEM;
	shstk_json_open(&json, NULL, '{');
	shstk_json_open(&json, "series", '[');
	shstk_json_open(&json, NULL, '{');
	put_labels(&json, m, profile);
	shstk_json_open(&json, "samples", '[');
	shstk_json_open(&json, NULL, '{');
	shstk_json_string(&json, "rawProfile", text);
	while (json.depth)
		shstk_json_close(&json);
	err = ferror(json.out) ? -ENOMEM : 0;
	err = fclose(json.out) || err ? -ENOMEM : put(m, body, size);
	free(body);
	return err;
}

static int put_pprof(const struct making *m, const struct shstk_profile *profile, const char *data,
		     size_t size)
{
	char *text;
	int err;

	if (m->push->protocol == PUSH_INGEST)
		return put(m, data, size);
	text = base64(data, size);
	err = text ? put_json(m, profile, text) : -ENOMEM;
	free(text);
	return err;
}

/* pprof's format is one body. */
static int make_pprof(const struct making *m, struct shstk_profile *profile, const char *path)
{
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	int err = out ? shstk_profile_print(profile, out, "pprof", NULL) : -ENOMEM;

	if (out && fclose(out))
		err = -ENOMEM;
	if (!err)
		err = put_pprof(m, profile, data, size);
	free(data);
	return err ? failed(path, err) : EXIT_OK;
}

/* Sets what is known once the file was read. Returns an exit status. */
static int set_service(const struct making *m, const struct shstk_profile *profile,
		       const char *title)
{
	const struct push *p = m->push;
	const char *name = title ? title : shstk_profile_title(profile);

	for (size_t i = 0; i < p->nr_attributes; i += 2)
		if (!strcmp(p->attributes[i], "service.name"))
			name = p->attributes[i + 1];
	m->bodies->service = strdup(name ? name : "shstk");
	m->bodies->start = profile->start;
	m->bodies->duration = profile->duration;
	if (m->bodies->service)
		return EXIT_OK;
	complain("%s", strerror(ENOMEM));
	return EXIT_FAILED;
}

static int make(struct making *m, struct shstk_profile *profile, const char *path)
{
	int status;

	if (m->push->protocol == PUSH_OTLP)
		return make_otlp(m, profile, path);
	status = read_profile(profile, path);
	if (status == EXIT_OK)
		status = set_service(m, profile, NULL);
	return status != EXIT_OK || shstk_profile_empty(profile) ? status :
								   make_pprof(m, profile, path);
}

int push_make_bodies(const struct push *push, const char *path, struct push_bodies *bodies)
{
	struct making m = { .push = push, .bodies = bodies };
	struct shstk_symbols_opts opts = { .no_servers = true };
	struct shstk_symbols *symbols = NULL;
	struct shstk_profile *profile = NULL;
	int err, status;

	read_limit_apply(&push->read_limit, &opts);
	err = shstk_symbols_create(&opts, &symbols);
	if (!err)
		err = shstk_profile_create(symbols, &profile);
	status = err ? failed(path, err) : make(&m, profile, path);
	if (status == EXIT_OK && fflush(bodies->out))
		status = failed(path, -errno);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return status;
}

int push_make_bodies_of(const struct push *push, struct shstk_profile *profile, const char *title,
			struct push_bodies *bodies)
{
	struct making m = { .push = push, .bodies = bodies };
	int status;

	if (push->protocol == PUSH_OTLP)
		return make_otlp_of(&m, profile, title);
	status = set_service(&m, profile, title);
	return status == EXIT_OK ? make_pprof(&m, profile, NULL) : status;
}
