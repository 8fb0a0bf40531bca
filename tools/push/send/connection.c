// SPDX-License-Identifier: GPL-2.0-or-later
/* connection.c - what all requests of shstk-push share: URL, token, certificates. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/push/send/send.h"
#include "tools/shstk.h"

#define MOST_TOKEN 8192 /* bytes of a token at most */
#define WRITERAW "/profiles/writeraw" /* end of the path to which Parca's profiles are sent */

/* ---- The URL ---- */

/* Returns a part of the URL, which curl_free() releases; NULL if it has none. */
static char *part_of(CURLU *url, CURLUPart part)
{
	char *ret = NULL;

	return curl_url_get(url, part, &ret, 0) ? NULL : ret;
}

/* A password in a URL is seen by all users in the list of processes. */
static int check_url(CURLU *url, const struct send *send, bool *is_plain, struct reason *why)
{
	char *user = part_of(url, CURLUPART_USER), *word = part_of(url, CURLUPART_PASSWORD);
	char *scheme = part_of(url, CURLUPART_SCHEME);
	int ret = EXIT_USAGE;

	*is_plain = scheme && !strcmp(scheme, "http");
	if (user || word)
		because(why, "a URL must not have a user or password: --token-file=FILE");
	else if (!scheme || (strcmp(scheme, "http") && strcmp(scheme, "https")))
		because(why, "'%s' is no URL that begins with http:// or https://", send->to);
	else
		ret = EXIT_OK;
	curl_free(user);
	curl_free(word);
	curl_free(scheme);
	return ret;
}

/* Puts a step of Parca's API into the path, where the end of writeraw's is, or behind it. */
static bool set_step(CURLU *url, const char *step)
{
	char *path = part_of(url, CURLUPART_PATH), *whole = NULL;
	size_t len = path ? strlen(path) : 0;
	bool ok;

	if (len >= strlen(WRITERAW) && !strcmp(path + len - strlen(WRITERAW), WRITERAW))
		len -= strlen(WRITERAW);
	while (len && path[len - 1] == '/')
		len--;
	ok = asprintf(&whole, "%.*s/%s", (int)len, path ? path : "", step) >= 0 &&
	     !curl_url_set(url, CURLUPART_PATH, whole, 0);
	free(whole);
	curl_free(path);
	return ok;
}

/* Gives the URL the path of the protocol, if it has none, and the query. */
static bool complete_url(CURLU *url, const struct send *send)
{
	char *path = part_of(url, CURLUPART_PATH);
	bool bare = !path || !strcmp(path, "/"), ok = true;

	curl_free(path);
	if (bare && send->path)
		ok = !curl_url_set(url, CURLUPART_PATH, send->path, 0);
	if (ok && send->step)
		ok = set_step(url, send->step);
	for (unsigned int i = 0; i < send->nr_query && ok; i++)
		ok = !curl_url_set(url, CURLUPART_QUERY, send->query[i],
				   CURLU_APPENDQUERY | CURLU_URLENCODE);
	return ok;
}

static int set_url(struct connection *c, bool *is_plain, struct reason *why)
{
	CURLU *url = curl_url();
	char *whole = NULL;
	int ret = EXIT_USAGE;

	if (!url || curl_url_set(url, CURLUPART_URL, c->send->to, 0))
		because(why, "'%s' is no URL that begins with http:// or https://", c->send->to);
	else
		ret = check_url(url, c->send, is_plain, why);
	if (ret == EXIT_OK && complete_url(url, c->send))
		whole = part_of(url, CURLUPART_URL);
	if (ret == EXIT_OK && (!whole || curl_easy_setopt(c->curl, CURLOPT_URL, whole))) {
		because(why, "'%s': out of memory", c->send->to);
		ret = EXIT_FAILED;
	}
	curl_free(whole);
	curl_url_cleanup(url);
	return ret;
}

/* ---- The token ---- */

/* Reads the token. It has no characters that could begin another header line. */
static int read_token(const char *path, char *token, struct reason *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = 0, size = 0;

	if (fd < 0) {
		because(why, "cannot read the token in '%s': %s", path, strerror(errno));
		return EXIT_USAGE;
	}
	while (size < MOST_TOKEN && (n = read(fd, token + size, MOST_TOKEN - size)) > 0)
		size += n;
	close(fd);
	while (size && strchr(" \t\r\n", token[size - 1]))
		size--;
	token[size] = '\0';
	for (ssize_t i = 0; i < size; i++)
		if (token[i] <= ' ' || token[i] >= 0x7f)
			n = -1;
	if (n >= 0 && size && size < MOST_TOKEN)
		return EXIT_OK;
	because(why, "'%s' has no token: a line of printable characters without blanks", path);
	return EXIT_USAGE;
}

static bool is_loopback(const struct curl_sockaddr *address)
{
	const struct sockaddr *any = &address->addr;
	const struct sockaddr_in *v4 = (const void *)any;
	const struct sockaddr_in6 *v6 = (const void *)any;

	return (any->sa_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == 127) ||
	       (any->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
}

/* Opens a socket for a request with a token that is not encrypted: only to this machine. */
static curl_socket_t open_loopback(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct connection *c = arg;

	(void)purpose;
	if (is_loopback(address))
		return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	c->exposed = true;
	return CURL_SOCKET_BAD;
}

static bool add_header(struct connection *c, const char *name, const char *value)
{
	struct curl_slist *list;
	char *line;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return false;
	list = curl_slist_append(c->headers, line);
	explicit_bzero(line, strlen(line));
	free(line);
	if (list)
		c->headers = list;
	return list != NULL;
}

static int set_token(struct connection *c, bool is_plain, struct reason *why)
{
	char bearer[MOST_TOKEN + 16] = "Bearer ";
	int status = read_token(c->send->token_file, bearer + strlen(bearer), why);

	if (status == EXIT_OK && !add_header(c, "Authorization", bearer)) {
		because(why, "out of memory");
		status = EXIT_FAILED;
	}
	explicit_bzero(bearer, sizeof(bearer));
	if (!is_plain)
		return status;
	/* No proxy sees it, and no other machine. */
	curl_easy_setopt(c->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETFUNCTION, open_loopback);
	curl_easy_setopt(c->curl, CURLOPT_OPENSOCKETDATA, c);
	return status;
}

/* ---- All of it ---- */

static int check_readable(const char *path, struct reason *why)
{
	if (!path || !access(path, R_OK))
		return EXIT_OK;
	because(why, "cannot read '%s': %s", path, strerror(errno));
	return EXIT_USAGE;
}

static int set_certificates(struct connection *c, struct reason *why)
{
	const struct send *s = c->send;
	int status = check_readable(s->cacert, why);

	if (status == EXIT_OK)
		status = check_readable(s->cert, why);
	if (status == EXIT_OK)
		status = check_readable(s->key, why);
	if (status != EXIT_OK)
		return status;
	if (s->cacert) {
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, s->cacert);
		curl_easy_setopt(c->curl, CURLOPT_CAPATH, NULL);
	}
	if (s->cert)
		curl_easy_setopt(c->curl, CURLOPT_SSLCERT, s->cert);
	if (s->key)
		curl_easy_setopt(c->curl, CURLOPT_SSLKEY, s->key);
	return EXIT_OK;
}

/* Redirections are not followed: who gives a token chooses who gets it. */
static void set_limits(struct connection *c)
{
	curl_easy_setopt(c->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)c->send->timeout * 1000);
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->send->timeout * 1000);
	curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "shstk/" SHSTK_VERSION);
}

int connection_init(struct connection *c, struct send *send, struct reason *why)
{
	bool is_plain = false;
	int status;

	*c = (struct connection){ .send = send };
	c->curl = curl_easy_init();
	because(why, "out of memory");
	if (!c->curl || !add_header(c, "Content-Type", send->type) ||
	    (send->encoding && !add_header(c, "Content-Encoding", send->encoding)) ||
	    (send->tenant && !add_header(c, "X-Scope-OrgID", send->tenant)) ||
	    !add_header(c, "Expect", ""))
		return EXIT_FAILED;
	status = set_url(c, &is_plain, why);
	if (status == EXIT_OK && send->token_file)
		status = set_token(c, is_plain, why);
	if (status == EXIT_OK)
		status = set_certificates(c, why);
	set_limits(c);
	return status;
}

void connection_deinit(struct connection *c)
{
	curl_easy_cleanup(c->curl);
	curl_slist_free_all(c->headers);
}

int connection_renew(struct connection *c, struct reason *why)
{
	struct send *send = c->send;

	connection_deinit(c);
	return connection_init(c, send, why);
}

int connection_step(struct connection *c, const char *step, struct reason *why)
{
	bool is_plain;

	c->send->step = step;
	return set_url(c, &is_plain, why);
}

int connection_query(struct connection *c, const char *query, size_t size, struct reason *why)
{
	struct send *send = c->send;
	bool is_plain;

	if (!size && !send->nr_query)
		return EXIT_OK;
	send->nr_query = 0;
	for (size_t at = 0; at < size && send->nr_query < SEND_MOST_QUERY;
	     at += strlen(query + at) + 1)
		send->query[send->nr_query++] = query + at;
	return set_url(c, &is_plain, why);
}
