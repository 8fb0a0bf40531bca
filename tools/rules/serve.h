/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve.h - the daemon: tables for whatever runs.
 */
#ifndef TOOLS_RULES_SERVE_H
#define TOOLS_RULES_SERVE_H

/**
 * rules_serve() - load tables of what runs, then of what walks have none for
 * @device: of rules_device().
 * @cache: folder of tables (cache_open()), or -1.
 * @ready: closed when what runs has its tables; or -1.
 *
 * Until SIGTERM or SIGINT.
 *
 * Return: an exit status; why was said.
 */
int rules_serve(int device, int cache, int ready);

#endif
