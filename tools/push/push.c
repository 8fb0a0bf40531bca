// SPDX-License-Identifier: GPL-2.0-or-later
/* push.c - shstk push: sends profiles to servers that collect them, as push.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/utf8.h"
#include "tools/push/push.h"
#include "tools/shstk.h"

#define TIMEOUT 30
#define RETRIES 5
#define MAX_WAIT 60

enum {
	OPT_TO = 256,
	OPT_PROTOCOL,
	OPT_COMPRESS,
	OPT_SERVICE,
	OPT_ATTRIBUTE,
	OPT_TOKEN,
	OPT_TENANT,
	OPT_CACERT,
	OPT_CERT,
	OPT_KEY,
	OPT_TIMEOUT,
	OPT_RETRIES,
	OPT_MAX_WAIT,
};

static const struct argp_option options[] = {
	{ "to", OPT_TO, "URL", 0, "where to, such as http://localhost:4318", 0 },
	{ "protocol", OPT_PROTOCOL, "otlp|pyroscope|parca", 0,
	  "what the server understands; by default as the path of the URL says, or otlp", 0 },
	{ "compress", OPT_COMPRESS, "gzip|zstd|none", 0,
	  "how requests of otlp are compressed; by default by gzip", 0 },
	{ "service-name", OPT_SERVICE, "NAME", 0,
	  "the service that the profile is of; by default its title", 0 },
	{ "attribute", OPT_ATTRIBUTE, "NAME=VALUE", 0,
	  "an attribute of the profile, such as host.id=7; may be given several times", 0 },
	{ "token-file", OPT_TOKEN, "FILE", 0, "send the bearer token that is in FILE", 0 },
	{ "tenant", OPT_TENANT, "ID", 0,
	  "whose data it is, for a server with several tenants (X-Scope-OrgID)", 0 },
	{ "cacert", OPT_CACERT, "FILE", 0,
	  "trust servers with certificates of these authorities only", 0 },
	{ "cert", OPT_CERT, "FILE", 0, "this machine's certificate for the server", 0 },
	{ "key", OPT_KEY, "FILE", 0, "key of that certificate", 0 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "how long a request may take (30)", 0 },
	{ "retries", OPT_RETRIES, "N", 0, "how often a request is sent again (5)", 0 },
	{ "max-wait", OPT_MAX_WAIT, "SECONDS", 0, "wait at most this long before that (60)", 0 },
	READ_LIMIT_OPTION,
	{ "quiet", 'q', NULL, 0, "no summary", 0 },
	{ 0 },
};

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

/* Sets an attribute, which takes the place of an earlier one with the same name. */
static void set_attribute(const struct argp_state *state, struct push *p, const char *name,
			  size_t len, const char *value)
{
	size_t i = 0;

	if (!len || !is_text(name) || !is_text(value))
		argp_failure(state, argp_err_exit_status, 0,
			     "attribute '%.*s' is not UTF-8 without control characters", (int)len,
			     name);
	while (i < p->nr_attributes &&
	       (strncmp(p->attributes[i], name, len) || p->attributes[i][len]))
		i += 2;
	if (i == p->nr_attributes) {
		p->nr_attributes += 2;
		p->attributes[i] = strndup(name, len);
	}
	free(p->attributes[i + 1]);
	p->attributes[i + 1] = strdup(value);
	if (!p->attributes[i] || !p->attributes[i + 1])
		argp_failure(state, EXIT_FAILED, ENOMEM, "attribute");
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

static error_t parse_limits(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	switch (key) {
	case OPT_TIMEOUT:
		p->timeout = parse_number(state, "timeout", arg, 1, 3600);
		return 0;
	case OPT_RETRIES:
		p->retries = parse_number(state, "retries", arg, 0, 1000);
		return 0;
	case OPT_MAX_WAIT:
		p->max_wait = parse_number(state, "max-wait", arg, 1, 3600);
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &p->read_limit);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_files(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	switch (key) {
	case OPT_TOKEN:
		p->token_file = arg;
		return 0;
	case OPT_TENANT:
		if (!*arg || !is_text(arg) || strchr(arg, ' '))
			argp_failure(state, argp_err_exit_status, 0,
				     "tenant '%s' is not a word without control characters", arg);
		p->tenant = arg;
		return 0;
	case OPT_CACERT:
		p->cacert = arg;
		return 0;
	case OPT_CERT:
		p->cert = arg;
		return 0;
	case OPT_KEY:
		p->key = arg;
		return 0;
	case ARGP_KEY_ARG:
		p->files[p->nr_files++] = arg;
		return 0;
	default:
		return parse_limits(key, arg, state);
	}
}

static void check(const struct argp_state *state, const struct push *p)
{
	if (!p->nr_files)
		argp_failure(state, argp_err_exit_status, 0,
			     "which file? (a profile that record wrote, such as run.shstk)");
	if (!p->to)
		argp_failure(state, argp_err_exit_status, 0,
			     "where to? (--to=URL, such as --to=http://localhost:4318)");
	if (p->key && !p->cert)
		argp_failure(state, argp_err_exit_status, 0, "--key needs --cert");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct push *p = state->input;

	switch (key) {
	case OPT_TO:
		p->to = arg;
		return 0;
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
	case 'q':
		p->quiet = true;
		return 0;
	case ARGP_KEY_END:
		check(state, p);
		return 0;
	default:
		return parse_files(key, arg, state);
	}
}

const struct argp push_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE...",
	.doc = "Send profiles to a server that collects them: OpenTelemetry's Collector, Pyroscope, Parca.\n\v"
	       "Files are those of -o FILE.shstk, pprof's (.pb.gz, .pb), perf.data or folded stacks. Nothing is kept for later: status 75 says that a file may be sent again.",
};

/* Returns whether the path of a URL ends with a text. */
static bool has_path(const char *url, const char *path)
{
	size_t len = strcspn(url, "?#"), n = strlen(path);

	return len >= n && !memcmp(url + len - n, path, n);
}

static enum push_protocol choose_protocol(const struct push *p)
{
	if (p->protocol != PUSH_PARCA && p->protocol != PUSH_OTLP && has_path(p->to, "/ingest"))
		return PUSH_INGEST;
	if (p->protocol != PUSH_AUTO)
		return p->protocol;
	if (has_path(p->to, "/push.v1.PusherService/Push"))
		return PUSH_PYROSCOPE;
	return has_path(p->to, "/profiles/writeraw") ? PUSH_PARCA : PUSH_OTLP;
}

/* The bodies lie in a file of their own, so what is wrong with @path is known before one is sent. */
static int push_file(const struct push *p, const char *path)
{
	struct push_bodies bodies = { .out = tmpfile() };
	int status;

	if (!bodies.out) {
		complain("cannot make a temporary file in " P_tmpdir ": %s", strerror(errno));
		return EXIT_FAILED;
	}
	status = push_make_bodies(p, path, &bodies);
	if (status == EXIT_OK && !bodies.nr)
		complain("'%s' has no samples: nothing is sent", path);
	else if (status == EXIT_OK)
		status = push_send(p, &bodies);
	if (status == EXIT_OK && bodies.nr && !p->quiet)
		complain("sent '%s' in %zu request%s", path, bodies.nr, bodies.nr == 1 ? "" : "s");
	else if (status != EXIT_OK)
		complain("'%s' was not sent", path);
	fclose(bodies.out);
	free(bodies.service);
	return status;
}

/* A server that can't take a file now won't take the next one either. */
static int push_files(const struct push *p)
{
	int ret = EXIT_OK, status;

	for (int i = 0; i < p->nr_files; i++) {
		status = push_file(p, p->files[i]);
		if (status != EXIT_OK)
			ret = status;
		if (status != EXIT_OK && status != EXIT_FAILED) {
			for (i++; i < p->nr_files; i++)
				complain("'%s' was not sent", p->files[i]);
			return ret;
		}
	}
	return ret;
}

int cmd_push(int argc, char **argv)
{
	struct push p = { .timeout = TIMEOUT, .retries = RETRIES, .max_wait = MAX_WAIT };
	int status = EXIT_FAILED;

	p.files = calloc(argc + 1, sizeof(*p.files));
	p.attributes = calloc(2 * argc + 4, sizeof(*p.attributes));
	if (p.files && p.attributes) {
		command_parse(&push_argp, argc, argv, &p);
		p.protocol = choose_protocol(&p);
		status = push_files(&p);
	}
	for (size_t i = 0; p.attributes && i < p.nr_attributes; i++)
		free(p.attributes[i]);
	free(p.attributes);
	free(p.files);
	return status;
}
