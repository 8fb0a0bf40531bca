// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * counts.c - sends what was counted of a spool to the server, as metrics of OpenTelemetry (counts.h).
 *
 * Each request has all counts since the spool was made, so one that is lost costs nothing: it is
 * not sent again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "libshstk/symbol/otlp_resource.h"
#include "otlp.pb-c.h"
#include "tools/push/send/counts.h"
#include "tools/shstk.h"

#define PROFILES "/v1development/profiles"
#define METRICS "/v1/metrics"
#define DROPPED "dropped_" /* begins names of counts that are one metric, by the reason */
#define CUMULATIVE 2 /* AggregationTemporality: since the start time */

typedef Shstk__Otlp__KeyValue KeyValue;
typedef Shstk__Otlp__AnyValue AnyValue;
typedef Shstk__Otlp__Metric Metric;
typedef Shstk__Otlp__NumberDataPoint Point;

#define ATTRIBUTES 4

/**
 * struct message - a message and all parts of it
 * @value: values of attributes, the last one for points.
 * @pair: attributes of the resource.
 * @pairs: pointers to them.
 * @reason: attribute of a point, for each count.
 * @reasons: pointers to them.
 * @reason_value: their values.
 * @point: the value of each count.
 * @points: pointers to them.
 * @sum: what tells how points are added up.
 * @metric: the metric of each count; those that are dropped share the first one of them.
 * @metrics: pointers to them.
 * @nr: elements of @metrics.
 */
struct message {
	AnyValue value[ATTRIBUTES];
	KeyValue pair[ATTRIBUTES];
	KeyValue *pairs[ATTRIBUTES];
	KeyValue reason[SPOOL_COUNTS];
	KeyValue *reasons[SPOOL_COUNTS];
	AnyValue reason_value[SPOOL_COUNTS];
	Point point[SPOOL_COUNTS];
	Point *points[SPOOL_COUNTS];
	Shstk__Otlp__Sum sum[SPOOL_COUNTS];
	Metric metric[SPOOL_COUNTS];
	Metric *metrics[SPOOL_COUNTS];
	size_t nr;
	char name[SPOOL_COUNTS][64];
};

static void set_text(AnyValue *value, const char *text)
{
	shstk__otlp__any_value__init(value);
	value->value_case = SHSTK__OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value = (char *)text;
}

static void set_attribute(struct message *m, size_t i, const char *name, const char *text)
{
	shstk__otlp__key_value__init(&m->pair[i]);
	set_text(&m->value[i], text);
	m->pair[i].key = (char *)name;
	m->pair[i].value = &m->value[i];
	m->pairs[i] = &m->pair[i];
}

static void set_point(struct message *m, int i, uint64_t start, uint64_t value)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	shstk__otlp__number_data_point__init(&m->point[i]);
	m->point[i].start_time_unix_nano = start;
	m->point[i].time_unix_nano = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	m->point[i].value_case = SHSTK__OTLP__NUMBER_DATA_POINT__VALUE_AS_INT;
	m->point[i].as_int = value;
	m->points[i] = &m->point[i];
}

/* Begins a metric, whose first point is that of a count. */
static void begin_metric(struct message *m, int i, size_t name_size)
{
	shstk__otlp__metric__init(&m->metric[i]);
	shstk__otlp__sum__init(&m->sum[i]);
	snprintf(m->name[i], sizeof(m->name[i]), "shstk.push.%.*s", (int)name_size,
		 spool_count_names[i]);
	m->sum[i].data_points = &m->points[i];
	m->sum[i].n_data_points = 1;
	m->sum[i].aggregation_temporality = CUMULATIVE;
	m->sum[i].is_monotonic = true;
	m->metric[i].name = m->name[i];
	m->metric[i].unit = i == SPOOL_SENT_BYTES ? "By" : "{request}";
	m->metric[i].sum = &m->sum[i];
	m->metrics[m->nr++] = &m->metric[i];
}

/* The counts of what was dropped lie one behind the other, so their points do, too. */
static void add_count(struct message *m, int i)
{
	const char *name = spool_count_names[i];

	if (strncmp(name, DROPPED, strlen(DROPPED))) {
		begin_metric(m, i, strlen(name));
		return;
	}
	shstk__otlp__key_value__init(&m->reason[i]);
	set_text(&m->reason_value[i], name + strlen(DROPPED));
	m->reason[i].key = "reason";
	m->reason[i].value = &m->reason_value[i];
	m->reasons[i] = &m->reason[i];
	m->point[i].attributes = &m->reasons[i];
	m->point[i].n_attributes = 1;
	if (i && !strncmp(spool_count_names[i - 1], DROPPED, strlen(DROPPED)))
		m->metrics[m->nr - 1]->sum->n_data_points++;
	else
		begin_metric(m, i, strlen(DROPPED) - 1);
}

/* Returns the message in memory that the caller frees, or NULL if out of memory. */
static uint8_t *pack(struct message *m, size_t nr_pairs, size_t *size)
{
	Shstk__Otlp__MetricsData data = SHSTK__OTLP__METRICS_DATA__INIT;
	Shstk__Otlp__ResourceMetrics of_resource = SHSTK__OTLP__RESOURCE_METRICS__INIT;
	Shstk__Otlp__ScopeMetrics of_scope = SHSTK__OTLP__SCOPE_METRICS__INIT;
	Shstk__Otlp__Resource resource = SHSTK__OTLP__RESOURCE__INIT;
	Shstk__Otlp__Scope scope = SHSTK__OTLP__SCOPE__INIT;
	Shstk__Otlp__ResourceMetrics *resources = &of_resource;
	Shstk__Otlp__ScopeMetrics *scopes = &of_scope;
	uint8_t *ret;

	resource.attributes = m->pairs;
	resource.n_attributes = nr_pairs;
	scope.name = "shstk";
	scope.version = SHSTK_VERSION;
	of_scope.scope = &scope;
	of_scope.metrics = m->metrics;
	of_scope.n_metrics = m->nr;
	of_resource.resource = &resource;
	of_resource.scope_metrics = &scopes;
	of_resource.n_scope_metrics = 1;
	data.resource_metrics = &resources;
	data.n_resource_metrics = 1;
	*size = shstk__otlp__metrics_data__get_packed_size(&data);
	ret = malloc(*size);
	if (ret)
		shstk__otlp__metrics_data__pack(&data, ret);
	return ret;
}

/* Makes a message of the counts. Two spools of a machine are told apart by their names. */
static uint8_t *make(const struct counting *counting, const struct spool *spool, uint64_t start,
		     size_t *size)
{
	struct message *m = calloc(1, sizeof(*m));
	uint64_t counts[SPOOL_COUNTS];
	char id[SHSTK_MACHINE_ID];
	struct utsname name;
	size_t pairs = 0;
	uint8_t *ret;

	if (!m)
		return NULL;
	set_attribute(m, pairs++, "service.name", "shstk");
	set_attribute(m, pairs++, "shstk.spool", counting->send.spool_name);
	if (!uname(&name))
		set_attribute(m, pairs++, "host.name", name.nodename);
	if (shstk_resource_machine(id))
		set_attribute(m, pairs++, "host.id", id);
	spool_counts(spool, counts);
	for (int i = 0; i < SPOOL_COUNTS; i++) {
		set_point(m, i, start, counts[i]);
		add_count(m, i);
	}
	ret = pack(m, pairs, size);
	free(m);
	return ret;
}

/* Returns the URL for metrics, which the caller frees; NULL if that can't be told from @to. */
static char *url_for_metrics(const char *to)
{
	const size_t len = strlen(to), end = strlen(PROFILES);
	const char *path = strstr(to, "://");
	char *ret;

	path = path ? strchr(path + 3, '/') : NULL;
	if (!path || !path[1])
		return strdup(to);
	if (len < end || strcmp(to + len - end, PROFILES))
		return NULL;
	return asprintf(&ret, "%.*s" METRICS, (int)(len - end), to) < 0 ? NULL : ret;
}

void counting_init(struct counting *counting, const struct send *send)
{
	struct reason why = { "" };

	*counting = (struct counting){ .send = *send };
	if (!send->push_counts)
		return;
	counting->to = url_for_metrics(send->to);
	if (!counting->to) {
		send_say(send, "counts are not sent: the path of the URL is not " PROFILES);
		return;
	}
	counting->send.to = counting->to;
	counting->send.path = METRICS;
	counting->send.encoding = NULL;
	counting->send.nr_query = 0;
	counting->on = connection_init(&counting->connection, &counting->send, &why) == EXIT_OK;
	counting->connected = true;
}

void counting_deinit(struct counting *counting)
{
	if (counting->connected)
		connection_deinit(&counting->connection);
	free(counting->to);
}

void counting_send(struct counting *counting, const struct spool *spool, int lock, long most_ms)
{
	struct reason why = { "" };
	unsigned long wanted;
	struct stat st;
	uint8_t *body;
	size_t size;

	/* The file of the lock is made with the spool, and never written to. */
	if (!counting->on || fstat(lock, &st))
		return;
	body = make(counting, spool, (uint64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		    &size);
	if (!body)
		return;
	curl_easy_setopt(counting->connection.curl, CURLOPT_TIMEOUT_MS, most_ms);
	if (request_try(&counting->connection, body, size, &wanted, &why) == REFUSED) {
		send_say(&counting->send, why.text);
		send_say(&counting->send, "counts are not sent any more");
		counting->on = false;
	}
	free(body);
}
