# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the kernel's own selftests for shadow stacks from Debian's linux-source, and runs them in
# the guests under the name upstream:TEST. The file known lists the known failures and their
# reasons.

UP	:= $(SHSTK_CACHE)/source/tools/testing/selftests
UPINC	:= $(SHSTK_CACHE)/source/tools/include
UPB	:= $(B)/selftests/conformance
# Debian 14's folder has current kernel headers, and a compiler that knows these extensions.
FORKY	:= selftests/guest/in forky
UPFLAGS	:= -w -O2 -g -static -I$(UP) -I$(UPINC)

UP_ARM64 := basic-gcs libc-gcs gcs-locking gcs-stress gcspushm gcsstr
UP_ARM64_SIGNAL := gcs_exception_fault gcs_frame gcs_prot_none_fault gcs_write_fault

GUEST_arm64 += $(foreach t,$(UP_ARM64) $(UP_ARM64_SIGNAL),upstream:$(t)=$(UPB)/$(t))
GUEST_ADD_arm64 += $(UPB)/gcs-stress-thread:/t/gcs-stress-thread
GUEST_x86 += upstream:test_shadow_stack=$(UPB)/test_shadow_stack \
	upstream:test_shadow_stack-no-uffd=$(UPB)/test_shadow_stack-no-uffd
GUEST_riscv += upstream:cfitests=$(UPB)/cfitests \
	upstream:cfi-shadowstack=$(UPB)/cfi-shadowstack
USER_arm64 += $(foreach t,basic-gcs libc-gcs gcs-locking,upstream:$(t)=$(UPB)/$(t))
GUEST_STYLE += upstream:test_shadow_stack=brackets upstream:test_shadow_stack-no-uffd=brackets \
	$(foreach t,gcspushm gcsstr $(UP_ARM64_SIGNAL),upstream:$(t)=exit)
# Debian 14's programs are run to test glibc's own support.
GUEST_arm64 += glibc=bash,selftests/conformance/glibc.sh
GUEST_OPTIONS_arm64 += --prog root-arm64:/usr/bin/bash --prog root-arm64:/usr/bin/sqlite3
GUEST_KNOWN += selftests/conformance/known

UPSTREAM := $(addprefix $(UPB)/,$(UP_ARM64) $(UP_ARM64_SIGNAL) gcs-stress-thread \
	test_shadow_stack test_shadow_stack-no-uffd cfitests cfi-shadowstack)
$(UPSTREAM): selftests/conformance/build.mk | $(UPB)/
$(UPB)/:
	@mkdir -p $@

# This test switches shadow stacks on itself, so it is built without libc.
$(UPB)/basic-gcs: $(UP)/arm64/gcs/basic-gcs.c
	$(call say,GUESTCC,$@)$(FORKY) aarch64-linux-gnu-gcc -w -O2 -g -I$(UP) \
		-fno-asynchronous-unwind-tables -fno-ident -s -nostdlib -nostdinc -static \
		-I$(UPINC)/nolibc -include $(UPINC)/nolibc/nolibc.h \
		-I/usr/aarch64-linux-gnu/include -std=gnu99 -ffreestanding -o $@ $< -lgcc

$(addprefix $(UPB)/,libc-gcs gcs-locking gcs-stress): $(UPB)/%: $(UP)/arm64/gcs/%.c
	$(call say,GUESTCC,$@)$(FORKY) aarch64-linux-gnu-gcc $(UPFLAGS) -o $@ $< -lpthread

$(addprefix $(UPB)/,gcspushm gcsstr gcs-stress-thread): $(UPB)/%: $(UP)/arm64/gcs/%.S
	$(call say,GUESTCC,$@)$(FORKY) aarch64-linux-gnu-gcc -nostdlib -static -o $@ $<

$(addprefix $(UPB)/,$(UP_ARM64_SIGNAL)): $(UPB)/%: $(UP)/arm64/signal/testcases/%.c
	$(call say,GUESTCC,$@)$(FORKY) aarch64-linux-gnu-gcc $(UPFLAGS) -std=gnu99 \
		-I$(UP)/arm64/signal -I$(UP)/arm64/signal/testcases -o $@ $< \
		$(addprefix $(UP)/arm64/signal/,test_signals.c test_signals_utils.c \
			testcases/testcases.c signals.S sve_helpers.c)

$(UPB)/test_shadow_stack: $(UP)/x86/test_shadow_stack.c
	$(call say,GUESTCC,$@)selftests/guest/in trixie gcc $(UPFLAGS) -pthread -o $@ $<

# This test stops at its first failure, and its use of userfaultfd is known to fail. So it is built
# once more without that system call, and then the checks behind it run, too.
$(UPB)/test_shadow_stack-no-uffd: $(UP)/x86/test_shadow_stack.c selftests/conformance/no-uffd.h
	$(call say,GUESTCC,$@)selftests/guest/in trixie gcc $(UPFLAGS) -pthread \
		-include selftests/conformance/no-uffd.h -o $@ $<

$(UPB)/cfitests: $(UP)/riscv/cfi/cfitests.c $(UP)/riscv/cfi/shadowstack.c
	$(call say,GUESTCC,$@)$(FORKY) riscv64-linux-gnu-gcc $(UPFLAGS) \
		-march=rv64gc_zicfilp_zicfiss -fcf-protection=full -o $@ $(filter %.c,$^)

# This is the part of cfitests about shadow stacks. Our program switches them on, because Debian's
# C library for riscv64 does not.
$(UPB)/cfi-shadowstack: selftests/conformance/cfi-shadowstack.c $(UP)/riscv/cfi/shadowstack.c
	$(call say,GUESTCC,$@)$(FORKY) riscv64-linux-gnu-gcc $(UPFLAGS) -I$(UP)/riscv/cfi \
		-march=rv64gc_zicfiss -fcf-protection=return -o $@ $(filter %.c,$^)
