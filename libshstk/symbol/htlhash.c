// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * htlhash.c - OpenTelemetry's id of a file, as htlhash.h describes.
 *
 * SHA-256 is that of OpenSSL's libcrypto. It is loaded when the first id is wanted, because only
 * messages of OpenTelemetry have one; where it is not installed, files have their build ids only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "htlhash.h"

#define PART 4096 /* bytes of the beginning and of the end that count */
#define DIGEST 32 /* bytes of a sum of SHA-256 */

/* SHA256() of <openssl/sha.h>, the same in all versions. */
typedef unsigned char *sha256_fn(const unsigned char *data, size_t size, unsigned char *digest);

static sha256_fn *sha256;

/* It stays loaded: its functions for the end of the program may be called by then. */
static void load(void)
{
	static const char *const names[] = { "libcrypto.so.4", "libcrypto.so.3" };
	void *handle;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !sha256; i++) {
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (!handle)
			continue;
		sha256 = (sha256_fn *)dlsym(handle, "SHA256");
		dlclose(handle);
	}
}

static bool read_at(int fd, uint8_t *to, size_t size, off_t at)
{
	ssize_t n;

	for (size_t done = 0; done < size; done += n) {
		n = pread(fd, to + done, size - done, at + done);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

bool shstk_htlhash(int fd, uint8_t ret[SHSTK_HTLHASH])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint8_t input[2 * PART + 8], digest[DIGEST];
	struct stat st;
	size_t part;

	pthread_once(&once, load);
	if (!sha256 || fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	part = st.st_size < PART ? st.st_size : PART;
	if (!read_at(fd, input, part, 0) || !read_at(fd, input + part, part, st.st_size - part))
		return false;
	for (int i = 0; i < 8; i++)
		input[2 * part + i] = (uint64_t)st.st_size >> (56 - 8 * i);
	if (!sha256(input, 2 * part + 8, digest))
		return false;
	memcpy(ret, digest, SHSTK_HTLHASH);
	return true;
}
