/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * languages.h - the languages whose functions are shown in a recording.
 *
 *	a process has mapped an interpreter    languages_find()     which one, as a number
 *	                                       languages_set()      to the BPF program
 *	the program wrote what it read         languages_take()
 *	records were lost                      languages_lost()     forgets what has no sample yet
 *	a sample was unwound                   languages_place()    puts functions into its stack
 *	the stack is named                     languages_function() what these are
 *
 * In stacks, functions have addresses that no code has. Each stands for a function and a line.
 */
#ifndef TOOLS_LANGUAGE_LANGUAGES_H
#define TOOLS_LANGUAGE_LANGUAGES_H

#include "libshstk/symbol/symbol.h"
#include "tools/language/language.h"
#include "tools/language/place.h"

struct bpf_loaded;
struct languages;
struct lent_process;
struct perf_rings;

/**
 * struct language_counts - what became of the frames that were read
 * @samples: samples of which frames were read.
 * @placed: samples whose functions are in their stack.
 * @too_deep: samples without them because there are more frames than are read.
 * @in_heap: stacks of virtual threads of Java that have callers in the heap.
 */
struct language_counts {
	uint64_t samples;
	uint64_t placed;
	uint64_t too_deep;
	uint64_t in_heap;
};

/* What is said of stacks that are too deep for their functions, to be printed behind their number. */
#define LANGUAGES_TOO_DEEP \
	"are too deep to show the functions of their programs (of JavaScript more than 512 frames, of others more than 8192): they show the interpreter's own"

/*
 * Begins with no process. @program: a BPF program that reads frames among other things and was
 * loaded by the caller, which must outlive this; NULL: one is loaded when it is needed. Returns NULL
 * if there is no memory.
 */
struct languages *languages_create(const struct bpf_loaded *program);
void languages_destroy(struct languages *all);

/*
 * Has @load be called with @arg when a BPF program is needed. It returns a program that reads frames
 * among other things, as for languages_create(), or NULL: then one is loaded here.
 */
void languages_load_by(struct languages *all, const struct bpf_loaded *(*load)(void *arg),
		       void *arg);

/**
 * typedef languages_tell_fn - tell whoever reads frames and trace contexts how they are found in a process
 * @arg: what languages_lend() got.
 * @pid: the process.
 * @process: how they are found.
 *
 * Return: 0 or a negative errno; -EOPNOTSUPP: frames are not read there, or none on the native stack.
 */
typedef int languages_tell_fn(void *arg, int pid, const struct lent_process *process);

/* Has both be read by another process's BPF program, to which @tell tells about processes. */
void languages_lend(struct languages *all, languages_tell_fn *tell, void *arg);

/* Tells again what was told, as @tell has a program now that knows nothing of it. */
void languages_tell_again(struct languages *all);

/* Forgets what was told of a process that has ended: of another one with its number it is not true. */
void languages_ended(struct languages *all, int pid);

/*
 * Tells a program for languages_create() which PID namespace is this process's own. Returns 0 or a
 * negative errno.
 */
int languages_set_namespace(const struct bpf_loaded *program);

/*
 * Has no program be loaded that reads frames on the native stack. @why: why an interpreter that has such
 * is refused; it must stay.
 */
void languages_without_native(struct languages *all, const char *why);

/* Returns whether a file of that name may be an interpreter. */
bool languages_may_be(const char *path);

/*
 * Has the BPF program be loaded now that reads the frames of the interpreter which the file is by its name.
 * Loading takes a part of a second, in which samples of a program that runs already would have no functions.
 */
void languages_expect(struct languages *all, const char *path);

/* Has no BPF program be loaded: frames are read by language_read() only. */
void languages_stopped_only(struct languages *all);

/* Returns how the frames of an interpreter are found. */
const struct language_target *languages_target(const struct languages *all, int number);

/* Returns whether the function with that number is known. */
bool languages_known(const struct languages *all, uint64_t id);

/*
 * Returns the address that stands for an instruction of the function with that number, at an offset as in &struct
 * language_entry; 0: it is not known, or there is no room for it.
 */
uint64_t languages_position(struct languages *all, uint64_t id, int at);

/* Returns about how many bytes the functions that are known, and their lines, take. */
size_t languages_bytes(const struct languages *all);

/*
 * Returns the number of the interpreter that a file is, 0 if it is none that is known or nothing is
 * left in the process's account, or -EAGAIN if the process cannot be read yet.
 */
int languages_find(struct languages *all, const struct language_module *module);

/*
 * Adds an interpreter about which is known what placing needs: version and code. Returns its number; 0:
 * there are too many.
 */
int languages_add(struct languages *all, const struct language *language,
		  const struct language_found *found);

/* Tells the BPF program that the process @pid has the interpreter @number; 0: that it has none. */
void languages_set(struct languages *all, int pid, int number);

struct context_process;

/*
 * Tells the BPF program where the threads of process @pid publish their trace contexts
 * (tools/convert/contexts.h); NULL: nowhere.
 */
void languages_set_context(struct languages *all, int pid, const struct context_process *process);

/* Returns whether a process was told that publishes contexts. */
bool languages_contexts_wanted(const struct languages *all);

/* Returns why contexts of a process that publishes them are not read, or NULL. */
const char *languages_contexts_refused(const struct languages *all);

/* Returns whether a process was told that has an interpreter. */
bool languages_wanted(const struct languages *all);

/* Tells that the caller's program (languages_load_by()) is to run at samples from now on. */
void languages_walked(struct languages *all);

/* Tells that it cannot run after all. */
void languages_not_walked(struct languages *all);

/* Returns whether the BPF program that runs at samples was loaded here, and is not the caller's. */
bool languages_have_program(const struct languages *all);

/*
 * Returns the BPF program that was loaded here and must run behind that one, for interpreters that it
 * cannot read; -1: there is none.
 */
int languages_behind(const struct languages *all);

/* Returns whether the program that runs at samples is to leave an interpreter to the other one. */
bool languages_read_behind(const struct languages *all, int number);

/*
 * Has the BPF programs that were loaded here run at the samples of @rings from now on; the caller's calls
 * the one behind it. Returns 0, or a negative errno if one does not run.
 */
int languages_begin(struct languages *all, struct perf_rings *rings);

/* The same for the one behind it alone, if there is one (languages_behind()). */
int languages_begin_behind(struct languages *all, struct perf_rings *rings);

/*
 * Has another program of perf events run at each sample behind what was loaded here. Returns 0, or a
 * negative errno if it cannot.
 */
int languages_then(struct languages *all, int program);

/* Returns why an interpreter's functions are not shown, or NULL. */
const char *languages_refused(const struct languages *all);

/* Takes a record that the BPF program wrote at @time, in ns. Returns 0 or -ENOMEM. */
int languages_take(struct languages *all, int tid, uint64_t time, const void *record, size_t size);

/* Tells that the next sample of a thread has no frames, whatever was taken before. */
void languages_forget(struct languages *all, int tid);

/*
 * Tells that records were lost. The sample of frames that were taken may be one of them: then these
 * frames must not become those of the next sample, whose own may be lost, too.
 */
void languages_lost(struct languages *all);

/**
 * struct language_sample - a sample
 * @number: number of the interpreter that the process has.
 * @tid: thread ID.
 * @time: time in ns.
 * @pc: program counter.
 * @sp: stack pointer.
 * @fold: a stack of more entries is shortened to so many, so that both ends of a recursion remain
 *	(tools/repeats.h); 0: it is not.
 */
struct language_sample {
	int number;
	int tid;
	uint64_t time;
	uint64_t pc;
	uint64_t sp;
	unsigned int fold;
};

/* The most entries of a stack that languages_place() makes. */
#define LANGUAGES_MOST (LANGUAGE_DEEPEST + 16384)

/**
 * languages_place() - put functions into a stack
 * @all: the languages.
 * @sample: the sample, whose frames are forgotten after this.
 * @native: the stack.
 * @pcs: receives the new stack; may be where @native is.
 * @marks: receives SHSTK_MARK_* of each entry.
 * @max: entries for which there is room.
 *
 * Return: number of entries; 0: nothing was read, or it cannot be placed for sure; the stack remains
 * as it is.
 */
unsigned int languages_place(struct languages *all, const struct language_sample *sample,
			     const struct native_stack *native, uint64_t *pcs, uint8_t *marks,
			     unsigned int max);

/*
 * Returns the address that stands for a line of a function that the caller found in a stack itself; 0:
 * there is no room for it. Functions with the same name and file are the same.
 */
uint64_t languages_named(struct languages *all, const struct language *language, const char *name,
			 const char *file, unsigned int line);

/* Counts a stack with such functions. @placed: all of them are known. */
void languages_count_named(struct languages *all, bool placed);

/* Counts a stack that has callers in the heap. */
void languages_count_in_heap(struct languages *all);

/* Tells why the functions of an interpreter are not shown, unless there is a reason already. */
void languages_refuse(struct languages *all, const struct reason *why);

/*
 * Returns whether the stack that the last languages_place() made has entries that stand for others of
 * a deep stack.
 */
bool languages_folded(const struct languages *all);

#define LANGUAGES_LABEL 512 /* bytes of languages_label(), at most */

/*
 * Makes the label of the sample of the last languages_place(), also if its functions could not be
 * placed: "task" and the name of the task that ran, each followed by a 0. Returns the number of bytes
 * in @buf, which has room for LANGUAGES_LABEL; 0: no task that was given a name is known.
 */
size_t languages_label(const struct languages *all, char *buf);

/*
 * For tests: has a word be read at @addr with each sample of the processes that have the interpreter
 * @number; with languages_lend() of those that are told from then on. Returns 0 or a negative errno.
 */
int languages_set_truth(struct languages *all, int number, uint64_t addr);

/* For tests: returns the word that was read at the sample of the last languages_place(). */
uint64_t languages_truth(const struct languages *all);

/* Tells the function that an address stands for: a shstk_function_fn. @arg is struct languages. */
bool languages_function(void *arg, uint64_t pc, struct shstk_symframe *ret, const char **module);

void languages_count(const struct languages *all, struct language_counts *ret);

/* Has counts begin anew, as another profile begins. */
void languages_count_anew(struct languages *all);

#endif
