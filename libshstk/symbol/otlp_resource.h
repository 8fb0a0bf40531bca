/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* otlp_resource.h - what the name of a control group says of a process: its service, its pod. */
#ifndef SHSTK_OTLP_RESOURCE_H
#define SHSTK_OTLP_RESOURCE_H

#include <stdbool.h>

#define SHSTK_RESOURCE_TEXT 256 /* bytes of a text at most, with its zero */
#define SHSTK_MACHINE_ID 33 /* bytes of a machine's id, with its zero */

/**
 * shstk_resource_unit() - find the service that a control group belongs to
 * @cgroup: path of the control group.
 * @unit: receives the name, without the suffix and without the instance, SHSTK_RESOURCE_TEXT bytes.
 *
 * It is the innermost service of systemd's, or container of systemd-nspawn's or LXC's. A user's own
 * manager (user@1000.service) is no service, but what it started may be one.
 *
 * Return: whether there is one.
 */
bool shstk_resource_unit(const char *cgroup, char *unit);

/*
 * Returns whether a control group is that of a container of podman's which is within that of the unit
 * that started it: the unit is the container's then, not that of a daemon of all containers.
 */
bool shstk_resource_is_split(const char *cgroup);

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
