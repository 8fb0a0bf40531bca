// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * clause_test.cc - everything that markers must leave as it is, one by one. Each
 * clause is run in a process of its own without the library, with the memo and with
 * markers: what the program does must be the same, the traces of the last two too,
 * and markers must have been met. Prints KTAP.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <exception>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "new_keys.h"
#include "shstk_marker.h"

enum mode { OFF, MEMO, MARKERS, MODES };

#define MAX 4096
#define noinline __attribute__((noinline, noclone))
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

static enum mode mode;
static const char *self;

/* What a run reports; the runs in the three modes are compared. */
static struct {
	char did[2000]; /* what the program did */
	char saw[200]; /* what the library and other unwinders saw of the stack */
	uint64_t traces; /* hash of all traces */
	long met; /* number of markers met */
	int skipped;
} * result;

static void add(char *to, size_t size, const char *format, va_list ap)
{
	size_t n = strlen(to);

	vsnprintf(to + n, size - n, format, ap);
}

static __attribute__((format(printf, 1, 2))) void did(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	add(result->did, sizeof(result->did), format, ap);
	va_end(ap);
}

static __attribute__((format(printf, 1, 2))) void saw(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	add(result->saw, sizeof(result->saw), format, ap);
	va_end(ap);
}

static const struct shstk_opts memo_opts = {
	sizeof(memo_opts), SHSTK_USE_MEMO | SHSTK_USE_WALK, 0, 0, nullptr, nullptr,
};

typedef int (*capture_fn)(uint64_t *, unsigned int, const void *, void *);

/* Captures three times in one place: the first capture places a marker, and two meet it. */
static noinline void capture()
{
	static __thread uint64_t pcs[MAX];
	/* One call instruction for all modes, so that entry 0 is the same in each. */
	capture_fn fn = mode == MEMO ? (capture_fn)shstk_capture : (capture_fn)shstk_marker_capture;
	struct shstk_info info = {};
	const void *a = mode == MEMO ? (const void *)&memo_opts : &info;
	void *b = mode == MEMO ? &info : nullptr;

	info.size = sizeof(info);
	for (volatile int i = 0; i < 3 && mode != OFF; i = i + 1) {
		int n = fn(pcs, MAX, a, b);

		result->traces = result->traces * 31 + shstk_trace_id(pcs, n);
		if (info.end != SHSTK_END_COMPLETE)
			saw(" %s", shstk_end_name(info.end));
		__atomic_add_fetch(&result->met, info.source == SHSTK_SOURCE_MARKER,
				   __ATOMIC_RELAXED);
	}
}

static noinline int deep(int n, int (*fn)(int), int arg)
{
	volatile int pad[4];

	pad[0] = n;
	pad[1] = n ? deep(n - 1, fn, arg) : fn(arg);
	NO_TAIL_CALL();
	return pad[1] + 1;
}

static int capture_in(int x)
{
	capture();
	NO_TAIL_CALL();
	return x;
}

/* Marks frames at several depths on its way down, and returns through them. */
static noinline int go(int depth)
{
	return deep(depth, capture_in, depth);
}

/*
 * Registers. middle() is the function whose return address is marked, as it has a frame
 * record and its caller has none; it returns with a known value in every register that may
 * hold one, and outer() looks.
 */
#ifdef __x86_64__
struct seen {
	uint64_t gpr[9]; /* rax rdx rcx rsi rdi r8 r9 r10 r11 */
	uint64_t flags;
	uint64_t xmm[16][2];
	long double st[2];
	uint64_t kept[6]; /* rbx rbp r12-r15 */
	uint64_t marked;
};

extern "C" {
void outer(struct seen *to, void (*fn)());
}

__asm__("	.text\n"
	"	.type middle, @function\n"
	"middle:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	push %rbx\n"
	"	sub $8, %rsp\n"
	"	mov 8(%rbp), %rbx\n"
	"	call *%rsi\n"
	"	xor %eax, %eax\n"
	"	cmp %rbx, 8(%rbp)\n"
	"	setne %al\n"
	"	mov %rax, was_marked(%rip)\n"
	"	add $8, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	fld1\n"
	"	fldpi\n"
	"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	mov $0x1111 * (\\n + 1), %eax\n"
	"	movq %rax, %xmm\\n\n"
	"	movddup %xmm\\n, %xmm\\n\n"
	"	.endr\n"
	"	mov $0xcd5, %eax\n" /* every arithmetic flag but DF */
	"	push %rax\n"
	"	popf\n"
	"	mov $101, %eax\n"
	"	mov $102, %edx\n"
	"	mov $103, %ecx\n"
	"	mov $104, %esi\n"
	"	mov $105, %edi\n"
	"	mov $106, %r8d\n"
	"	mov $107, %r9d\n"
	"	mov $108, %r10d\n"
	"	mov $109, %r11d\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size middle, . - middle\n"
	"	.local was_marked\n"
	"	.comm was_marked, 8, 8\n"
	"	.globl outer\n"
	"	.type outer, @function\n"
	"outer:\n"
	"	.cfi_startproc\n"
	"	.irp r, rbx, rbp, r12, r13, r14, r15\n"
	"	push %\\r\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset %\\r, 0\n"
	"	.endr\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov $201, %ebx\n"
	"	mov $202, %ebp\n"
	"	mov $203, %r12d\n"
	"	mov $204, %r13d\n"
	"	mov $205, %r14d\n"
	"	mov $206, %r15d\n"
	"	call middle\n"
	"	xchg %rdi, (%rsp)\n"
	"	mov %rax, (%rdi)\n"
	"	pushf\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pop %rax\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov %rax, 72(%rdi)\n"
	"	mov %rdx, 8(%rdi)\n"
	"	mov %rcx, 16(%rdi)\n"
	"	mov %rsi, 24(%rdi)\n"
	"	pop %rax\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov %rax, 32(%rdi)\n"
	"	mov %r8, 40(%rdi)\n"
	"	mov %r9, 48(%rdi)\n"
	"	mov %r10, 56(%rdi)\n"
	"	mov %r11, 64(%rdi)\n"
	"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 80 + 16 * \\n(%rdi)\n"
	"	.endr\n"
	"	fstpt 336(%rdi)\n"
	"	fstpt 352(%rdi)\n"
	"	mov %rbx, 368(%rdi)\n"
	"	mov %rbp, 376(%rdi)\n"
	"	mov %r12, 384(%rdi)\n"
	"	mov %r13, 392(%rdi)\n"
	"	mov %r14, 400(%rdi)\n"
	"	mov %r15, 408(%rdi)\n"
	"	mov was_marked(%rip), %rax\n"
	"	mov %rax, 416(%rdi)\n"
	"	.irp r, r15, r14, r13, r12, rbp, rbx\n"
	"	pop %\\r\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.endr\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size outer, . - outer\n");

static void registers()
{
	struct seen s;

	memset(&s, 0, sizeof(s));
	outer(&s, capture);
	for (uint64_t v : s.gpr)
		did(" %lu", v);
	did(" %lx", s.flags & 0xcd5);
	for (auto &v : s.xmm)
		did(" %lx:%lx", v[0], v[1]);
	did(" %.18Lf %.18Lf", s.st[0], s.st[1]);
	for (uint64_t v : s.kept)
		did(" %lu", v);
	if (mode == MARKERS && !s.marked)
		saw(" not marked");
}
#endif

#ifdef __aarch64__
struct seen {
	uint64_t gpr[18]; /* x0-x17 */
	uint64_t flags;
	uint64_t kept[10]; /* x19-x28 */
	uint64_t marked;
	uint64_t v[32][2];
};

extern "C" {
void outer_signed(struct seen *to, void (*fn)());
void outer_plain(struct seen *to, void (*fn)());
}

#define REGISTERS(name, sign, state, authenticate)                                                                 \
	__asm__("	.text\n"                                                                                         \
		"	.type middle_" name ", %function\n"                                                        \
		"middle_" name ":\n"                                                                               \
		"	.cfi_startproc\n" sign state "	stp x29, x30, [sp, #-32]!\n"                                \
		"	.cfi_def_cfa_offset 32\n"                                                                        \
		"	.cfi_offset x29, -32\n"                                                                          \
		"	.cfi_offset x30, -24\n"                                                                          \
		"	mov x29, sp\n"                                                                                   \
		"	.cfi_def_cfa_register x29\n"                                                                     \
		"	str x30, [sp, #16]\n"                                                                            \
		"	blr x1\n"                                                                                        \
		"	ldp x9, x10, [sp, #8]\n"                                                                         \
		"	cmp x9, x10\n"                                                                                   \
		"	cset x9, ne\n"                                                                                   \
		"	adrp x10, was_marked\n"                                                                          \
		"	str x9, [x10, #:lo12:was_marked]\n"                                                              \
		"	ldp x29, x30, [sp], #32\n"                                                                       \
		"	.cfi_restore x29\n"                                                                              \
		"	.cfi_restore x30\n"                                                                              \
		"	.cfi_def_cfa sp, 0\n" authenticate state                                                   \
		"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n" \
		"	mov x0, #0x1111 + \\n\n"                                                                         \
		"	dup v\\n\\().2d, x0\n"                                                                           \
		"	.endr\n"                                                                                         \
		"	mov x0, #0xa0000000\n"                                                                           \
		"	msr nzcv, x0\n"                                                                                  \
		"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n"                                           \
		"	mov x\\n, #101 + \\n\n"                                                                          \
		"	.endr\n"                                                                                         \
		"	ret\n"                                                                                           \
		"	.cfi_endproc\n"                                                                                  \
		"	.size middle_" name ", . - middle_" name "\n"                                              \
		"	.globl outer_" name "\n"                                                                   \
		"	.type outer_" name ", %function\n"                                                         \
		"outer_" name ":\n"                                                                                \
		"	.cfi_startproc\n"                                                                                \
		"	str x29, [sp, #-112]!\n"                                                                         \
		"	.cfi_def_cfa_offset 112\n"                                                                       \
		"	.cfi_offset x29, -112\n"                                                                         \
		"	str x30, [sp, #104]\n"                                                                           \
		"	.cfi_offset x30, -8\n"                                                                           \
		"	stp x19, x20, [sp, #16]\n"                                                                       \
		"	stp x21, x22, [sp, #32]\n"                                                                       \
		"	stp x23, x24, [sp, #48]\n"                                                                       \
		"	stp x25, x26, [sp, #64]\n"                                                                       \
		"	stp x27, x28, [sp, #80]\n"                                                                       \
		"	str x0, [sp, #96]\n"                                                                             \
		"	.irp n, 19,20,21,22,23,24,25,26,27,28\n"                                                         \
		"	mov x\\n, #201 + \\n\n"                                                                          \
		"	.endr\n"                                                                                         \
		"	bl middle_" name "\n"                                                                      \
		"	ldr x30, [sp, #96]\n"                                                                            \
		"	.irp n, 0,2,4,6,8,10,12,14,16\n"                                                                 \
		"	str x\\n, [x30, #8 * \\n]\n"                                                                     \
		"	.endr\n"                                                                                         \
		"	.irp n, 1,3,5,7,9,11,13,15,17\n"                                                                 \
		"	str x\\n, [x30, #8 * \\n]\n"                                                                     \
		"	.endr\n"                                                                                         \
		"	mrs x0, nzcv\n"                                                                                  \
		"	str x0, [x30, #144]\n"                                                                           \
		"	.irp n, 19,20,21,22,23,24,25,26,27,28\n"                                                         \
		"	str x\\n, [x30, #8 * \\n]\n"                                                                     \
		"	.endr\n"                                                                                         \
		"	adrp x10, was_marked\n"                                                                          \
		"	ldr x9, [x10, #:lo12:was_marked]\n"                                                              \
		"	str x9, [x30, #232]\n"                                                                           \
		"	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n" \
		"	str q\\n, [x30, #240 + 16 * \\n]\n"                                                              \
		"	.endr\n"                                                                                         \
		"	ldp x19, x20, [sp, #16]\n"                                                                       \
		"	ldp x21, x22, [sp, #32]\n"                                                                       \
		"	ldp x23, x24, [sp, #48]\n"                                                                       \
		"	ldp x25, x26, [sp, #64]\n"                                                                       \
		"	ldp x27, x28, [sp, #80]\n"                                                                       \
		"	ldr x30, [sp, #104]\n"                                                                           \
		"	ldr x29, [sp], #112\n"                                                                           \
		"	.cfi_def_cfa_offset 0\n"                                                                         \
		"	.cfi_restore x29\n"                                                                              \
		"	.cfi_restore x30\n"                                                                              \
		"	ret\n"                                                                                           \
		"	.cfi_endproc\n"                                                                                  \
		"	.size outer_" name ", . - outer_" name "\n")

__asm__("	.local was_marked\n"
	"	.comm was_marked, 8, 8\n");
REGISTERS("plain", "", "", "");
REGISTERS("signed", "	hint #25\n", "	.cfi_negate_ra_state\n", "	hint #29\n");

static void registers()
{
	for (auto outer : { outer_plain, outer_signed }) {
		struct seen s;

		memset(&s, 0, sizeof(s));
		outer(&s, capture);
		for (uint64_t v : s.gpr)
			did(" %lu", v);
		did(" %lx", s.flags);
		for (uint64_t v : s.kept)
			did(" %lu", v);
		for (auto &v : s.v)
			did(" %lx:%lx", v[0], v[1]);
		if (mode == MARKERS && !s.marked)
			saw(" not marked");
	}
}
#endif

static noinline double a_double(int x)
{
	go(x);
	return x * 1.5;
}
static noinline long double a_long_double(int x)
{
	go(x);
	return x / 3.0L;
}
static noinline __int128 an_int128(int x)
{
	go(x);
	return (__int128)x << 70 | x;
}
struct two {
	double a, b;
};
static noinline struct two two_doubles(int x)
{
	go(x);
	return { x * 2.0, x / 7.0 };
}
struct large {
	int v[30];
};
static noinline struct large in_memory(int x)
{
	struct large l;

	go(x);
	for (int i = 0; i < 30; i++)
		l.v[i] = x * i;
	return l;
}

static void values()
{
	for (int i = 0; i < 40; i++) {
		struct two t = two_doubles(i);
		__int128 w = an_int128(i);

		did(" %g %.15Lg %lx:%lx %g %g %d", a_double(i), a_long_double(i), (long)(w >> 64),
		    (long)w, t.a, t.b, in_memory(i).v[29]);
	}
}

/* ---- Exceptions ---- */

static int destroyed;

struct object {
	bool captures;

	explicit object(bool c)
		: captures(c)
	{
	}
	~object()
	{
		destroyed++;
		if (captures)
			go(3);
	}
};

static noinline int thrower(int depth)
{
	object o(depth % 3 == 0);

	if (!(depth % 5))
		capture();
	if (!depth)
		throw std::runtime_error("bottom");
	thrower(depth - 1);
	NO_TAIL_CALL();
	return 0;
}

static noinline int rethrower(int depth)
{
	object o(false);

	try {
		return thrower(depth) + 1;
	} catch (const std::runtime_error &e) {
		did(" c");
		go(4);
		throw;
	}
}

static void exceptions()
{
	for (int i = 0; i < 60; i++) {
		destroyed = 0;
		try {
			rethrower(i);
		} catch (const std::exception &e) {
			did(" %s:%d", e.what() + 4, destroyed);
			capture();
		}
	}
	/* An object whose destructor throws and catches an exception during unwinding. */
	struct nested {
		~nested()
		{
			try {
				thrower(20);
			} catch (...) {
				did(" inner");
			}
		}
	};
	try {
		nested n;

		thrower(30);
	} catch (...) {
		did(" outer");
	}
}

static noinline void no_throw() noexcept
{
	object o(true);

	thrower(12);
	NO_TAIL_CALL();
}

static void on_terminate()
{
	did(" terminate:%d", std::current_exception() != nullptr);
	go(5);
	_exit(0);
}

static void terminate_in_noexcept()
{
	std::set_terminate(on_terminate);
	go(10);
	no_throw();
}

static void uncaught()
{
	std::set_terminate(on_terminate);
	thrower(25);
}

/* ---- Forced unwinding ---- */

static noinline void leave_thread(int depth)
{
	object o(depth % 4 == 0);

	capture();
	if (!depth)
		pthread_exit((void *)77);
	leave_thread(depth - 1);
	NO_TAIL_CALL();
}

static void *leaver(void *arg)
{
	leave_thread((int)(long)arg);
	return nullptr;
}

static volatile bool at_bottom, no_signal;

static noinline void wait_for_cancel(int depth)
{
	object o(depth % 4 == 0);

	capture();
	if (!depth) {
		for (at_bottom = true;;)
			no_signal ? pthread_testcancel() : (void)pause();
	}
	wait_for_cancel(depth - 1);
	NO_TAIL_CALL();
}

static void *waiter(void *arg)
{
	wait_for_cancel((int)(long)arg);
	return nullptr;
}

/* Starts a thread and cancels it. Returns false if the thread cannot be interrupted. */
static bool cancel(pthread_t *t, long depth, bool by_itself)
{
	uint64_t traces = result->traces;

	destroyed = 0;
	no_signal = by_itself;
	pthread_create(t, nullptr, waiter, (void *)depth);
	while (!at_bottom)
		usleep(100);
	at_bottom = false;
	if (!pthread_cancel(*t))
		return true;
	result->traces = traces;
	return false;
}

/*
 * Every second time no signal may be queued, as other programs of the user may cause too. Then
 * pthread_cancel() cannot interrupt pause(), and glibc leaves the thread there for ever: another
 * one does without.
 */
static void forced_unwind()
{
	struct rlimit limit;

	getrlimit(RLIMIT_SIGPENDING, &limit);
	for (long depth = 1; depth < 40; depth += 3) {
		void *ret = nullptr;
		pthread_t t;

		limit.rlim_cur = depth & 1 ? limit.rlim_max : 0;
		setrlimit(RLIMIT_SIGPENDING, &limit);
		destroyed = 0;
		pthread_create(&t, nullptr, leaver, (void *)depth);
		pthread_join(t, &ret);
		did(" %ld:%d", (long)ret, destroyed);
		if (!cancel(&t, depth, false))
			cancel(&t, depth, true);
		pthread_join(t, &ret);
		did(" %d:%d", ret == PTHREAD_CANCELED, destroyed);
	}
}

/* ---- longjmp() ---- */

static jmp_buf jump;
static sigjmp_buf signal_jump;

static int jump_out(int x)
{
	capture();
	longjmp(jump, x + 1);
}

/* Captures without info or identity: only such captures pay for the markers that follow. */
static int capture_and_jump_out(int x)
{
	static uint64_t pcs[MAX];

	for (volatile int i = 0; i < 3; i = i + 1)
		shstk_marker_capture(pcs, MAX, nullptr);
	longjmp(jump, x + 1);
}

static void on_jump(int)
{
	capture();
	siglongjmp(signal_jump, 1);
}

static int raise_here(int x)
{
	capture();
	raise(SIGUSR1);
	return x;
}

static void long_jumps()
{
	volatile int i;

	signal(SIGUSR1, on_jump);
	for (i = 0; i < 30; i = i + 1) {
		int v = setjmp(jump);

		if (!v)
			deep(i, jump_out, i);
		did(" %d", v);
		go(i);
		if (!sigsetjmp(signal_jump, 1))
			deep(i, raise_here, i);
		else
			did(" s");
		go(30 - i);
	}
}

/* Overwrites the frames that longjmp() left; after that nothing may come back to them. */
static noinline int overwrite(int depth)
{
	char buf[600];

	memset(buf, 0x5a, sizeof(buf));
	KEEP(buf);
	return depth ? overwrite(depth - 1) + buf[5] : 0;
}

static void jumps_and_overwrites()
{
	volatile int i;

	for (i = 0; i < 200; i = i + 1) {
		if (i % 8)
			shstk_marker_withdraw();
		if (!setjmp(jump))
			deep(i % 50, jump_out, i);
		did("%d", overwrite(i % 20) & 1);
		go(i % 37);
	}
}

/* ---- Coroutines ---- */

static ucontext_t main_context, coroutine_context[4];
static int turns;

static int yield(int x)
{
	int i = turns % 4;

	capture();
	turns++;
	swapcontext(&coroutine_context[i], &main_context);
	capture();
	return x;
}

static void coroutine(int i)
{
	for (;; i++)
		deep(i * 7 % 23, yield, i);
}

static int resume(int x)
{
	capture();
	for (int i = 0; i < 4; i++) {
		turns = i;
		swapcontext(&main_context, &coroutine_context[i]);
		capture();
	}
	return x;
}

static void coroutines()
{
	for (int i = 0; i < 4; i++) {
		getcontext(&coroutine_context[i]);
		coroutine_context[i].uc_stack.ss_size = 256 << 10;
		coroutine_context[i].uc_stack.ss_sp = malloc(256 << 10);
		makecontext(&coroutine_context[i], (void (*)())coroutine, 1, i);
	}
	for (int i = 0; i < 40; i++)
		did(" %d", deep(i, resume, i));
}

/* Switches stacks as Boost.Context does: saves registers, changes the stack pointer, returns. */
#ifdef __x86_64__
extern "C" void switch_stack(void **from, void *to);
__asm__("	.text\n"
	"	.globl switch_stack\n"
	"	.type switch_stack, @function\n"
	"switch_stack:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	pop %r8\n"
	"	jmp *%r8\n"
	"	.size switch_stack, . - switch_stack\n");

static void *main_sp, *light_sp;

static int light_yield(int x)
{
	switch_stack(&light_sp, main_sp);
	return x;
}

static void light_coroutine()
{
	for (int i = 0;; i++)
		deep(i % 20, light_yield, i);
}

static int light_resume(int x)
{
	capture();
	switch_stack(&main_sp, light_sp);
	capture();
	return x;
}

static void light_coroutines()
{
	char *stack = (char *)malloc(256 << 10);
	void **top = (void **)(((uintptr_t)stack + (256 << 10)) & ~63ul);

	top -= 2;
	top[0] = (void *)light_coroutine;
	light_sp = top - 6;
	memset(light_sp, 0, 6 * sizeof(*top));
	for (int i = 0; i < 60; i++)
		did(" %d", deep(i % 30, light_resume, i));
}
#endif

/* ---- Tail calls ---- */

static int (*volatile tail_to)(int) = go;

static noinline int tail2(int x)
{
	return tail_to(x);
}
static noinline int tail1(int x)
{
	go(x % 9);
	return tail2(x + 1); /* this frame is marked, and then left by a jump */
}

static void tail_calls()
{
	for (int i = 0; i < 40; i++)
		did(" %d", tail1(i) + 1);
}

/* Grows its frame by alloca() under a marker. */
static noinline int growing(int x)
{
	int sum = 0;

	for (int i = 0; i < 10; i++) {
		char *p = (char *)alloca(64 * (i + 1));

		memset(p, i, 64 * (i + 1));
		go(x);
		sum += p[5];
	}
	return sum;
}

static int grow(int x)
{
	return growing(x % 10);
}

static void allocas()
{
	for (int i = 0; i < 30; i++)
		did(" %d", deep(i, grow, i));
}

/* ---- fork() and vfork() ---- */

static int fork_here(int x)
{
	int status = 0;

	capture();
	pid_t pid = fork();

	if (!pid) {
		capture();
		return x + 1000; /* returns through the marked frames, in the child too */
	}
	waitpid(pid, &status, 0);
	capture();
	did(" %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return x;
}

static void forks()
{
	for (int i = 0; i < 12; i++) {
		int v = deep(i * 3, fork_here, i);

		if (v >= 1000)
			_exit(v - 1000);
		did(" %d", v);
	}
}

static int vfork_here(int x)
{
	int status = 0;

	capture();
	pid_t pid = vfork();

	if (!pid) {
		capture();
		_exit(x);
	}
	waitpid(pid, &status, 0);
	capture();
	did(" %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return x;
}

static void vforks()
{
	for (int i = 0; i < 12; i++)
		did(" %d", deep(i * 3, vfork_here, i));
}

/* ---- Unloading ---- */

#ifndef MARKER_STATIC

static int jump_from_plugin(void *)
{
	capture();
	longjmp(jump, 1);
}

static int return_to_plugin(void *arg)
{
	capture();
	if (arg)
		dlclose(arg); /* the library is open twice, so this does not unload it */
	capture();
	return 5;
}

static void unloading()
{
	std::string path = std::string(self) + "_plugin.so";
	volatile int i;

	for (i = 0; i < 12; i = i + 1) {
		void *lib = dlopen(path.c_str(), RTLD_NOW);
		typedef int (*call_fn)(int (*)(void *), void *);
		call_fn call = lib ? (call_fn)dlsym(lib, "plugin_call") : nullptr;

		if (!call) {
			did(" %s", dlerror());
			return;
		}
		dlopen(path.c_str(), RTLD_NOW);
		did(" %d", call(return_to_plugin, lib));
		if (!setjmp(jump))
			call(jump_from_plugin, nullptr);
		dlclose(lib);
		go(20);
		did(" %d", dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
	}
}

#endif

/* ---- Threads ---- */

static void *short_thread(void *arg)
{
	long sum = 0;

	for (int i = 0; i < 20; i++)
		sum += go(i + (int)(long)arg % 10);
	return (void *)sum;
}

static void threads()
{
	for (long i = 0; i < 80; i++) {
		pthread_t t[4];
		long sum = 0;

		for (auto &p : t)
			pthread_create(&p, nullptr, short_thread, (void *)i);
		for (auto &p : t) {
			void *ret;

			pthread_join(p, &ret);
			sum += (long)ret;
		}
		did(" %ld", sum);
	}
	result->traces = 0; /* four threads run at a time, so the traces come in any order */
}

/*
 * Every instruction of what follows is interrupted, and the handler captures: in
 * trampolines, in captures, in the code in between.
 */
#ifdef __x86_64__
extern "C" void step_on();
extern "C" void step_off();
__asm__("	.text\n"
	"	.irp name, step_on, step_off\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	pushf\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.ifc \\name, step_on\n"
	"	orl $0x100, (%rsp)\n"
	"	.else\n"
	"	andl $~0x100, (%rsp)\n"
	"	.endif\n"
	"	popf\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size \\name, . - \\name\n"
	"	.endr\n");

static long steps, in_trampoline, bad_steps;
static uint64_t step_pcs[MAX], base_pc;

static void on_step(int, siginfo_t *, void *uc)
{
	ucontext_t *u = (ucontext_t *)uc;
	uint64_t pc = u->uc_mcontext.gregs[REG_RIP];
	struct shstk_info info = {};
	int n;

	steps++;
	if (mode == OFF)
		return;
	info.size = sizeof(info);
	in_trampoline += shstk_marker_resolve(pc) != pc;
	n = shstk_capture_context(uc, step_pcs, MAX, &memo_opts, &info);
	if (info.end != SHSTK_END_COMPLETE || step_pcs[n - 1] != base_pc)
		bad_steps++;
	for (int i = 0; i < n; i++)
		bad_steps += shstk_marker_resolve(step_pcs[i]) != step_pcs[i];
	/* Every seventh step also captures the handler's own frames. */
	if (steps % 7 == 0) {
		n = mode == MARKERS && steps & 1 ? shstk_marker_capture(step_pcs, MAX, &info) :
						   shstk_capture(step_pcs, MAX, nullptr, &info);
		if (info.end != SHSTK_END_COMPLETE || step_pcs[n - 1] != base_pc)
			bad_steps++;
	}
}

static noinline int stepped(int depth, bool withdraw)
{
	int sum = 0;

	for (int i = 0; i < 4; i++) {
		sum += go(depth);
		/* Markers that no handler has taken back, so that the code returns through them. */
		if (withdraw)
			sum += deep(
				6,
				[](int x) {
					capture();
					return x;
				},
				i);
	}
	return sum;
}

static void single_steps()
{
	struct sigaction sa = {};
	struct shstk_info info = {};
	int n;

	info.size = sizeof(info);
	go(5);
	n = shstk_capture(step_pcs, MAX, nullptr, &info);
	base_pc = step_pcs[n - 1];
	sa.sa_sigaction = on_step;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, nullptr);
	step_on();
	n = stepped(12, true);
	step_off();
	did(" %d", n);
	if (bad_steps || steps < 500)
		saw(" bad: %ld of %ld steps", bad_steps, steps);
}

/*
 * The same, but the handler only captures in trampolines: so that there are some.
 */
static void on_step_in_trampoline(int sig, siginfo_t *si, void *uc)
{
	uint64_t pc = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];

	steps++;
	if (shstk_marker_resolve(pc) != pc)
		on_step(sig, si, uc);
}

static void steps_in_trampolines()
{
	struct sigaction sa = {};
	int n;

	go(5);
	n = shstk_capture(step_pcs, MAX, nullptr, nullptr);
	base_pc = step_pcs[n - 1];
	sa.sa_sigaction = on_step_in_trampoline;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, nullptr);
	step_on();
	n = stepped(20, true) + stepped(31, false);
	step_off();
	did(" %d", n);
	if (bad_steps || (mode == MARKERS && in_trampoline < 4))
		saw(" bad: %ld, in trampolines: %ld", bad_steps, in_trampoline);
}
#endif

/* ---- Other unwinders ---- */

static int foreign_frames;
static uint64_t foreign_hash;

static bool is_marker_frame(void *pc)
{
	return shstk_marker_resolve((uint64_t)pc) != (uint64_t)pc;
}

static void note_frame(void *pc)
{
	if (is_marker_frame(pc))
		return; /* this unwinder reports one frame more */
	foreign_frames++;
	foreign_hash = foreign_hash * 31 + (uint64_t)pc;
}

static _Unwind_Reason_Code note_context(struct _Unwind_Context *c, void *)
{
	note_frame((void *)_Unwind_GetIP(c));
	return _URC_NO_REASON;
}

static int ask_others(int x)
{
	void *pcs[200];

	capture();
	foreign_frames = 0;
	for (int i = 0, n = backtrace(pcs, 200); i < n; i++)
		note_frame(pcs[i]);
	did(" %d:%lx", foreign_frames, foreign_hash & 0xffff);
	foreign_frames = 0;
	_Unwind_Backtrace(note_context, nullptr);
	did(" %d:%lx", foreign_frames, foreign_hash & 0xffff);
	return x;
}

static void other_unwinders()
{
	for (int i = 0; i < 30; i += 3)
		deep(i, ask_others, i);
}

#ifdef __x86_64__
/* Unwinds as `shstk trace` does: from registers, reading the memory of a process. */
static int ask_space(int x)
{
	static const int place[17] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	struct shstk_space *space = nullptr;
	struct shstk_regs regs = {};
	struct shstk_info info = {};
	static uint64_t pcs[MAX];
	pid_t pid = getpid();
	ucontext_t uc;
	int n;

	shstk_space_create(SHSTK_ARCH_X86, &space);
	shstk_space_add_pid(space, pid);
	capture();
	getcontext(&uc);
	regs.size = sizeof(regs);
	info.size = sizeof(info);
	for (int i = 0; i < 16; i++)
		regs.r[i] = uc.uc_mcontext.gregs[place[i]];
	regs.known = 0xffff;
	regs.pc = uc.uc_mcontext.gregs[REG_RIP];
	n = shstk_unwind(space, &regs, shstk_read_process, &pid, pcs, MAX, nullptr, &info);
	foreign_frames = 0;
	for (int i = 0; i < n; i++)
		note_frame((void *)pcs[i]);
	did(" %s %d:%lx", shstk_end_name(info.end), foreign_frames, foreign_hash & 0xffff);
	shstk_space_destroy(space);
	return x;
}

static void spaces()
{
	for (int i = 0; i < 30; i += 6)
		deep(i, ask_space, i);
}
#endif

#ifndef MARKER_STATIC
static int (*unw_backtrace)(void **, int);

static int ask_libunwind(int x)
{
	void *pcs[200];

	capture();
	foreign_frames = 0;
	for (int i = 0, n = unw_backtrace(pcs, 200); i < n; i++)
		note_frame(pcs[i]);
	did(" %d:%lx", foreign_frames, foreign_hash & 0xffff);
	return x;
}

static void libunwind()
{
	void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	unw_backtrace = lib ? (int (*)(void **, int))dlsym(lib, "unw_backtrace") : nullptr;
	if (!unw_backtrace) {
		result->skipped = 1;
		return;
	}
	for (int i = 0; i < 30; i += 3)
		deep(i, ask_libunwind, i);
}

static int ask_gdb(int x)
{
	char command[400], line[400];
	int frames = 0, mains = 0;
	FILE *f;

	capture();
	snprintf(command, sizeof(command), "gdb -nx -q -batch -ex bt -p %d 2>/dev/null", getpid());
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (line[0] != '#' || strstr(line, "shstk_marker_code"))
			continue;
		frames += strstr(line, "deep") != nullptr;
		mains += strstr(line, "main (") != nullptr;
	}
	if (f)
		pclose(f);
	did(" %d %d", frames, mains);
	if (!mains)
		result->skipped = 1; /* this process may not be looked at */
	return x;
}

static void gdb()
{
	if (system("gdb -nx -q -batch -ex 'p 1' >/dev/null 2>&1")) {
		result->skipped = 1;
		return;
	}
	deep(25, ask_gdb, 1);
}

#endif

/* Asks for its own return address after captures have marked it, and must get the true one. */
static noinline int asks_late(int x)
{
	go(x);
	did(" %d", shstk_marker_resolve((uint64_t)__builtin_return_address(0)) ==
			   (uint64_t)__builtin_extract_return_addr((void *)shstk_marker_resolve(
				   (uint64_t)__builtin_return_address(0))));
	return x;
}

static void reasons()
{
	struct shstk_stats st = {};

	st.size = sizeof(st);
	if (mode == MARKERS) {
		int before = shstk_marker_status();

		go(20);
		int on = shstk_marker_status();

		/*
		 * Where a signature is none, or that of both keys, there can be no marker: on arm64,
		 * of few bits, that is one place in 64. So there are several places, and time enough
		 * to pay for the markers that were refused.
		 */
		for (volatile int i = 0; i < 3000 && shstk_marker_status() == SHSTK_MARKER_ON;
		     i = i + 1)
			if (!setjmp(jump))
				deep(20 + i % 16, capture_and_jump_out, i);
		int left = shstk_marker_status();
		int again = shstk_marker_restart();

		if (before != SHSTK_MARKER_NOT_ASKED || on != SHSTK_MARKER_ON ||
		    left != SHSTK_MARKER_LEFT || again || shstk_marker_status() != SHSTK_MARKER_ON)
			saw("%d %d %d %d", before, on, left, again);
	}
	asks_late(9);
	result->traces = 0;
}

/* Captures with an identity, from the call instruction that gave the trace. */
static int identify(int)
{
	static uint64_t pcs[MAX], scratch[MAX];
	struct shstk_info info = {};
	uint64_t id = 0;
	int n = 0, m = 0;

	if (mode == OFF)
		return 0;
	info.size = sizeof(info);
	for (volatile int i = 0; i < 6; i = i + 1) {
		capture_fn f = i & 1	       ? (capture_fn)shstk_capture_id :
			       mode == MARKERS ? (capture_fn)shstk_marker_capture :
						 (capture_fn)shstk_capture;
		uint64_t *to = i & 1 ? scratch : pcs;
		const void *a = i & 1 || mode == MARKERS ? &info : nullptr;
		void *b = i & 1 ? (void *)&id : nullptr;
		int ret;

		__asm__ volatile("" : "+r"(f), "+r"(to), "+r"(a), "+r"(b));
		ret = f(to, MAX, a, b);
		*(i & 1 ? &m : &n) = ret;
		if (i & 1 && (m != n || id != shstk_trace_id(pcs, n)))
			saw(" %d: %d entries, not %d", i, m, n);
		result->met += info.source == SHSTK_SOURCE_MARKER;
	}
	return 0;
}

static void identities()
{
	for (int i = 0; i < 50; i++)
		deep(i, identify, 0);
	did("done");
}

static const struct clause {
	const char *name;
	void (*run)();
} clauses[] = {
#if defined(__x86_64__) || defined(__aarch64__)
	{ "a return keeps every register and flag", registers },
#endif
	{ "values of all kinds come back", values },
	{ "exceptions: destructors, catch, rethrow, nested", exceptions },
	{ "an exception that leaves noexcept terminates", terminate_in_noexcept },
	{ "an exception nobody catches terminates", uncaught },
	{ "pthread_exit and pthread_cancel unwind", forced_unwind },
	{ "longjmp and siglongjmp", long_jumps },
	{ "longjmp, and frames that are written over", jumps_and_overwrites },
	{ "swapcontext", coroutines },
#ifdef __x86_64__
	{ "switches of stacks like Boost's", light_coroutines },
#endif
	{ "tail calls", tail_calls },
	{ "alloca", allocas },
	{ "fork", forks },
	{ "vfork", vforks },
#ifndef MARKER_STATIC
	{ "dlclose of code that was marked", unloading },
#endif
	{ "threads end", threads },
#ifdef __x86_64__
	{ "a signal at every instruction", single_steps },
	{ "a signal at every instruction of a trampoline", steps_in_trampolines },
#endif
	{ "backtrace() and _Unwind_Backtrace() see the true addresses", other_unwinders },
#ifdef __x86_64__
	{ "shstk_unwind() of a process sees the true addresses", spaces },
#endif
#ifndef MARKER_STATIC
	{ "libunwind sees the true addresses", libunwind },
	{ "gdb sees every frame", gdb },
#endif
	{ "off with a reason", reasons },
	{ "identities are those of the traces", identities },
};

static int run(const struct clause *c, enum mode m, void *to)
{
	int status;
	pid_t pid;

	result = (__typeof__(result))to;
	memset(result, 0, sizeof(*result));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		mode = m;
		c->run();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void probe()
{
	go(20);
}

static bool can_be_marked(void *to)
{
	static const struct clause c = { "", probe };

	run(&c, MARKERS, to);
	return result->met;
}

int main(int, char **argv)
{
	int n = 0, failed = 0;
	size_t size = sizeof(*result);
	char *shared = (char *)mmap(nullptr, MODES * size, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	self = argv[0];
	/* The frame that is marked first is the same in all clauses. */
	for (int i = 0; i < 9 && !can_be_marked(shared); i++)
		make_new_keys();
	printf("TAP version 13\n1..%d\n", (int)(sizeof(clauses) / sizeof(clauses[0])));
	for (const struct clause &c : clauses) {
		__typeof__(result) r[MODES];
		bool ok = true;

		for (int m = 0; m < MODES; m++) {
			r[m] = (__typeof__(result))(shared + m * size);
			int status = run(&c, (enum mode)m, r[m]);

			if (status) {
				printf("# mode %d: status %#x\n", m, status);
				ok = false;
			}
		}
		for (int m = 0; m < MODES; m++) {
			if (strcmp(r[m]->did, r[0]->did)) {
				printf("# mode %d did:%.300s\n", m, r[m]->did);
				printf("# and without:%.300s\n", r[0]->did);
				ok = false;
			}
			if (r[m]->saw[0]) {
				printf("# mode %d saw:%s\n", m, r[m]->saw);
				ok = false;
			}
		}
		if (r[MEMO]->traces != r[MARKERS]->traces) {
			printf("# the traces differ\n");
			ok = false;
		}
		if (!r[MARKERS]->met && !r[0]->skipped) {
			printf("# no marker was met\n");
			ok = false;
		}
		printf("%sok %d %s%s\n", ok ? "" : "not ", ++n, c.name,
		       r[0]->skipped ? " # SKIP not installed, or not allowed" : "");
		printf("# %ld markers met\n", r[MARKERS]->met);
		failed += !ok;
	}
	exit(failed != 0);
}
