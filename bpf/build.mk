# SPDX-License-Identifier: GPL-2.0-or-later
#
# The BPF programs: walk.bpf.c walks stacks by unwind rules, language.bpf.c reads the frames of
# interpreters. clang makes them, if it is installed; without it `shstk record --via=bpf` says so,
# and everything else works. tools/bpf/ loads them with libbpf.

# CO-RE needs the types (-g). The rest of the debug information is stripped.
WALK_BPF_CC	:= $(CLANG) -target bpf -mcpu=v3 -O2 -g $(WARN) -I. -Iuapi \
	-I/usr/include/$(MULTIARCH) -ffile-prefix-map=$(CURDIR)=.
WALK_BPF_SRC	:= $(wildcard bpf/*.[ch] kmod/*.h uapi/linux/shstk_rules.h)
LLVM_STRIP	?= llvm-strip

ifeq ($(ARCH),x86)
ifneq ($(HAS_CLANG),)
ifneq ($(wildcard /usr/include/bpf/bpf_core_read.h),)
$(B)/shstk-walk.bpf.o $(B)/shstk-language.bpf.o: $(B)/shstk-%.bpf.o: $(WALK_BPF_SRC) bpf/build.mk
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(WALK_BPF_CC) -DWALK_X86 -c -o $@ bpf/$*.bpf.c
	$(Q)if command -v $(LLVM_STRIP) >/dev/null; then $(LLVM_STRIP) -g $@; fi

TOOL_OBJECTS	+= $(B)/shstk-walk.bpf.o $(B)/shstk-language.bpf.o
endif
endif
endif
