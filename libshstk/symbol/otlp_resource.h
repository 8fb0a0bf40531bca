/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* otlp_resource.h - what the name of a control group says of a process: its service, its pod. */
#ifndef SHSTK_OTLP_RESOURCE_H
#define SHSTK_OTLP_RESOURCE_H

#include <stdbool.h>

#define SHSTK_RESOURCE_TEXT 256 /* bytes of a text at most, with its zero */
#define SHSTK_MACHINE_ID 33 /* bytes of a machine's id, with its zero */

/**
 * shstk_resource_unit() - find the service of systemd's that a control group belongs to
 * @cgroup: path of the control group.
 * @unit: receives its name without the suffix and without the instance, SHSTK_RESOURCE_TEXT bytes.
 *
 * A user's own manager (user@1000.service) is no service, but what it started may be one.
 *
 * Return: whether there is one.
 */
bool shstk_resource_unit(const char *cgroup, char *unit);

/**
 * shstk_resource_pod() - find the pod of Kubernetes that a control group belongs to
 * @cgroup: path of the control group, as containerd, CRI-O and others make it, by systemd or without.
 * @uid: receives the pod's UID, with hyphens, SHSTK_RESOURCE_TEXT bytes.
 *
 * Return: whether there is one.
 */
bool shstk_resource_pod(const char *cgroup, char *uid);

/* Reads the machine's id. Returns false if it has none. */
bool shstk_resource_machine(char id[SHSTK_MACHINE_ID]);

#endif /* SHSTK_OTLP_RESOURCE_H */
