// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc

// One function does all of a fast trace: no call leaves it, the runtime never
// preempts a goroutine inside assembly, and so its stack is neither moved nor
// shrunk between the first read and the last. All reads of the stack lie at or above
// the frame pointer that the function was called with, and below stack.hi.

#include "funcdata.h"
#include "textflag.h"
#include "go_asm.h"

#define g_lo	0	// of runtime.g: stack.lo
#define g_hi	8	// and stack.hi

// Registers that keep their meaning throughout capture.
#define OUT	DI	// where return addresses go; in a plain walk, the end of that
#define COUNT	CX	// how many are there; in a plain walk, plus 2 less what there is room for
#define FRAME	BX	// of the function that is looked at: its saved frame pointer
#define PC	AX	// its return address
#define NEXT	DX	// the frame above it
#define BASE	R8	// stack.hi - 2^32
#define HIGHEST	R9	// the highest place for a frame: stack.hi - 16
#define TABLE	R10	// of frame sizes
#define MASK	R11
#define OLD	SI	// the remembered frame that comes next, in offsets
#define MEMO	R14

// R12 + R13 = the slot of the goroutine whose g is G.
#define SLOT(G) \
	IMUL3Q $const_hash, G, R13; \
	SHRQ $(32 - const_slotShift), R13; \
	ANDL $((const_slotCount - 1) << const_slotShift), R13; \
	LEAQ ·slots(SB), R12

#define LOAD_TABLE \
	MOVQ ·sizes(SB), TABLE; \
	MOVQ -const_tableHeader(TABLE), MASK

// HERE is a frame that is where ABOVE was read from and is added its learned size; go to
// OTHER if there is another return address in its place of the table, and to WRONG if
// the frame pointer says something else.
#define CHECK(HERE, ABOVE, OTHER, WRONG) \
	MOVQ PC, R12; \
	ANDQ MASK, R12; \
	CMPQ PC, (TABLE)(R12*8); \
	JNE OTHER; \
	ADDQ 8(TABLE)(R12*8), HERE; \
	CMPQ HERE, ABOVE; \
	JNE WRONG

// The same for an address that is not in its first place: NEXT is what was learned. To
// BY_ROOT with the outermost frame.
#define SEARCH(BY_ROOT, AGAIN, TEST, FOUND) \
	CMPQ PC, ·rootPC(SB); \
	JEQ BY_ROOT; \
	MOVQ PC, R13; \
	BTSQ $63, R13; \
	JMP TEST; \
AGAIN: \
	ADDQ $2, R12; \
	ANDQ MASK, R12; \
TEST: \
	CMPQ R13, (TABLE)(R12*8); \
	JEQ refuse; \
	CMPQ (TABLE)(R12*8), $0; \
	JEQ unknown; \
	CMPQ PC, (TABLE)(R12*8); \
	JNE AGAIN; \
	ADDQ 8(TABLE)(R12*8), FRAME; \
	CMPQ FRAME, NEXT; \
	JEQ FOUND; \
	MOVQ FRAME, NEXT; \
FOUND:

// Four return addresses from number AX on; to few if one differs. Two offsets are read at once,
// and two addresses compared: what it costs is the loads. Clobbers FRAME.
#define COMPARE_FOUR \
	MOVQ (OLD)(AX*4), R10; \
	MOVL R10, R11; \
	SHRQ $32, R10; \
	MOVQ 8(BASE)(R11*1), X0; \
	MOVHPS 8(BASE)(R10*1), X0; \
	MOVQ 8(OLD)(AX*4), BX; \
	MOVL BX, R11; \
	SHRQ $32, BX; \
	MOVQ 8(BASE)(R11*1), X1; \
	MOVHPS 8(BASE)(BX*1), X1; \
	MOVOU (R12)(AX*8), X2; \
	MOVOU 16(R12)(AX*8), X3; \
	MOVOU X0, (R13)(AX*8); \
	MOVOU X1, 16(R13)(AX*8); \
	PCMPEQL X0, X2; \
	PCMPEQL X1, X3; \
	PAND X3, X2; \
	PMOVMSKB X2, R10; \
	CMPL R10, $0xffff; \
	JNE few

// func capture(pcs []uintptr) int
TEXT ·capture(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ pcs_base+0(FP), OUT
	MOVQ pcs_len+8(FP), COUNT
	LOAD_TABLE
	MOVQ (TLS), AX
	MOVQ g_hi(AX), DX
	LEAQ -16(DX), HIGHEST
	MOVQ BP, FRAME

	// A memo pays from so much stack on. Where this is above the goroutine's stack, on another
	// one, the difference is less than 0, which is much.
	SUBQ BP, DX
	SLOT(AX)
	MOVL slot_deep(R12)(R13*1), R14
	CMPQ DX, R14
	JAE large

plain:
	LEAQ (OUT)(COUNT*8), OUT
	NEGQ COUNT
	ADDQ $2, COUNT
	JG last

	// Two frames, for which there is room; FRAME and NEXT change places for the second.
walk:
	MOVQ 8(FRAME), PC
	MOVQ (FRAME), NEXT
	CHECK(FRAME, NEXT, search, wrong)
	CMPQ NEXT, HIGHEST
	JA refuse
	MOVQ PC, -16(OUT)(COUNT*8)
	MOVQ 8(NEXT), PC
	MOVQ (NEXT), FRAME
	CHECK(NEXT, FRAME, search_second, wrong_second)
	CMPQ FRAME, HIGHEST
	JA refuse
	MOVQ PC, -8(OUT)(COUNT*8)
	ADDQ $2, COUNT
	JLE walk

	// Room for one more, or none.
last:
	CMPQ COUNT, $1
	JNE plain_end
	MOVQ 8(FRAME), PC
	MOVQ (FRAME), NEXT
	CHECK(FRAME, NEXT, search, wrong)

	// One frame that was looked at by itself.
one_more:
	CMPQ NEXT, HIGHEST
	JA refuse
	MOVQ NEXT, FRAME
	MOVQ PC, -16(OUT)(COUNT*8)
	INCQ COUNT
	JLE walk
	JMP last

wrong_second:
	INCQ COUNT
	JMP one_more
wrong:
	MOVQ FRAME, NEXT
	JMP one_more
search_second:
	XCHGQ FRAME, NEXT
	INCQ COUNT
search:
	SEARCH(plain_root, search_again, search_test, search_found)
	JMP one_more

plain_root:
	TESTQ NEXT, NEXT
	JNZ refuse
	MOVQ PC, -16(OUT)(COUNT*8)
	INCQ COUNT
plain_end:
	MOVQ pcs_len+8(FP), AX
	LEAQ -2(COUNT)(AX*1), COUNT
	MOVQ COUNT, ret+24(FP)
	CMPQ COUNT, $const_deep
	JGE ask_for_memo
	RET
ask_for_memo:
	MOVQ (TLS), AX
	SLOT(AX)
	ADDQ R12, R13
	MOVQ g_hi(AX), DX
	SUBQ BP, DX
	MOVL DX, slot_deep(R13)
	// A slot that is another's stays that one's.
	MOVQ slot_owner(R13), DX
	TESTQ DX, DX
	JZ ask_size
	CMPQ AX, DX
	JNE return
ask_size:
	MOVL slot_made(R13), AX
	CMPQ COUNT, AX
	JLE return
	CMPQ pcs_cap+16(FP), $const_tell
	JNE slow
	LEAQ ·slots(SB), R12
	SUBQ R12, R13
	SHRQ $const_slotShift, R13
	INCQ R13
	SHLQ $const_askShift, R13
	ORQ R13, ret+24(FP)
return:
	RET

	// More stack than that: is there a memo, and enough room?
large:
	CMPQ FRAME, HIGHEST
	JA refuse
	ADDQ R12, R13
	CMPQ COUNT, $const_deep
	JL plain
	CMPQ AX, slot_owner(R13)
	JNE plain
	SHRQ $32, DX
	JNZ plain

	// A walk that stops at the first frame that is remembered, and then compares.
	MOVQ slot_memo(R13), MEMO
	MOVL $1, slot_used(R13)
	MOVQ HIGHEST, BASE
	MOVQ $(16 - 0x100000000), R12
	ADDQ R12, BASE
	XORL COUNT, COUNT
	MOVQ memo_first(MEMO), OLD
	SHLQ $2, OLD
	ADDQ memo_offsets(MEMO), OLD
recall_next:
	MOVQ FRAME, R12
	SUBQ BASE, R12
	MOVQ memo_fresh(MEMO), R13
	MOVL R12, (R13)(COUNT*4)
	MOVQ 8(FRAME), PC
	MOVQ (FRAME), NEXT
	JMP older_test
older:
	ADDQ $4, OLD
older_test:
	CMPL (OLD), R12
	JB older
	JNE new
	// This frame has its place in both. If it returns where it did, so has the one above it,
	// and whatever is above that as long as it does, too.
	MOVQ OLD, R13
	SUBQ memo_offsets(MEMO), R13
	MOVQ memo_pcs(MEMO), R12
	LEAQ (R12)(R13*2), R12
	CMPQ PC, (R12)
	JEQ compare
new:
	CHECK(FRAME, NEXT, recall_search, recall_wrong)
new_next:
	CMPQ NEXT, HIGHEST
	JA refuse
	MOVQ NEXT, FRAME
	MOVQ PC, (OUT)(COUNT*8)
	INCQ COUNT
	CMPQ COUNT, pcs_len+8(FP)
	JGE recall_end
	CMPQ COUNT, memo_size(MEMO)
	JLT recall_next

	// The memo is too small: go on without.
	MOVQ pcs_len+8(FP), R12
	LEAQ (OUT)(R12*8), OUT
	SUBQ R12, COUNT
	ADDQ $2, COUNT
	JLE walk
	JMP last

recall_wrong:
	MOVQ FRAME, NEXT
	JMP new_next
recall_search:
	SEARCH(recall_root, recall_again, recall_test, recall_found)
	JMP new_next

recall_root:
	TESTQ NEXT, NEXT
	JNZ refuse
	MOVQ PC, (OUT)(COUNT*8)
	INCQ COUNT
recall_end:
	// Nothing above is as remembered.
	MOVQ memo_size(MEMO), R12
	MOVQ memo_offsets(MEMO), OLD
	LEAQ (OLD)(R12*4), OLD
	XORL DX, DX
	JMP update

	// From here on no frame has to be looked for: if every return address is the one
	// that is remembered, so is every size. R12 = remembered ones, R13 = OUT for them,
	// DX = how many.
compare:
	SHRQ $2, R13
	MOVQ memo_size(MEMO), DX
	SUBQ R13, DX
	MOVQ pcs_len+8(FP), AX
	SUBQ COUNT, AX
	CMPQ AX, DX
	CMOVQLT AX, DX
	LEAQ (OUT)(COUNT*8), R13
	XORL AX, AX
	SUBQ $4, DX
	JLT few
	JZ last_four
four:
	COMPARE_FOUR
	ADDQ $4, AX
	CMPQ AX, DX
	JLT four
	// The last four of them, of which some may have been compared: how often this goes
	// round is all that changes from one depth to the next.
	MOVQ DX, AX
last_four:
	COMPARE_FOUR
	ADDQ $4, DX
	JMP same
few:
	ADDQ $4, DX
one:
	CMPQ AX, DX
	JGE same
	MOVL (OLD)(AX*4), R10
	MOVQ 8(BASE)(R10*1), R10
	CMPQ R10, (R12)(AX*8)
	JNE differs
	MOVQ R10, (R13)(AX*8)
	INCQ AX
	JMP one

same:
	// Up to the outermost frame, or no room for more?
	MOVQ -8(R13)(DX*8), R10
	CMPQ R10, ·rootPC(SB)
	JEQ update
	LEAQ (COUNT)(DX*1), R10
	CMPQ R10, pcs_len+8(FP)
	JGE update
	LEAQ -1(DX), AX

// Frame number AX of these is where it was, and returns elsewhere, or is the last one
// that is remembered: go on from it by its frame pointer.
differs:
	MOVQ memo_fresh(MEMO), R13
	LEAQ (R13)(COUNT*4), R13
	XORL R10, R10
keep:
	MOVL (OLD)(R10*4), R11
	MOVL R11, (R13)(R10*4)
	INCQ R10
	CMPQ R10, AX
	JLE keep
	ADDQ AX, COUNT
	MOVL (OLD)(AX*4), FRAME
	LEAQ 4(OLD)(AX*4), OLD
	ADDQ BASE, FRAME
	LOAD_TABLE
	MOVQ 8(FRAME), PC
	MOVQ (FRAME), NEXT
	JMP new

// COUNT frames are new, and DX, which are from OLD on, are as remembered: put the new
// ones in front of those.
update:
	MOVQ OLD, R12
	SUBQ memo_offsets(MEMO), R12
	SHRQ $2, R12
	LEAQ (COUNT)(DX*1), R11
	MOVQ R11, ret+24(FP)
	SUBQ COUNT, R12
	JLT no_place
	MOVQ R12, memo_first(MEMO)
	TESTQ COUNT, COUNT
	JZ updated
	MOVQ memo_offsets(MEMO), R13
	LEAQ (R13)(R12*4), R13
	MOVQ memo_pcs(MEMO), DX
	LEAQ (DX)(R12*8), DX
	MOVQ memo_fresh(MEMO), R12
	XORL AX, AX
copy:
	MOVL (R12)(AX*4), R10
	MOVL R10, (R13)(AX*4)
	MOVQ (OUT)(AX*8), R10
	MOVQ R10, (DX)(AX*8)
	INCQ AX
	CMPQ AX, COUNT
	JLT copy
updated:
	CMPQ R11, $const_deep
	JL shallow
	RET
shallow:
	// Not worth a memo: not before there is more stack than this.
	MOVQ memo_slot(MEMO), R13
	MOVQ BASE, AX
	SUBQ BP, AX
	INCQ AX
	MOVL AX, slot_deep(R13)
	RET

no_place:
	// -R12 more would have to fit in.
	MOVQ memo_slot(MEMO), R13
	MOVQ memo_size(MEMO), COUNT
	SUBQ R12, COUNT
	JMP ask_size

unknown:
	MOVQ $const_unknown, ret+24(FP)
	CMPQ pcs_cap+16(FP), $const_tell
	JEQ return
slow:
	JMP ·slow(SB)
refuse:
	MOVQ $const_refused, ret+24(FP)
	CMPQ pcs_cap+16(FP), $const_tell
	JEQ return
	JMP ·handOn(SB)

// func attempt(pcs []uintptr, up int) int
TEXT ·attempt(SB), NOSPLIT, $32-40
	NO_LOCAL_POINTERS
	MOVQ pcs_base+0(FP), DI
	MOVQ pcs_len+8(FP), SI
	MOVQ up+24(FP), CX
further:
	MOVQ (BP), BP	// which is restored on return
	DECQ CX
	JNZ further
	MOVQ DI, 0(SP)
	MOVQ SI, 8(SP)
	MOVQ $const_tell, 16(SP)
	CALL ·capture(SB)
	MOVQ 24(SP), AX
	MOVQ AX, ret+32(FP)
	RET

// func chain(frames *uintptr, pcs *uintptr, room int) int
TEXT ·chain(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ frames+0(FP), SI
	MOVQ pcs+8(FP), DI
	MOVQ (TLS), R12
	MOVQ g_hi(R12), R8
	LEAQ -16(R8), HIGHEST
	XORL COUNT, COUNT
	MOVQ BP, FRAME
	CMPQ FRAME, SP
	JB broken
chain_next:
	CMPQ FRAME, HIGHEST
	JA broken
	TESTQ $7, FRAME
	JNZ broken
	MOVQ R8, AX
	SUBQ FRAME, AX
	MOVQ AX, (SI)(COUNT*8)
	MOVQ 8(FRAME), AX
	MOVQ AX, (DI)(COUNT*8)
	INCQ COUNT
	MOVQ (FRAME), NEXT
	TESTQ NEXT, NEXT
	JZ chain_end
	CMPQ NEXT, FRAME
	JBE broken
	MOVQ NEXT, FRAME
	CMPQ COUNT, room+16(FP)
	JLT chain_next
chain_end:
	MOVQ COUNT, ret+24(FP)
	RET
broken:
	MOVQ $const_refused, ret+24(FP)
	RET

// func bounds() (lo, hi, sp uintptr)
TEXT ·bounds(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ (TLS), AX
	MOVQ g_lo(AX), CX
	MOVQ CX, lo+0(FP)
	MOVQ g_hi(AX), CX
	MOVQ CX, hi+8(FP)
	MOVQ SP, sp+16(FP)
	RET

// func current() uintptr
TEXT ·current(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
