/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * language.h - what the reader of interpreters' frames, which runs in the kernel
 * (language_walk.h), and the command (tools/language/) share.
 *
 * The reader knows no language. It follows pointers as a struct language_target says, and copies
 * words. Which words these are, and what they mean, is known in tools/language/ alone.
 */
#ifndef BPF_LANGUAGE_H
#define BPF_LANGUAGE_H

#include <linux/types.h>

#include "context.h"

/* Changes with each change of struct lent_process (lend.h) and of the records, for users of the broker. */
#define LANGUAGE_LAYOUT 8

#define LANGUAGE_TARGETS 1024 /* kinds of interpreters that can be known; number 0 is none */
#define LANGUAGE_PROCESSES 65536 /* processes that can be known */
#define LANGUAGE_ENTRIES 1280 /* entries of a record */
#define LANGUAGE_MARKS 256 /* entries of these that are marks */
#define LANGUAGE_FRAMES 1024 /* entries of these that are frames, a power of two */
#define LANGUAGE_INNER \
	512 /* of more frames, so many of the inner end, and the others of the outer */
#define LANGUAGE_DEEPEST 8192 /* frames of a stack of which both ends are read */
#define LANGUAGE_PERIOD 16 /* longest group of frames whose repetition is noticed */
#define LANGUAGE_STEPS 4
#define LANGUAGE_CODE_WORDS 24 /* words of a function's object that are read; at most 32 */
#define LANGUAGE_KEY_WORDS 16 /* of these, from the second on: may tell functions apart */
#define LANGUAGE_BEHIND 3
#define LANGUAGE_TEXTS 3
#define LANGUAGE_TAIL 128 /* fewer bytes than these are a text's last ones, a power of two */
#define LANGUAGE_FRAME_BYTES 128 /* a frame has fewer bytes that are read */
#define LANGUAGE_NEW 32 /* functions that one sample may copy */
#define LANGUAGE_SHORT 512 /* a text has fewer bytes that are copied, a power of two */
#define LANGUAGE_LONG 16384 /* the last text has fewer bytes that are copied, a power of two */
#define LANGUAGE_MORE \
	4096 /* further bytes behind the last text; maps of a CPU have values up to 32 KiB */
#define LANGUAGE_TASK 128 /* the name of a task has fewer bytes that are copied, a power of two */
#define LANGUAGE_TASK_ENTRIES 6 /* entries in whose place there is room for them */
#define LANGUAGE_HOLDERS 2
#define LANGUAGE_PAGE 4096 /* memory is mapped in such pieces */

/**
 * struct language_chain - a list in the memory of a process
 * @nr_steps: number of elements of @steps; 0: there is no such list.
 * @steps: how the first element is found: its address is read at the base plus the first of these
 *	numbers, at what was read plus the second, and so on.
 * @link: offset in an element of the next element's address; 0 ends the list.
 */
struct language_chain {
	__u32 nr_steps;
	__s32 steps[LANGUAGE_STEPS];
	__u32 link;
};

/**
 * struct language_behind - a word that belongs to what a function is known by
 * @word: index of a word of the function's object that is an address.
 * @offset: offset from that address.
 */
struct language_behind {
	__u32 word;
	__u32 offset;
};

/**
 * struct language_text - an object that is copied when a function is seen first
 * @word: index of a word of the function's object that is the address of the text.
 * @via: if not 0, @word is the address of another object, which has the text's address at this
 *	offset.
 * @length_at: offset of a word with the number of elements.
 * @head: bytes before the elements, which are copied, too.
 * @unit: bytes that an element has at most.
 */
struct language_text {
	__u32 word;
	__u32 via;
	__u32 length_at;
	__u32 head;
	__u32 unit;
};

/**
 * struct language_tail - the last bytes of a text, which belong to what a function is known by
 * @word: index of a word of the function's object that is the address of the text.
 * @length_at: offset of a word with the number of bytes.
 * @head: bytes before the text; 0: there is no such text.
 */
struct language_tail {
	__u32 word;
	__u32 length_at;
	__u32 head;
};

/**
 * struct language_lines - instructions that have their line in themselves
 * @unit: bytes of an instruction; 0: they have no line in themselves.
 * @word: index of the word of the function's object that is the address of the first one.
 * @count_at: offset in the function's object of four bytes: the number of instructions.
 * @line_at: offset in an instruction of four bytes: its line.
 */
struct language_lines {
	__u32 unit;
	__u32 word;
	__u32 count_at;
	__u32 line_at;
};

/**
 * struct language_ranks - instructions whose lines are in a table of their own
 * @entries: index of the word of the function's object that is the address of the table's first element,
 *	which begins with four bytes: a line.
 * @count: index of the word whose lower half is the number of elements.
 * @table: index of the word that is the address of what tells which element an instruction has
 *	(language_ranks.h).
 * @entry_bytes: bytes of an element; 0: there is no such table.
 *
 * &struct language_lines tells of the instructions. A frame has the instruction behind the one that it
 * executes.
 */
struct language_ranks {
	__u32 entries;
	__u32 count;
	__u32 table;
	__u32 entry_bytes;
};

/**
 * struct language_strings - texts that are objects, of which short ones have their characters in themselves
 * @kind_mask: bits of an object's first word that tell what it is; 0: texts are no such objects.
 * @string: what they are in a text.
 * @list: what they are in a list, which stands for its first element.
 * @first_at: offset of that element in a list.
 * @outside: bit of the first word of a text that has its characters elsewhere.
 * @address_at: offset of their address in such a text.
 * @length_at: offset of the number of bytes in such a text, and in each if @inside_mask is 0.
 * @inside_at: offset of the characters in another text.
 * @inside_shift: number of the lowest bit of the first word that is part of their number.
 * @inside_mask: bits of that, from the lowest one on.
 */
struct language_strings {
	__u64 kind_mask;
	__u64 string;
	__u64 list;
	__u32 first_at;
	__u32 outside;
	__u32 address_at;
	__u32 length_at;
	__u32 inside_at;
	__u32 inside_shift;
	__u32 inside_mask;
	__u32 reserved;
};

/**
 * struct language_lists - objects that are lists of words, of which short ones have these in themselves
 * @type: what the bits @kind_mask of &struct language_strings are in a list.
 * @inside: bit of the first word of a list that has its words in itself.
 * @inside_at: offset of the first one in such a list.
 * @address_at: offset of its address in another list.
 */
struct language_lists {
	__u64 type;
	__u64 inside;
	__u32 inside_at;
	__u32 address_at;
};

/**
 * struct language_numbered - functions in another language, which have no object: their names have numbers
 * @kind_mask: bits of a frame's flags that are looked at; 0: there are no such functions.
 * @kind: what they are if the frame is of such a function.
 * @entry_before: bytes from the address of the function's entry to the flags, which are behind
 *	(@flags_behind of &struct language_target).
 * @mask: bits of the first word of objects that are looked at.
 * @entry: what they are in an entry.
 * @holder: what they are in an object that has the address of the entry.
 * @entry_at: offset of that address in it.
 * @definition_at: offset in an entry of the address of the definition.
 * @type_mask: bits of the first word of a definition that are looked at.
 * @type: what they are if the function is in another language.
 * @address_at: offset in a definition of the address of its machine code.
 * @number_at: offset in a definition of the number of its name.
 * @last_plain: the last number that is the place of the name in the table.
 * @shift: lowest bit of a larger number that is part of this place, of 32 bits.
 * @names: address of the address of the table, a list of lists.
 * @lists: how lists lie in memory.
 * @per_list: elements of each of these lists, a power of two; each name takes two, and is the first one.
 * @address_word: index of the word of &struct language_code that receives the address of the machine
 *	code; the others are 0, but for that of the first text.
 */
struct language_numbered {
	__u32 kind_mask;
	__u32 kind;
	__u32 entry_before;
	__u32 entry_at;
	__u64 mask;
	__u64 entry;
	__u64 holder;
	__u32 definition_at;
	__u32 address_at;
	__u64 type_mask;
	__u64 type;
	__u32 number_at;
	__u32 shift;
	__u64 last_plain;
	__u64 names;
	struct language_lists lists;
	__u32 per_list;
	__u32 address_word;
};

/**
 * struct language_stack - frames that lie in a row, the innermost first
 * @stride: bytes of a frame; 0: frames are a list.
 * @memory_at: offset in the base of the address of the memory at whose end the outermost one ends.
 * @words_at: offset in the base of the number of words of that memory.
 */
struct language_stack {
	__u32 stride;
	__u32 memory_at;
	__u32 words_at;
};

/**
 * struct language_holder - an object that has the address of a function's object
 * @offset: offset of the address; 0: a frame has the function's object itself.
 * @reserved: 0.
 * @mask: bits of the holder's first word that are looked at.
 * @type: what they must be.
 */
struct language_holder {
	__u32 offset;
	__u32 reserved;
	__u64 mask;
	__u64 type;
};

/**
 * struct language_live - code that keeps its place in registers
 * @start: address of the code.
 * @end: first address behind it. Between the two, r14 has the address of the innermost frame and
 *	r15 the instruction that it executes, which the frame has not. Both 0: there is no such code.
 */
struct language_live {
	__u64 start;
	__u64 end;
};

/**
 * struct language_task - how the task is found that a thread runs
 * @kind: number of the bit of a frame's flags at which a byte begins that says what a frame lies in.
 * @in_object: what it is if the frame lies in the object of a coroutine. If it is larger, the frame is
 *	none of a function: there the interpreter was entered.
 * @object: bytes from this object to its frame.
 * @type: word at @type_at in the object of a coroutine; 0: there are no tasks.
 * @type_at: offset of the word that tells objects apart.
 * @first: offset in the frame that runs a task of its first variable.
 * @callback: offset in what that refers to of the address of what is called.
 * @holders: offsets there, at one of which the address of the task is.
 * @coroutine: offset in a task of the address of its coroutine's object.
 * @name: offset in a task of the address of its name.
 * @name_type: word at @type_at of the name.
 * @text: how the name is copied; only lengths count.
 * @waits: first bytes of instructions at which a coroutine enters the interpreter for another one that
 *	it waits for; 0: it never does for one that it does not wait for.
 *
 * A task runs the outermost one of some coroutines that wait for each other, so their frames follow
 * each other, and the next frame is the one that runs the task. What is found counts only if it is
 * a task of that coroutine. A task that begins at once is run by the coroutine that made it, which
 * does not wait for it then.
 */
struct language_task {
	__u32 kind;
	__u32 in_object;
	__u32 object;
	__u32 type_at;
	__u64 type;
	__u32 first;
	__u32 callback;
	__u32 holders[LANGUAGE_HOLDERS];
	__u32 coroutine;
	__u32 name;
	__u64 name_type;
	struct language_text text;
	__u8 waits[4];
};

/**
 * struct language_target - how frames are found in processes that have the same interpreter at the
 * same address
 * @key_at: address of a key of pthread_getspecific(3), by which the base is found; 0: the base is
 *	@base, or is found by @variable.
 * @base: address of the base, if there is no @key_at.
 * @variable: thread-local variable with the address of the base, if @by_variable.
 * @thread_below: bytes from what pthread_self(3) returns, the thread, to the thread pointer.
 * @slot: offset in the thread of the value that key 0 has; the next is 16 bytes behind.
 * @thread_at: offset in the base of a word that must be the thread, or else the base is that of
 *	another thread or of no thread.
 * @base_word_at: offset of a word of the base that is passed on.
 * @frames: the list of the frames, the innermost first.
 * @stack: the frames lie in a row; only the first one is found by @frames.
 * @marks: a list of things on the native stack of which there is one for each time that the
 *	interpreter was entered, the innermost first.
 * @mark_at: offset of a word of each mark that is passed on.
 * @frame_bytes: bytes of a frame that are read.
 * @code_at: offset in a frame of the address of the function's object.
 * @instruction_at: offset in a frame of the address of an instruction.
 * @flags_at: offset in a frame of four bytes that are passed on, or of their address.
 * @flags_behind: it is that of their address.
 * @no_function: flags of a frame that has no function, whatever is at @code_at.
 * @code_mask: bits that are part of an address in @code_at.
 * @holder: what has the address of the function's object, if it is at @code_at.
 * @numbered: what frames have that are of functions without an object.
 * @code_from: offset in a function's object of the first word that is read.
 * @type_word: index of the word that must be @type.
 * @type_mask: bits of that word that are looked at.
 * @type: word by which functions' objects are told from others.
 * @key_words: bits of the words by which a function is known; bit 0 is that of the second word.
 * @instructions: offset in a function's object of its first instruction.
 * @nr_behind: number of elements of @behind.
 * @behind: further words by which a function is known.
 * @tail: further bytes by which a function is known.
 * @texts: what is copied of a function; the last one may be long.
 * @strings: what texts are; their contents belong to what a function is known by.
 * @lines: where instructions have their line.
 * @ranks: where lines are that instructions do not have.
 * @kind_bits: bits of the flags by which a frame is a frame of one kind or another.
 * @native: frames are on the native stack, and are found by a struct native_target (native.h).
 * @by_variable: see @variable.
 * @live: code that keeps its place in registers.
 * @task: how tasks are found.
 * @truth: address of a word that is read with each sample, for tests; 0: none.
 */
struct language_target {
	__u64 key_at;
	__u64 base;
	struct context_variable variable;
	__u64 thread_below;
	__u32 slot;
	__u32 thread_at;
	__u32 base_word_at;
	struct language_chain frames;
	struct language_stack stack;
	struct language_chain marks;
	__u32 mark_at;
	__u32 frame_bytes;
	__u32 code_at;
	__u32 instruction_at;
	__u32 flags_at;
	__u32 flags_behind;
	__u32 no_function;
	__u64 code_mask;
	struct language_holder holder;
	struct language_numbered numbered;
	__u32 code_from;
	__u32 type_word;
	__u64 type_mask;
	__u64 type;
	__u32 key_words;
	__u32 instructions;
	__u32 nr_behind;
	struct language_behind behind[LANGUAGE_BEHIND];
	struct language_tail tail;
	struct language_text texts[LANGUAGE_TEXTS];
	struct language_strings strings;
	struct language_lines lines;
	struct language_ranks ranks;
	__u32 kind_bits;
	__u32 native;
	__u32 by_variable;
	struct language_live live;
	struct language_task task;
	__u64 truth;
};

/* The second word of records tells what they are. Below these it is the end of a chain (walk.h). */
enum language_record {
	LANGUAGE_MOMENT = 0x100, /* struct language_moment */
	LANGUAGE_CODE, /* struct language_code */
	LANGUAGE_CONTEXT, /* struct context_moment (context.h) */
	/* struct walk_chain (walk.h): the kernel's callchain of the sample that follows, which has none of its own */
	LANGUAGE_CALLCHAIN,
};

/* How reading frames ended. */
enum language_end {
	LANGUAGE_WHOLE, /* at the end of all lists */
	LANGUAGE_UNREADABLE, /* where no memory is */
	LANGUAGE_DEEP, /* where there was no room for more, or no time */
};

#define LANGUAGE_NO_FUNCTION 1 /* no function has this number */

/**
 * struct language_entry - a mark or a frame
 * @addr: its address.
 * @id: of a frame, number of the function, LANGUAGE_NO_FUNCTION: it has none, 0: not known; of a
 *	mark, the word at @mark_at.
 * @at: of a frame, bytes from the function's first instruction to the one in the frame; if
 *	instructions have their line in themselves, that line, 0: there is none.
 * @flags: of a frame, the four bytes at @flags_at.
 */
struct language_entry {
	__u64 addr;
	__u64 id;
	__s32 at;
	__u32 flags;
};

/**
 * struct language_identity - the words by which a function is known
 * @lease: number of the lease for which it is known (lend.h); 0: of none.
 * @space: number of the address space.
 * @code: address of the function's object.
 * @words: words of that object.
 * @behind: words that belong to it.
 * @tail: number made of the bytes that do (&struct language_tail).
 */
struct language_identity {
	__u64 lease;
	__u64 space;
	__u64 code;
	__u64 words[LANGUAGE_KEY_WORDS];
	__u64 behind[LANGUAGE_BEHIND];
	__u64 tail;
};

/**
 * struct language_moment - the frames of a thread at a sample
 * @size: number of bytes that follow, as perf counts them.
 * @kind: LANGUAGE_MOMENT.
 * @target: number of the target by which frames were read.
 * @end: enum language_end.
 * @nr_marks: number of marks; they come first.
 * @nr_frames: number of frames that were copied.
 * @left_out: number of frames that were not: they lie between LANGUAGE_INNER inner frames and the
 *	other ones, and nr_frames is LANGUAGE_FRAMES then.
 * @repeats: bit n is set if each of these is the same as the frame n + 1 before it, further in:
 *	function, place in it, and kind.
 * @task_size: bytes of the name of the task that runs, which are behind the entries; 0: none runs, or
 *	it is not known.
 * @tid: thread ID, if frames are read at probes (language_probed.h).
 * @pc: program counter of the sample.
 * @sp: stack pointer of the sample.
 * @truth: the word at @truth of the target.
 * @base_word: the word at @base_word_at of the base.
 *
 * The entries follow: marks, then frames, each the innermost first. If there is the name of a task,
 * it is behind them, in the place of LANGUAGE_TASK_ENTRIES more.
 */
struct language_moment {
	__u32 size;
	__u32 kind;
	__u32 target;
	__u32 end;
	__u32 nr_marks;
	__u32 nr_frames;
	__u32 left_out;
	__u32 repeats;
	__u32 task_size;
	__u32 tid;
	__u64 pc;
	__u64 sp;
	__u64 truth;
	__u64 base_word;
};

/**
 * struct language_code - a function that a sample met first
 * @size: number of bytes that follow, as perf counts them.
 * @kind: LANGUAGE_CODE.
 * @id: its number, which no other function gets.
 * @target: number of the target.
 * @got: how many bytes could be copied of each text.
 * @words: words of the function's object, from @code_from on.
 * @shorts: all texts but the last. Only the first half has any; the rest is for the verifier.
 * @table: the last text, and what else a language has behind it. Only the copied bytes are part of the
 *	record.
 */
struct language_code {
	__u32 size;
	__u32 kind;
	__u64 id;
	__u32 target;
	__u32 got[LANGUAGE_TEXTS];
	__u64 words[LANGUAGE_CODE_WORDS];
	__u8 shorts[LANGUAGE_TEXTS - 1][2 * LANGUAGE_SHORT];
	__u8 table[LANGUAGE_LONG + LANGUAGE_PAGE + LANGUAGE_MORE];
};

#endif /* BPF_LANGUAGE_H */
