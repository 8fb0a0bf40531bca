// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build linux && gc && go1.21

// As callers_amd64.s, where the whole is explained. What differs: a frame pointer points
// to the lower end of its frame, so that the way up from a frame is the size of the
// function that the frame below returns to. The first one is the frame of Callers.

#include "funcdata.h"
#include "textflag.h"
#include "go_asm.h"

#define g_lo	0	// of runtime.g: stack.lo
#define g_hi	8	// and stack.hi

// Registers that keep their meaning throughout capture.
#define OUT	R0	// where return addresses go
#define ROOM	R1	// how many may go there
#define COUNT	R2	// how many are there
#define FRAME	R3	// of the function that is looked at: its saved frame pointer
#define PC	R4	// its return address
#define NEXT	R5	// the frame above it
#define BASE	R6	// stack.hi - 2^32
#define HIGHEST	R7	// the highest place for a frame: stack.hi - 16
#define TABLE	R8	// of frame sizes
#define MASK	R9
#define OLD	R10	// the remembered frame that comes next, in offsets
#define MEMO	R11
#define BELOW	R12	// the return address before PC, which says the frame's size
#define ROOT	R13

// R14 = this goroutine's slot. Clobbers R15.
#define SLOT \
	MOVD $const_hash, R15; \
	MUL R15, g, R14; \
	LSR $32, R14; \
	AND $(const_slotCount - 1), R14; \
	MOVD $·slots(SB), R15; \
	ADD R14<<const_slotShift, R15, R14

// FRAME is where PC and NEXT were read from. Go to OTHER if another return address is in
// BELOW's place of the table, R14, and to WRONG if the frame pointer does not say what
// was learned, R17.
#define CHECK(OTHER, WRONG) \
	AND BELOW>>const_pcShift, MASK, R14; \
	ADD R14<<3, TABLE, R19; \
	LDP (R19), (R15, R16); \
	CMP R15, BELOW; \
	BNE OTHER; \
	ADD R16, FRAME, R17; \
	CMP R17, NEXT; \
	BNE WRONG

// The same for an address that is not in its first place.
#define SEARCH(AGAIN, TEST) \
	ORR $const_sizelessBit, BELOW, R17; \
	B TEST; \
AGAIN: \
	ADD $2, R14; \
	AND MASK, R14; \
TEST: \
	ADD R14<<3, TABLE, R19; \
	LDP (R19), (R15, R16); \
	CMP R15, R17; \
	BEQ refuse; \
	CBZ R15, unknown; \
	CMP R15, BELOW; \
	BNE AGAIN; \
	ADD R16, FRAME, R17

// Go on only if the function that BELOW is in was seen as the first one of a goroutine.
#define IS_LAST(AGAIN, TEST) \
	ORR $const_rootBit, BELOW, R17; \
	AND BELOW>>const_pcShift, MASK, R14; \
	B TEST; \
AGAIN: \
	ADD $2, R14; \
	AND MASK, R14; \
TEST: \
	ADD R14<<3, TABLE, R19; \
	MOVD (R19), R15; \
	CBZ R15, unknown; \
	CMP R15, R17; \
	BNE AGAIN

// func capture(pcs []uintptr) int
TEXT ·capture(SB), NOSPLIT|NOFRAME, $0-32
	MOVD pcs_base+0(FP), OUT
	MOVD pcs_len+8(FP), ROOM
	CBZ ROOM, nothing
	MOVD $0, COUNT
	MOVD ·sizes(SB), TABLE
	MOVD -const_tableHeader(TABLE), MASK
	MOVD ·rootPC(SB), ROOT

	MOVD g_hi(g), R14
	SUB $16, R14, HIGHEST
	MOVD $0x100000000, R15
	SUB R15, R14, BASE
	MOVD R29, FRAME
	CMP HIGHEST, FRAME
	BHI refuse

	// The goroutine's memo where it pays: for so much stack and so much room.
	SUB FRAME, R14, R20
	LSR $32, R20, R15
	CBNZ R15, plain
	SLOT
	MOVWU slot_deep(R14), R15
	CMP R15, R20
	BLO plain
	CMP $const_deep, ROOM
	BLT plain
	MOVD slot_owner(R14), R15
	CMP g, R15
	BEQ recall

plain:
	MOVD (FRAME), NEXT
	MOVD 8(FRAME), PC
	CMP FRAME, NEXT
	BLS refuse
	B walk_on
walk:
	MOVD (FRAME), NEXT
	MOVD 8(FRAME), PC
	CHECK(search, wrong)
walk_on:
	CMP HIGHEST, NEXT
	BHI refuse
	MOVD PC, (OUT)(COUNT<<3)
	ADD $1, COUNT
	MOVD NEXT, FRAME
	MOVD PC, BELOW
	CMP ROOM, COUNT
	BLT walk
	B plain_end

search:
	CMP ROOT, PC
	BEQ plain_root
	SEARCH(search_again, search_test)
	CMP R17, NEXT
	BEQ walk_on
wrong:
	CMP ROOT, PC
	BEQ plain_root
	MOVD R17, NEXT
	B walk_on

plain_root:
	CBNZ NEXT, refuse
	IS_LAST(plain_last, plain_last_test)
	MOVD PC, (OUT)(COUNT<<3)
	ADD $1, COUNT
plain_end:
	MOVD COUNT, ret+24(FP)
	CMP $const_deep, COUNT
	BGE ask_for_memo
	RET
ask_for_memo:
	SLOT
	SUB R29, BASE, R15
	MOVW R15, slot_deep(R14)
ask:
	// A slot that is another's stays that one's.
	MOVD slot_owner(R14), R15
	CBZ R15, ask_size
	CMP g, R15
	BNE return
ask_size:
	MOVWU slot_made(R14), R15
	CMP R15, COUNT
	BLE return
	MOVD pcs_cap+16(FP), R15
	CMP $const_tell, R15
	BNE slow
	MOVD $·slots(SB), R15
	SUB R15, R14
	LSR $const_slotShift, R14
	ADD $1, R14
	MOVD ret+24(FP), R15
	ORR R14<<const_askShift, R15
	MOVD R15, ret+24(FP)
return:
	RET
nothing:
	MOVD $0, ret+24(FP)
	RET

// A walk that stops at the first frame that is remembered, and then compares.
recall:
	MOVD slot_memo(R14), MEMO
	MOVD $1, R15
	MOVW R15, slot_used(R14)
	MOVD $0, BELOW
	MOVD memo_first(MEMO), R14
	MOVD memo_offsets(MEMO), OLD
	ADD R14<<2, OLD
recall_next:
	SUB BASE, FRAME, R20
	MOVD memo_fresh(MEMO), R14
	MOVW R20, (R14)(COUNT<<2)
	MOVD (FRAME), NEXT
	MOVD 8(FRAME), PC
	CBZ BELOW, first
	CHECK(recall_search, recall_wrong)
right:
	SUB BASE, NEXT, R21
older:
	MOVWU (OLD), R14
	CMP R20, R14
	BHS not_older
	ADD $4, OLD
	B older
not_older:
	BNE new
	// This frame has its place in both. If the one above it has, too, and this one returns where
	// it did, so has whatever is above that as long as it does, too. R14 = what is remembered
	// from here on.
	MOVWU 4(OLD), R14
	CMP R21, R14
	BNE new
	MOVD memo_offsets(MEMO), R14
	SUB R14, OLD, R16
	MOVD memo_pcs(MEMO), R14
	ADD R16<<1, R14
	MOVD (R14), R15
	CMP R15, PC
	BEQ compare
new:
	CMP HIGHEST, NEXT
	BHI refuse
	MOVD PC, (OUT)(COUNT<<3)
	ADD $1, COUNT
	MOVD NEXT, FRAME
	MOVD PC, BELOW
	CMP ROOM, COUNT
	BGE recall_end
	MOVD memo_size(MEMO), R14
	CMP R14, COUNT
	BLT recall_next

	// The memo is too small: go on without.
	B walk

first:
	CMP FRAME, NEXT
	BLS refuse
	B right
recall_search:
	CMP ROOT, PC
	BEQ recall_root
	SEARCH(recall_again, recall_test)
	CMP R17, NEXT
	BEQ right
recall_wrong:
	CMP ROOT, PC
	BEQ recall_root
	MOVD R17, NEXT
	B right

recall_root:
	CBNZ NEXT, refuse
	IS_LAST(recall_last, recall_last_test)
	MOVD PC, (OUT)(COUNT<<3)
	ADD $1, COUNT
recall_end:
	// Nothing above is as remembered.
	MOVD memo_size(MEMO), R14
	MOVD memo_offsets(MEMO), OLD
	ADD R14<<2, OLD
	MOVD $0, R15
	B update

	// From here on no frame has to be looked for: if every return address is the one
	// that is remembered, so is every size. R14 = remembered ones, R17 = OUT for them,
	// R15 = how many, R19 = how many are compared.
compare:
	LSR $2, R16
	MOVD memo_size(MEMO), R15
	SUB R16, R15
	SUB COUNT, ROOM, R16
	CMP R15, R16
	CSEL LT, R16, R15, R15
	ADD COUNT<<3, OUT, R17
	MOVD $0, R19
	SUBS $4, R15
	BLT few
four:
	ADD R19<<2, OLD, R20
	LDPW (R20), (R21, R22)
	LDPW 8(R20), (R23, R24)
	ADD R21, BASE, R21
	ADD R22, BASE, R22
	ADD R23, BASE, R23
	ADD R24, BASE, R24
	MOVD 8(R21), R21
	MOVD 8(R22), R22
	MOVD 8(R23), R23
	MOVD 8(R24), R24
	ADD R19<<3, R17, R20
	STP (R21, R22), (R20)
	STP (R23, R24), 16(R20)
	ADD R19<<3, R14, R20
	LDP (R20), (R16, R25)
	CMP R16, R21
	CCMP EQ, R25, R22, $0
	LDP 16(R20), (R16, R25)
	CCMP EQ, R16, R23, $0
	CCMP EQ, R25, R24, $0
	BNE few
	ADD $4, R19
	CMP R15, R19
	BLE four
few:
	ADD $4, R15
one:
	CMP R15, R19
	BGE same
	MOVWU (OLD)(R19<<2), R20
	ADD R20, BASE, R20
	MOVD 8(R20), R20
	MOVD (R14)(R19<<3), R16
	CMP R16, R20
	BNE differs
	MOVD R20, (R17)(R19<<3)
	ADD $1, R19
	B one

same:
	// Up to the outermost frame, or no room for more?
	ADD R15<<3, R17, R20
	MOVD -8(R20), R20
	CMP ROOT, R20
	BEQ update
	ADD R15, COUNT, R20
	CMP ROOM, R20
	BGE update
	SUB $1, R15, R19

// Frame number R19 of these is where it was, and returns elsewhere, or is the last one
// that is remembered: go on from it by its frame pointer.
differs:
	MOVD memo_fresh(MEMO), R14
	ADD COUNT<<2, R14
	MOVD $0, R15
keep:
	MOVWU (OLD)(R15<<2), R16
	MOVW R16, (R14)(R15<<2)
	ADD $1, R15
	CMP R19, R15
	BLE keep
	ADD R19, COUNT
	ADD R19<<2, OLD
	ADD R16, BASE, FRAME
	ADD $4, OLD
	MOVD (FRAME), NEXT
	MOVD 8(FRAME), PC
	CBZ R19, new	// which was checked before it was compared
	ADD COUNT<<3, OUT, R14
	MOVD -8(R14), BELOW
	CHECK(differs_search, differs_wrong)
	B new
differs_search:
	CMP ROOT, PC
	BEQ recall_root
	SEARCH(differs_again, differs_test)
	CMP R17, NEXT
	BEQ new
differs_wrong:
	CMP ROOT, PC
	BEQ recall_root
	MOVD R17, NEXT
	B new

// COUNT frames are new, and R15, which are from OLD on, are as remembered: put the new
// ones in front of those.
update:
	MOVD memo_offsets(MEMO), R14
	SUB R14, OLD, R16
	LSR $2, R16
	ADD R15, COUNT, R17
	MOVD R17, ret+24(FP)
	SUBS COUNT, R16
	BLT no_place
	MOVD R16, memo_first(MEMO)
	CBZ COUNT, updated
	ADD R16<<2, R14
	MOVD memo_pcs(MEMO), R15
	ADD R16<<3, R15
	MOVD memo_fresh(MEMO), R19
	MOVD $0, R20
copy:
	MOVWU (R19)(R20<<2), R21
	MOVW R21, (R14)(R20<<2)
	MOVD (OUT)(R20<<3), R21
	MOVD R21, (R15)(R20<<3)
	ADD $1, R20
	CMP COUNT, R20
	BLT copy
updated:
	CMP $const_deep, R17
	BGE return
	// Not worth a memo: not before there is more stack than this.
	MOVD memo_slot(MEMO), R14
	SUB R29, BASE, R15
	ADD $1, R15
	MOVW R15, slot_deep(R14)
	RET

no_place:
	// -R16 more would have to fit in.
	MOVD memo_size(MEMO), COUNT
	SUB R16, COUNT
	MOVD memo_slot(MEMO), R14
	B ask_size

unknown:
	MOVD $const_unknown, R14
	MOVD pcs_cap+16(FP), R15
	CMP $const_tell, R15
	BEQ tell
slow:
	JMP ·slow(SB)
refuse:
	MOVD $const_refused, R14
	MOVD pcs_cap+16(FP), R15
	CMP $const_tell, R15
	BEQ tell
	JMP ·handOn(SB)
tell:
	MOVD R14, ret+24(FP)
	RET

// func attempt(pcs []uintptr, up int) int
TEXT ·attempt(SB), NOSPLIT, $40-40
	NO_LOCAL_POINTERS
	MOVD pcs_base+0(FP), R0
	MOVD pcs_len+8(FP), R1
	MOVD up+24(FP), R2
further:
	MOVD (R29), R29		// which is restored on return
	SUBS $1, R2
	BNE further
	MOVD R0, 8(RSP)
	MOVD R1, 16(RSP)
	MOVD $const_tell, R0
	MOVD R0, 24(RSP)
	CALL ·capture(SB)
	MOVD 32(RSP), R0
	MOVD R0, ret+32(FP)
	RET

// func chain(frames *uintptr, pcs *uintptr, room int) int
TEXT ·chain(SB), NOSPLIT|NOFRAME, $0-32
	MOVD frames+0(FP), R0
	MOVD pcs+8(FP), R1
	MOVD room+16(FP), R10
	MOVD g_hi(g), R6
	SUB $16, R6, HIGHEST
	MOVD $0, COUNT
	MOVD R29, FRAME
	MOVD RSP, R15
	SUB $16, R15
	CMP R15, FRAME
	BLO broken
chain_next:
	CMP HIGHEST, FRAME
	BHI broken
	TST $7, FRAME
	BNE broken
	SUB FRAME, R6, R14
	MOVD R14, (R0)(COUNT<<3)
	MOVD 8(FRAME), R14
	MOVD R14, (R1)(COUNT<<3)
	ADD $1, COUNT
	MOVD (FRAME), NEXT
	CBZ NEXT, chain_end
	CMP FRAME, NEXT
	BLS broken
	MOVD NEXT, FRAME
	CMP R10, COUNT
	BLT chain_next
chain_end:
	MOVD COUNT, ret+24(FP)
	RET
broken:
	MOVD $const_refused, R14
	MOVD R14, ret+24(FP)
	RET

// func bounds() (lo, hi, sp uintptr)
TEXT ·bounds(SB), NOSPLIT|NOFRAME, $0-24
	MOVD g_lo(g), R0
	MOVD R0, lo+0(FP)
	MOVD g_hi(g), R0
	MOVD R0, hi+8(FP)
	MOVD RSP, R0
	MOVD R0, sp+16(FP)
	RET

// func current() uintptr
TEXT ·current(SB), NOSPLIT|NOFRAME, $0-8
	MOVD g, ret+0(FP)
	RET
