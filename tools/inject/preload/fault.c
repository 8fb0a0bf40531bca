// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fault.c - control-protection faults. It reports once per place which return went elsewhere than
 * it should, and in permissive mode lets the return succeed.
 *
 * The object's SIGSEGV handler stays installed. The program's action is kept here, and its handler
 * is called for every other SIGSEGV, with the flags and the mask that the program asked for.
 *
 * A near return faults when the ordinary and the shadow stack disagree; the return has not happened
 * yet. There are two repairs:
 *
 * - The return address is found further up on the shadow stack: code unwound only the ordinary
 *   stack (by a longjmp() of its own). The entries above it are dropped, and the return is tried
 *   again.
 * - The return address is not there: the return is a jump (a coroutine switch, or a pushed
 *   address). It is carried out as a jump; the shadow stack is not changed.
 *
 * fault_x86.c and fault_arm64.c implement the repairs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ucontext.h>

#include "fault.h"
#include "start.h"

#ifndef SEGV_CPERR
#define SEGV_CPERR 10
#endif
#define ALIAS(of) __attribute__((nothrow, leaf, alias(of)))
#define KERNEL_SA_RESTORER 0x04000000ul

struct kernel_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* The action that the program set for SIGSEGV; the one in use is actions[current]. */
static struct sigaction actions[2];
static unsigned int current;
static bool handling;

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static void (*(*real_signal)(int, void (*)(int)))(int);
static void (*(*real_sysv_signal)(int, void (*)(int)))(int);

void start_find_signals(void)
{
	real_sigaction = dlsym(RTLD_NEXT, "sigaction");
	real_signal = dlsym(RTLD_NEXT, "signal");
	real_sysv_signal = dlsym(RTLD_NEXT, "__sysv_signal");
}

/* A bounded buffer for text, as there is no libc. */
struct bounded_text {
	char *p;
	char *end;
};

static void put(struct bounded_text *t, const char *s)
{
	while (*s && t->p < t->end)
		*t->p++ = *s++;
}

static void put_number(struct bounded_text *t, uint64_t v, unsigned int base)
{
	char digits[24], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do {
		*--p = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	put(t, p);
}

void start_say(const char *a, const char *b)
{
	char buf[320];
	struct bounded_text t = { buf, buf + sizeof(buf) - 1 };

	put(&t, "shstk run: ");
	put(&t, a);
	put(&t, b);
	*t.p++ = '\n';
	sys3(SYS_write, 2, buf, t.p - buf);
}

static bool send_report(const char *text, size_t size)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = 0;
	long fd, n;

	if (!start_settings.socket[0])
		return false;
	while (start_settings.socket[len] && len < sizeof(to.sun_path) - 2) {
		to.sun_path[len + 1] = start_settings.socket[len];
		len++;
	}
	fd = sys2(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC);
	if (fd < 0)
		return false;
	n = sys6(SYS_sendto, fd, (long)text, (long)size, MSG_NOSIGNAL, (long)&to,
		 (long)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
	sys1(SYS_close, fd);
	return n >= 0;
}

static void put_place(struct bounded_text *t, uint64_t addr)
{
	struct map_line line;

	if (start_map_find(addr, &line)) {
		put(t, line.text);
		put(t, "\n");
	}
}

/*
 * Returns whether a report about @pc was made before. It remembers up to 256 places; once they are
 * full, it returns true.
 */
static bool seen(uint64_t pc)
{
	static uint64_t sites[256];
	uint64_t empty = 0;
	size_t at = (pc >> 4 ^ pc >> 12) % 256;

	for (size_t i = 0; i < 256; i++, at = (at + 1) % 256, empty = 0) {
		if (__atomic_compare_exchange_n(&sites[at], &empty, pc, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return false;
		if (empty == pc)
			return true;
	}
	return true;
}

static void report(const struct violation *v, const char *action)
{
	char buf[1100];
	struct bounded_text t = { buf, buf + sizeof(buf) - 1 };

	if (seen(v->pc))
		return;
	put(&t, "violation ");
	put_number(&t, (uint64_t)sys0(SYS_getpid), 10);
	put(&t, " ");
	put_number(&t, (uint64_t)sys0(SYS_gettid), 10);
	put(&t, " ");
	put(&t, action);
	put(&t, " at 0x");
	put_number(&t, v->pc, 16);
	put(&t, " to 0x");
	put_number(&t, v->to, 16);
	put(&t, " shadow 0x");
	put_number(&t, v->shadow, 16);
	put(&t, "\n");
	put_place(&t, v->pc);
	put_place(&t, v->to);
	put_place(&t, v->shadow);
	if (send_report(buf, (size_t)(t.p - buf)))
		return;
	sys3(SYS_write, 2, "shstk run: ", 11);
	sys3(SYS_write, 2, buf, t.p - buf);
}

/* Returns the address above the SSP of the fault that holds @to, or 0. */
static uint64_t find_entry(const struct violation *v)
{
	uint64_t lo, hi;

	if (!start_bounds(v->slot, &lo, &hi))
		return 0;
	for (uint64_t a = v->ssp + 8; a < hi; a += 8)
		if (load_word(a) == v->to)
			return a;
	return 0;
}

/* Handles a violation. Returns whether the program goes on. */
static bool violation(ucontext_t *uc)
{
	struct violation v;
	uint64_t entry;

	if (!fault_describe(uc, &v))
		return false;
	if (!start_settings.permissive || !v.is_return) {
		report(&v, "fatal");
		return false;
	}
	entry = find_entry(&v);
	if (entry && fault_can_unwind()) {
		report(&v, "unwound");
		fault_unwind(uc, &v, entry);
		return true;
	}
	if (fault_jump(uc, v.to)) {
		report(&v, "jumped");
		return true;
	}
	report(&v, "fatal");
	return false;
}

static void on_fault(int sig, siginfo_t *info, void *uc);

static long install(const struct sigaction *a)
{
	bool own = a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN;
	struct kernel_action k = {
		.handler = on_fault,
		.flags = SA_SIGINFO |
			 (own ? SA_ONSTACK : (unsigned long)a->sa_flags & ~SA_RESETHAND),
	};

#ifdef __x86_64__
	k.flags |= KERNEL_SA_RESTORER;
	k.restorer = start_restorer;
#endif

	if (!own)
		k.mask = *(const uint64_t *)&a->sa_mask;
	return sys4(SYS_rt_sigaction, SIGSEGV, &k, 0, 8);
}

/*
 * Acts as if there were no handler: a fault happens again, and a signal that was sent is sent
 * again. The signal of a violation is also sent again, as it came, and takes effect at the return:
 * if the return were tried again, the kernel would count two violations.
 */
static void die(int sig, const siginfo_t *info)
{
	struct kernel_action k = { 0 };

	sys4(SYS_rt_sigaction, sig, &k, 0, 8);
	if (info->si_code == SEGV_CPERR)
		sys4(SYS_rt_tgsigqueueinfo, sys0(SYS_getpid), sys0(SYS_gettid), sig, (long)info);
	else if (info->si_code <= 0)
		sys3(SYS_tgkill, sys0(SYS_getpid), sys0(SYS_gettid), sig);
}

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	struct sigaction a = actions[__atomic_load_n(&current, __ATOMIC_ACQUIRE)];

	if (fault_resume(info, uc) || (info->si_code == SEGV_CPERR && violation(uc)))
		return;
	if (a.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN) {
		die(sig, info);
		return;
	}
	if (a.sa_flags & (int)SA_RESETHAND)
		actions[current].sa_handler = SIG_DFL;
	if (a.sa_flags & SA_SIGINFO)
		a.sa_sigaction(sig, info, uc);
	else
		a.sa_handler(sig);
}

static void set_action(const struct sigaction *act)
{
	unsigned int next = !current;

	actions[next] = *act;
	__atomic_store_n(&current, next, __ATOMIC_RELEASE);
	install(act);
}

void start_faults(void)
{
	struct kernel_action now = { 0 };
	struct sigaction a = { 0 };

	/* A constructor may have installed an action before. */
	sys4(SYS_rt_sigaction, SIGSEGV, 0, &now, 8);
	a.sa_sigaction = now.handler;
	a.sa_flags = (int)(now.flags & ~KERNEL_SA_RESTORER);
	*(uint64_t *)&a.sa_mask = now.mask;
	handling = true;
	set_action(&a);
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was;

	if (sig != SIGSEGV || !handling) {
		/* A constructor of another library may run before this object's. */
		if (!real_sigaction)
			start_find_signals();
		return real_sigaction(sig, act, old);
	}
	was = actions[current];
	if (act)
		set_action(act);
	if (old)
		*old = was;
	return 0;
}

EXPORT int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
	ALIAS("sigaction");

static void (*set_handler(void (*handler)(int), int flags))(int)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags }, was;

	if (!(flags & SA_NODEFER))
		sigaddset(&a.sa_mask, SIGSEGV);
	sigaction(SIGSEGV, &a, &was);
	return was.sa_handler;
}

EXPORT void (*signal(int sig, void (*handler)(int)))(int)
{
	if (sig != SIGSEGV || !handling) {
		if (!real_signal)
			start_find_signals();
		return real_signal(sig, handler);
	}
	return set_handler(handler, SA_RESTART);
}

EXPORT void (*bsd_signal(int sig, void (*handler)(int)))(int) ALIAS("signal");
EXPORT void (*ssignal(int sig, void (*handler)(int)))(int) ALIAS("signal");

EXPORT void (*__sysv_signal(int sig, void (*handler)(int)))(int)
{
	if (sig != SIGSEGV || !handling) {
		if (!real_sysv_signal)
			start_find_signals();
		return real_sysv_signal(sig, handler);
	}
	return set_handler(handler, (int)(SA_RESETHAND | SA_NODEFER));
}

EXPORT void (*sysv_signal(int sig, void (*handler)(int)))(int) ALIAS("__sysv_signal");
