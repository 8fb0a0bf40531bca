// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk_count.c - counts how walks end and what they do: the files in /sys/module/shstk_perf/rules/.
 */
#include <linux/kobject.h>
#include <linux/percpu.h>
#include <linux/sysfs.h>

#include "rules_call.h"
#include "walk_parts.h"

DEFINE_PER_CPU(struct counts, walk_counts);

struct count_attribute {
	struct kobj_attribute attr;
	unsigned int what;
};

static ssize_t count_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	unsigned int what = container_of(attr, struct count_attribute, attr)->what;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(walk_counts.count[what], cpu);
	return sysfs_emit(buf, "%llu\n", sum);
}

#define COUNT(_name, _what)                                    \
	static struct count_attribute _name##_attr = {         \
		.attr = __ATTR(_name, 0444, count_show, NULL), \
		.what = (_what),                               \
	}

COUNT(whole, WALK_WHOLE);
COUNT(zero, WALK_ZERO);
COUNT(room, WALK_ROOM);
COUNT(cut_no_code, WALK_NO_CODE);
COUNT(cut_no_table, WALK_NO_TABLE);
COUNT(cut_no_rule, WALK_NO_RULE);
COUNT(cut_no_kind, WALK_NO_KIND);
COUNT(cut_no_memory, WALK_NO_MEMORY);
COUNT(cut_bad_cfa, WALK_BAD_CFA);
COUNT(refused, WALK_REFUSED);
COUNT(first_unknown, COUNT_FIRST_UNKNOWN);
COUNT(step_record, COUNT_RECORD);
COUNT(step_signal, COUNT_SIGNAL);
COUNT(step_uretprobe, COUNT_URETPROBE);
COUNT(mappings_read, COUNT_MAPPINGS_READ);
COUNT(rules_read, COUNT_RULES_READ);

static ssize_t tables_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", rules_tables());
}

static ssize_t listeners_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rules_listeners());
}

static ssize_t files_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", rules_files());
}

static ssize_t memory_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%zu\n", walk_memory());
}

static struct kobj_attribute tables_attr = __ATTR_RO(tables);
static struct kobj_attribute files_attr = __ATTR_RO(files);
static struct kobj_attribute listeners_attr = __ATTR_RO(listeners);
static struct kobj_attribute memory_attr = __ATTR_RO(memory);

static struct attribute *count_attrs[] = {
	&tables_attr.attr,
	&files_attr.attr,
	&listeners_attr.attr,
	&memory_attr.attr,
	&whole_attr.attr.attr,
	&zero_attr.attr.attr,
	&room_attr.attr.attr,
	&cut_no_code_attr.attr.attr,
	&cut_no_table_attr.attr.attr,
	&cut_no_rule_attr.attr.attr,
	&cut_no_kind_attr.attr.attr,
	&cut_no_memory_attr.attr.attr,
	&cut_bad_cfa_attr.attr.attr,
	&refused_attr.attr.attr,
	&first_unknown_attr.attr.attr,
	&step_record_attr.attr.attr,
	&step_signal_attr.attr.attr,
	&step_uretprobe_attr.attr.attr,
	&mappings_read_attr.attr.attr,
	&rules_read_attr.attr.attr,
	NULL,
};

const struct attribute_group walk_group = {
	.attrs = count_attrs,
};
