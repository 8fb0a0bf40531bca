// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * anylibc.c - functions that only glibc has, for objects that are preloaded everywhere.
 *
 * The environment of a command reaches all programs that it starts, whatever C library they are
 * linked with. Loaders other than glibc's use their own library for "libc.so.6", but end a program
 * if they do not find a symbol. So the preloaded objects must need nothing that musl lacks. The
 * functions here replace glibc's in the object alone, and look for glibc's at run time. (A test
 * compares the lists of symbols.)
 */
#undef _FORTIFY_SOURCE /* the functions that it calls are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

extern void *__dso_handle __attribute__((visibility("hidden")));

/* In glibc this function is linked into each object and calls one that musl lacks. */
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
 * The compiler calls these where it knows the room of a buffer but not how much is copied to it. In
 * glibc they end the program. Here they leave out what does not fit: a mistake in this object must
 * neither end the program nor overwrite its memory.
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
