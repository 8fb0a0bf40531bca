/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* htlhash.h - OpenTelemetry's id of a file, which also files without a build id have. */
#ifndef SHSTK_SYMBOL_HTLHASH_H
#define SHSTK_SYMBOL_HTLHASH_H

#include <stdbool.h>
#include <stdint.h>

#define SHSTK_HTLHASH 16 /* bytes of an id */

/**
 * shstk_htlhash() - compute the id of a file, process.executable.build_id.htlhash
 * @fd: descriptor of the file.
 * @ret: receives the id.
 *
 * It is the first half of SHA-256 of the first 4096 bytes of the file, the last 4096 and its size
 * in 8 bytes, the highest first. A file that is shorter is there twice.
 *
 * Return: whether there is one; without libcrypto there is none.
 */
bool shstk_htlhash(int fd, uint8_t ret[SHSTK_HTLHASH]);

#endif /* SHSTK_SYMBOL_HTLHASH_H */
