// SPDX-License-Identifier: GPL-2.0-or-later
/* options.c - the options of `shstk push` and `shstk record --push` that say how profiles are sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libshstk/symbol/utf8.h"
#include "tools/push/push.h"
#include "tools/shstk.h"

#define TIMEOUT 30
#define RETRIES 5
#define MAX_WAIT 60
#define SPOOL_MIB 64
#define SPOOL_AGE (24 * 3600)
#define SPOOL_WAIT 10

enum {
	OPT_PROTOCOL = 1024,
	OPT_COMPRESS,
	OPT_SERVICE,
	OPT_ATTRIBUTE,
	OPT_NO_NAMES,
	OPT_TOKEN,
	OPT_TENANT,
	OPT_CACERT,
	OPT_CERT,
	OPT_KEY,
	OPT_TIMEOUT,
	OPT_MAX_WAIT,
	OPT_SPOOL,
	OPT_SPOOL_SIZE,
	OPT_SPOOL_AGE,
	OPT_SPOOL_WAIT,
	OPT_COUNTS,
};

static const struct argp_option options[] = {
	{ "protocol", OPT_PROTOCOL, "otlp|pyroscope|parca", 0,
	  "what the server understands; by default as the path of the URL says, or otlp", 0 },
	{ "compress", OPT_COMPRESS, "gzip|zstd|none", 0,
	  "how requests of otlp are compressed; by default by gzip", 0 },
	{ "service-name", OPT_SERVICE, "NAME", 0,
	  "the service that the profile is of; by default its title", 0 },
	{ "attribute", OPT_ATTRIBUTE, "NAME=VALUE", 0,
	  "an attribute of the profile, such as host.id=7; may be given several times", 0 },
	{ "no-names", OPT_NO_NAMES, NULL, 0,
	  "send no names of functions that are in files, but addresses and build ids (otlp)", 0 },
	{ "token-file", OPT_TOKEN, "FILE", 0, "send the bearer token that is in FILE", 0 },
	{ "tenant", OPT_TENANT, "ID", 0,
	  "whose data it is, for a server with several tenants (X-Scope-OrgID)", 0 },
	{ "cacert", OPT_CACERT, "FILE", 0,
	  "trust servers with certificates of these authorities only", 0 },
	{ "cert", OPT_CERT, "FILE", 0, "this machine's certificate for the server", 0 },
	{ "key", OPT_KEY, "FILE", 0, "key of that certificate", 0 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "how long a request may take (30)", 0 },
	{ "max-wait", OPT_MAX_WAIT, "SECONDS", 0,
	  "wait at most this long before a request is sent again (60)", 0 },
	{ 0 },
};

static const struct argp_option spool_options[] = {
	{ "spool", OPT_SPOOL, "FOLDER", 0, "with --push: where requests wait for the server", 0 },
	{ "spool-size", OPT_SPOOL_SIZE, "MIB", 0,
	  "how much may wait there (64); what does not fit is dropped", 0 },
	{ "spool-age", OPT_SPOOL_AGE, "SECONDS", 0, "how long it may wait (86400)", 0 },
	{ "spool-wait", OPT_SPOOL_WAIT, "SECONDS", 0,
	  "how long to go on sending when the recording is over (10)", 0 },
	{ "push-counts", OPT_COUNTS, NULL, 0,
	  "with --push: send what was sent and dropped, too, as metrics (otlp)", 0 },
	{ 0 },
};

void push_init(struct push *p)
{
	*p = (struct push){
		.timeout = TIMEOUT,
		.retries = RETRIES,
		.max_wait = MAX_WAIT,
		.spool_size = (uint64_t)SPOOL_MIB << 20,
		.spool_age = SPOOL_AGE,
		.spool_wait = SPOOL_WAIT,
	};
}

void push_deinit(struct push *p)
{
	for (size_t i = 0; i < p->nr_attributes; i++)
		free(p->attributes[i]);
	free(p->attributes);
}

static enum push_protocol parse_protocol(const struct argp_state *state, const char *arg)
{
	if (!strcmp(arg, "otlp"))
		return PUSH_OTLP;
	if (!strcmp(arg, "pyroscope"))
		return PUSH_PYROSCOPE;
	if (!strcmp(arg, "parca"))
		return PUSH_PARCA;
	argp_failure(state, argp_err_exit_status, 0,
		     "protocol '%s' is none of otlp, pyroscope, parca", arg);
	return PUSH_AUTO;
}

static enum push_packing parse_packing(const struct argp_state *state, const char *arg)
{
	if (!strcmp(arg, "gzip"))
		return PUSH_GZIP;
	if (!strcmp(arg, "zstd"))
		return PUSH_ZSTD;
	if (strcmp(arg, "none"))
		argp_failure(state, argp_err_exit_status, 0,
			     "compression '%s' is none of gzip, zstd, none", arg);
	return PUSH_PLAIN;
}

/* Returns whether a text is UTF-8 without control characters: no server takes anything else. */
static bool is_text(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	uint32_t point;
	size_t n;

	for (; *c; c += n) {
		n = shstk_utf8_decode(c, SIZE_MAX, &point);
		if (!n || point < ' ' || (point >= 0x7f && point < 0xa0))
			return false;
	}
	return true;
}

static void add_attribute(const struct argp_state *state, struct push *p, const char *name,
			  size_t len, const char *value)
{
	char **more = reallocarray(p->attributes, p->nr_attributes + 2, sizeof(*more));

	if (more) {
		p->attributes = more;
		more[p->nr_attributes] = strndup(name, len);
		more[p->nr_attributes + 1] = strdup(value);
		p->nr_attributes += 2;
	}
	if (!more || !more[p->nr_attributes - 2] || !more[p->nr_attributes - 1])
		argp_failure(state, EXIT_FAILED, ENOMEM, "attribute");
}

/* Sets an attribute, which takes the place of an earlier one with the same name. */
static void set_attribute(const struct argp_state *state, struct push *p, const char *name,
			  size_t len, const char *value)
{
	if (!len || !is_text(name) || !is_text(value))
		argp_failure(state, argp_err_exit_status, 0,
			     "attribute '%.*s' is not UTF-8 without control characters", (int)len,
			     name);
	for (size_t i = 0; i < p->nr_attributes; i += 2) {
		if (strncmp(p->attributes[i], name, len) || p->attributes[i][len])
			continue;
		free(p->attributes[i]);
		free(p->attributes[i + 1]);
		p->nr_attributes -= 2;
		memmove(p->attributes + i, p->attributes + i + 2,
			(p->nr_attributes - i) * sizeof(*p->attributes));
		break;
	}
	add_attribute(state, p, name, len, value);
}

static void parse_attribute(const struct argp_state *state, struct push *p, const char *arg)
{
	const char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		argp_failure(state, argp_err_exit_status, 0, "attribute '%s' is not NAME=VALUE",
			     arg);
	else
		set_attribute(state, p, arg, equals - arg, equals + 1);
}

static const char *parse_tenant(const struct argp_state *state, const char *arg)
{
	if (!*arg || !is_text(arg) || strchr(arg, ' '))
		argp_failure(state, argp_err_exit_status, 0,
			     "tenant '%s' is not a word without control characters", arg);
	return arg;
}

/* Returns where the name of a file is kept, or NULL. */
static const char **file_of(struct push *p, int key)
{
	switch (key) {
	case OPT_TOKEN:
		return &p->token_file;
	case OPT_CACERT:
		return &p->cacert;
	case OPT_CERT:
		return &p->cert;
	case OPT_KEY:
		return &p->key;
	default:
		return NULL;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	switch (key) {
	case OPT_PROTOCOL:
		p->protocol = parse_protocol(state, arg);
		return 0;
	case OPT_COMPRESS:
		p->packing = parse_packing(state, arg);
		return 0;
	case OPT_SERVICE:
		set_attribute(state, p, "service.name", strlen("service.name"), arg);
		return 0;
	case OPT_ATTRIBUTE:
		parse_attribute(state, p, arg);
		return 0;
	case OPT_NO_NAMES:
		p->no_names = true;
		return 0;
	case OPT_TENANT:
		p->tenant = parse_tenant(state, arg);
		return 0;
	case OPT_TIMEOUT:
		p->timeout = parse_number(state, "timeout", arg, 1, 3600);
		return 0;
	case OPT_MAX_WAIT:
		p->max_wait = parse_number(state, "max-wait", arg, 1, 3600);
		return 0;
	default:
		if (!file_of(p, key))
			return ARGP_ERR_UNKNOWN;
		*file_of(p, key) = arg;
		return 0;
	}
}

static error_t parse_way(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;
	error_t err = parse(key, arg, state);

	p->given |= !err && key >= OPT_PROTOCOL && key < OPT_SPOOL;
	return err;
}

bool push_files_readable(const struct push *p)
{
	const char *const files[] = { p->token_file, p->cacert, p->cert, p->key };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (!files[i] || !access(files[i], R_OK))
			continue;
		complain("cannot read '%s': %s", files[i], strerror(errno));
		return false;
	}
	return true;
}

const struct argp push_way_argp = { .options = options, .parser = parse_way };

static error_t parse_spool(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	p->given |= key >= OPT_SPOOL && key <= OPT_COUNTS;
	switch (key) {
	case OPT_SPOOL:
		p->spool = arg;
		return 0;
	case OPT_SPOOL_SIZE:
		p->spool_size = (uint64_t)parse_number(state, "spool-size", arg, 1, 1 << 20) << 20;
		return 0;
	case OPT_SPOOL_AGE:
		p->spool_age = parse_number(state, "spool-age", arg, 1, 365 * 86400);
		return 0;
	case OPT_SPOOL_WAIT:
		p->spool_wait = parse_number(state, "spool-wait", arg, 0, 3600);
		return 0;
	case OPT_COUNTS:
		p->counts = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp push_spool_argp = { .options = spool_options, .parser = parse_spool };

/* Returns whether the path of a URL ends with a text. */
static bool has_path(const char *url, const char *path)
{
	size_t len = strcspn(url, "?#"), n = strlen(path);

	return len >= n && !memcmp(url + len - n, path, n);
}

void push_choose_protocol(struct push *p)
{
	if (p->symbols)
		p->protocol = PUSH_PARCA;
	else if (p->protocol != PUSH_PARCA && p->protocol != PUSH_OTLP &&
		 has_path(p->to, "/ingest"))
		p->protocol = PUSH_INGEST;
	else if (p->protocol == PUSH_AUTO && has_path(p->to, "/push.v1.PusherService/Push"))
		p->protocol = PUSH_PYROSCOPE;
	else if (p->protocol == PUSH_AUTO)
		p->protocol = has_path(p->to, "/profiles/writeraw") ? PUSH_PARCA : PUSH_OTLP;
}

const char *push_host(const struct push *p, struct utsname *machine)
{
	for (size_t i = 0; i < p->nr_attributes; i += 2)
		if (!strcmp(p->attributes[i], PUSH_HOST))
			return NULL;
	return uname(machine) ? NULL : machine->nodename;
}
