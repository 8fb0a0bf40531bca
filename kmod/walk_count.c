// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk_count.c - counts how walks end and what they do: the files in /sys/module/shstk_perf/rules/.
 */
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/percpu.h>
#include <linux/sysfs.h>

#include "rules_call.h"
#include "walk_shared.h"

#define NR_OTHERS 4 /* files that show no count of a walk */

DEFINE_PER_CPU(struct counts, walk_counts);

static ssize_t count_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf);

#define COUNT(_name) __ATTR(_name, 0444, count_show, NULL)

/* The file of each count, by what is counted. */
static struct kobj_attribute count_files[NR_COUNTS] = {
	[WALK_WHOLE] = COUNT(whole),
	[WALK_ZERO] = COUNT(zero),
	[WALK_ROOM] = COUNT(room),
	[WALK_NO_CODE] = COUNT(cut_no_code),
	[WALK_NO_TABLE] = COUNT(cut_no_table),
	[WALK_NO_RULE] = COUNT(cut_no_rule),
	[WALK_NO_KIND] = COUNT(cut_no_kind),
	[WALK_NO_MEMORY] = COUNT(cut_no_memory),
	[WALK_BAD_CFA] = COUNT(cut_bad_cfa),
	[WALK_REFUSED] = COUNT(refused),
	[COUNT_RECORD] = COUNT(step_record),
	[COUNT_SIGNAL] = COUNT(step_signal),
	[COUNT_URETPROBE] = COUNT(step_uretprobe),
	[COUNT_FIRST_UNKNOWN] = COUNT(first_unknown),
	[COUNT_MAPPINGS_READ] = COUNT(mappings_read),
	[COUNT_RULES_READ] = COUNT(rules_read),
};

static ssize_t count_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	unsigned int what = attr - count_files;
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(walk_counts.count[what], cpu);
	return sysfs_emit(buf, "%llu\n", sum);
}

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

/*
 * The files that show no count of a walk, followed by those in count_files, which walk_count_init()
 * puts here. NULL ends the array.
 */
static struct attribute *count_attrs[NR_OTHERS + NR_COUNTS + 1] = {
	&tables_attr.attr,
	&files_attr.attr,
	&listeners_attr.attr,
	&memory_attr.attr,
};

const struct attribute_group walk_group = {
	.attrs = count_attrs,
};

void __init walk_count_init(void)
{
	int i;

	for (i = 0; i < NR_COUNTS; i++)
		count_attrs[NR_OTHERS + i] = &count_files[i].attr;
}
