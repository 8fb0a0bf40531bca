// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * anylibc.c - what only glibc has, for objects that are preloaded everywhere.
 *
 * The environment of a command reaches all that it starts, whatever C library that
 * is linked with. Loaders other than glibc's take its "libc.so.6" for themselves, but
 * end a program for a symbol that they do not find. So the preloaded objects must
 * need nothing that musl lacks: the functions here stand in front of glibc's, in the
 * object alone, and look for them at run time. (A test compares the lists of symbols.)
 */
#undef _FORTIFY_SOURCE /* what it calls is here */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

extern void *__dso_handle __attribute__((visibility("hidden")));

/* In glibc a part of each object, which calls something that musl lacks. */
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	int (*glibc)(void (*)(void), void (*)(void), void (*)(void), void *);
	int (*other)(void (*)(void), void (*)(void), void (*)(void));

	*(void **)&glibc = dlsym(RTLD_DEFAULT, "__register_atfork");
	if (glibc)
		return glibc(prepare, parent, child, &__dso_handle);
	*(void **)&other = dlsym(RTLD_DEFAULT, "pthread_atfork");
	return other ? other(prepare, parent, child) : ENOSYS;
}

int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
	int (*glibc)(const void *, Dl_info *, void **, int);

	*(void **)&glibc = dlsym(RTLD_DEFAULT, "dladdr1");
	return glibc ? glibc(address, info, extra, flags) : 0;
}

/*
 * What the compiler calls where it knows the room of a buffer, but not how much comes into it. In
 * glibc these end the program. It is not to end for a mistake of ours, nor to be written over:
 * what has no room is left out.
 */
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
void *__memset_chk(void *to, int byte, size_t n, size_t room);

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
	return memcpy(to, from, n < room ? n : room);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
	return memmove(to, from, n < room ? n : room);
}

void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
	return memset(to, byte, n < room ? n : room);
}
