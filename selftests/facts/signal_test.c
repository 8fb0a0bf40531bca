// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * signal_test.c - the shadow stack in signal handlers and on return from them
 */
#include "facts.h"
#include "kselftest_harness.h"

#define WORDS 8

/* What a handler saw when it was entered. */
struct seen {
	unsigned long ssp;
	uint64_t word[WORDS]; /* words from the pointer on */
	uint64_t ra; /* the handler's own return address */
	uint64_t pc; /* the interrupted program counter */
	unsigned long frame; /* pointer that the signal frame keeps */
	unsigned long sp;
};

static struct seen outer, inner;

/* The outer end of the shadow stack: nothing is known of what lies above it. */
static unsigned long top;

ss_inline void copy_words(uint64_t *to, unsigned long from)
{
	for (int i = 0; i < WORDS; i++, from += WORD)
		to[i] = from < top ? peek(from) : 0;
}

static uint64_t interrupted_pc(ucontext_t *uc)
{
#if defined(__x86_64__)
	return uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return uc->uc_mcontext.pc;
#else
	return uc->uc_mcontext.__gregs[REG_PC];
#endif
}

/* Notes what a handler sees. It is inlined into the handlers, which no CALL entered. */
ss_inline void look(struct seen *seen, void *uc)
{
	seen->ssp = ss_pointer();
	copy_words(seen->word, seen->ssp);
	seen->ra = RETURN_ADDRESS();
	seen->pc = interrupted_pc(uc);
	seen->frame = ss_frame_pointer(uc);
	seen->sp = (unsigned long)__builtin_frame_address(0);
}

/* Sends a signal to this thread: it arrives on return from the system call. */
ss_inline void raise_now(int sig)
{
	ss_syscall(__NR_kill, ss_syscall(__NR_getpid, 0, 0, 0, 0, 0), sig, 0, 0, 0);
}

/* The place where a signal was raised: the pointer before and after it, and the entries. */
static struct {
	unsigned long before;
	unsigned long after;
	uint64_t word[WORDS];
	uint64_t word_after[WORDS];
} at;

/* Raises @sig some calls deep, so that there are entries. */
static int noinline raise_deep(int sig, int depth)
{
	uint64_t ra = RETURN_ADDRESS();
	int ret = 0;

	ss_enter(ra);
	if (depth) {
		ret = raise_deep(sig, depth - 1) + 1;
	} else {
		at.before = ss_pointer();
		copy_words(at.word, at.before);
		raise_now(sig);
		at.after = ss_pointer();
		copy_words(at.word_after, at.after);
	}
	asm volatile("" : "+r"(ret));
	ss_leave(ra);
	return ret;
}

static void on_outer(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(&outer, uc);
}

static void on_inner(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(&inner, uc);
}

static unsigned long nested_before, nested_after;

static void on_nesting(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(&outer, uc);
	nested_before = ss_pointer();
	raise_now(SIGUSR2);
	nested_after = ss_pointer();
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigaction(sig, &sa, NULL);
}

/* ---- What there is in a handler ---- */

TEST(a_signal_pushes_the_words_of_this_architecture)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(at.before - SS_SIGNAL_WORDS * WORD, outer.ssp);
}

TEST(the_signal_token_lies_next_to_the_interrupted_entries)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(at.before - WORD, outer.ssp + SS_SIGNAL_TOKEN * WORD);
	EXPECT_EQ(ss_signal_token(at.before - WORD, at.before), outer.word[SS_SIGNAL_TOKEN]);
}

#if SS_SIGNAL_RESTORER >= 0
TEST(the_youngest_entry_is_where_the_handler_returns_to)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(outer.ra, outer.word[SS_SIGNAL_RESTORER]);
}
#else
TEST(the_return_from_the_handler_is_not_on_the_shadow_stack)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	for (int i = 0; i < WORDS; i++)
		EXPECT_NE(outer.ra, outer.word[i]);
}
#endif

TEST(the_interrupted_entries_follow_unchanged)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	for (int i = SS_SIGNAL_WORDS; i < WORDS; i++) {
		EXPECT_NE(0, outer.word[i]);
		EXPECT_EQ(at.word[i - SS_SIGNAL_WORDS], outer.word[i]);
	}
	for (int i = 0; i < WORDS; i++)
		EXPECT_EQ(at.word[i], at.word_after[i]);
}

TEST(the_interrupted_pc_is_not_on_the_shadow_stack)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	for (int i = 0; i < WORDS; i++)
		EXPECT_NE(outer.pc, outer.word[i]);
}

TEST(returning_puts_the_pointer_back)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(at.before, at.after);
}

TEST(the_signal_token_is_cleared_on_return_where_it_is_checked_by_address)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(SS_SIGNAL_CLEARED ? 0 : outer.word[SS_SIGNAL_TOKEN], peek(at.before - WORD));
}

TEST(the_pointer_in_the_signal_frame)
{
	handle(SIGUSR1, on_outer, 0);
	raise_deep(SIGUSR1, WORDS);
	/* This is the pointer to the token, not to the interrupted entries. */
	EXPECT_EQ(SS_SIGNAL_FRAME ? at.before - WORD : 0, outer.frame);
}

static volatile int entered;

static void on_counted(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	(void)uc;
	entered++;
}

static void off_then_raise(void *arg)
{
	(void)arg;
	ss_disable(SS_ENABLE);
	raise_now(SIGUSR1);
	_exit(entered == 1 && !ss_pointer() ? 0 : 1);
}

TEST(with_shadow_stacks_off_again_signals_work_as_ever)
{
	handle(SIGUSR1, on_counted, 0);
	EXPECT_EQ(0, run_child(off_then_raise, NULL).status);
}

/* ---- Nesting and alternate stacks ---- */

TEST(a_nested_signal_stacks_its_words_on_the_handlers)
{
	handle(SIGUSR1, on_nesting, 0);
	handle(SIGUSR2, on_inner, 0);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_EQ(nested_before, nested_after);
	EXPECT_EQ(nested_before - SS_SIGNAL_WORDS * WORD, inner.ssp);
	EXPECT_EQ(ss_signal_token(nested_before - WORD, nested_before),
		  inner.word[SS_SIGNAL_TOKEN]);
	/* The outer handler's own words lie below it. */
	EXPECT_EQ(ss_signal_token(outer.ssp + SS_SIGNAL_TOKEN * WORD,
				  outer.ssp + SS_SIGNAL_WORDS * WORD),
		  inner.word[SS_SIGNAL_WORDS + SS_SIGNAL_TOKEN]);
}

TEST(an_alternate_stack_does_not_switch_the_shadow_stack)
{
	static char alt[64 << 10] __attribute__((aligned(16)));
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
	ASSERT_EQ(0, sigaltstack(&ss, NULL));
	handle(SIGUSR1, on_outer, SA_ONSTACK);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_GE(outer.sp, (unsigned long)alt);
	EXPECT_LT(outer.sp, (unsigned long)alt + sizeof(alt));
	EXPECT_EQ(at.before - SS_SIGNAL_WORDS * WORD, outer.ssp);
	EXPECT_EQ(at.before, at.after);
}

TEST(a_nested_signal_on_an_alternate_stack_stays_on_the_same_shadow_stack)
{
	static char alt[64 << 10] __attribute__((aligned(16)));
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };

	ASSERT_EQ(0, sigaltstack(&ss, NULL));
	handle(SIGUSR1, on_nesting, 0);
	handle(SIGUSR2, on_inner, SA_ONSTACK);
	raise_deep(SIGUSR1, WORDS);
	EXPECT_GE(inner.sp, (unsigned long)alt);
	EXPECT_LT(inner.sp, (unsigned long)alt + sizeof(alt));
	EXPECT_EQ(nested_before - SS_SIGNAL_WORDS * WORD, inner.ssp);
}

/* ---- What sigreturn refuses ---- */

/* Overwrites the signal token, which needs the write permission. */
static void on_spoil(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	(void)uc;
	ss_write(ss_pointer() + SS_SIGNAL_TOKEN * WORD, 0x1230);
	if (peek(ss_pointer() + SS_SIGNAL_TOKEN * WORD) != 0x1230)
		_exit(98);
}

static void spoil_token(void *arg)
{
	(void)arg;
	if (!permit_write())
		_exit(99);
	handle(SIGUSR1, on_spoil, 0);
	raise_now(SIGUSR1);
}

TEST(return_with_a_spoilt_token_is_sigsegv)
{
	struct ending end = run_child(spoil_token, NULL);

	EXPECT_EQ(SIGSEGV, end.signo);
	TH_LOG("si_code %d", end.code);
}

/* Calls sigreturn without a signal: there is no token at the pointer. */
static void forge_return(void *arg)
{
	(void)arg;
	ss_syscall(__NR_rt_sigreturn, 0, 0, 0, 0, 0);
}

TEST(return_without_a_signal_is_sigsegv)
{
	EXPECT_EQ(SIGSEGV, run_child(forge_return, NULL).signo);
}

#ifdef __x86_64__
struct raw_sigaction {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};

/*
 * Takes a signal without a restorer. Without shadow stacks the kernel does not care until the
 * handler returns.
 */
static void no_restorer(void *arg)
{
	struct raw_sigaction sa = { .handler = on_outer, .flags = SA_SIGINFO };

	(void)arg;
	ss_syscall(__NR_rt_sigaction, SIGUSR1, (unsigned long)&sa, 0, 8, 0);
	raise_now(SIGUSR1);
}

TEST(a_handler_without_sa_restorer_is_sigsegv)
{
	EXPECT_EQ(SIGSEGV, run_child(no_restorer, NULL).signo);
}
#endif

#ifdef __aarch64__
/*
 * The frame keeps the features and return takes them from there. Never let it
 * turn the shadow stack off, though 7.2 accepts that: it notes so for the task
 * and leaves the CPU's register as it is, and the next task with shadow stacks
 * off is run with them on, without a stack, and dies - be it init.
 */
static unsigned long frame_features;

static void on_edit(int sig, siginfo_t *info, void *ctx)
{
	struct ss_gcs_context *gcs = ss_frame_gcs(ctx);

	(void)sig;
	(void)info;
	if (gcs)
		gcs->features_enabled = frame_features;
}

TEST(return_may_give_permissions_that_are_not_locked)
{
	unsigned long bits = 0;

	frame_features = SS_ENABLE | SS_WRITE;
	handle(SIGUSR1, on_edit, 0);
	raise_now(SIGUSR1);
	EXPECT_EQ(0, ss_status(&bits));
	EXPECT_EQ(SS_ENABLE | SS_WRITE, bits);
}

static void edit_and_return(void *arg)
{
	(void)arg;
	raise_now(SIGUSR1);
}

TEST(return_with_unknown_features_is_sigsegv)
{
	frame_features = SS_ENABLE | 1UL << 3;
	handle(SIGUSR1, on_edit, 0);
	EXPECT_EQ(SIGSEGV, run_child(edit_and_return, NULL).signo);
}

static void disable_edit_and_return(void *arg)
{
	(void)arg;
	ss_disable(SS_ENABLE);
	raise_now(SIGUSR1);
}

TEST(return_does_not_turn_the_shadow_stack_on)
{
	frame_features = SS_ENABLE;
	handle(SIGUSR1, on_edit, 0);
	EXPECT_EQ(SIGSEGV, run_child(disable_edit_and_return, NULL).signo);
}

static void lock_then_return(void *arg)
{
	(void)arg;
	ss_lock(SS_WRITE);
	raise_now(SIGUSR1);
}

TEST(return_with_permissions_that_are_locked_is_sigsegv)
{
	frame_features = SS_ENABLE | SS_WRITE;
	handle(SIGUSR1, on_edit, 0);
	EXPECT_EQ(SIGSEGV, run_child(lock_then_return, NULL).signo);
}
#endif

/* ---- No room for the words of a signal ---- */

static void noinline raise_one_deeper(void)
{
	uint64_t ra = RETURN_ADDRESS();

	ss_enter(ra);
	raise_now(SIGUSR1);
	ss_leave(ra);
}

/* Takes a signal on a stack that has room for that many words in all. */
static void signal_with_room(void *arg)
{
	unsigned long size = *(int *)arg * WORD;
	unsigned long ss = ss_map(0, size, SS_SET_TOKEN);

	handle(SIGUSR1, on_outer, 0);
	ss_switch(ss + size - WORD);
	raise_one_deeper();
	ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

TEST(a_signal_that_does_not_fit_is_sigsegv)
{
	int room = SS_SIGNAL_WORDS;

	EXPECT_EQ(SIGSEGV, run_child(signal_with_room, &room).signo);
	room = SS_SIGNAL_WORDS + 1 + 8; /* with room for the handler's own calls */
	EXPECT_EQ(0, run_child(signal_with_room, &room).signo);
}

int main(int argc, char **argv)
{
	START_SHADOW_STACK(0);
	top = ss_pointer() + SS_END_WORDS * WORD;
	exit(test_harness_run(argc, argv));
}
