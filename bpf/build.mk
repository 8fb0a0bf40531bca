# SPDX-License-Identifier: GPL-2.0-or-later
#
# The BPF programs: walk.bpf.c walks stacks by unwind rules, lend.bpf.c does so for ordinary users,
# language.bpf.c reads the frames of interpreters, native.bpf.c those on the native stack, too, for ordinary
# users lend_native.bpf.c (on arm64 lend_language.bpf.c those in the heap), and probed.bpf.c does so at probes.
# clang makes them, if it is installed; without it `shstk record --via=bpf` says so, and everything
# else works. tools/bpf/ loads them with libbpf.

# CO-RE needs the types (-g). The rest of the debug information is stripped. Macros of libbpf declare
# variables of the type of what they read, also if that is const; clang 21 and newer warn of it.
# Words of the stack, of objects and of records are read as what they are, not as they were written.
WALK_BPF_CC	:= $(CLANG) -target bpf -mcpu=v3 -O2 -g -fno-strict-aliasing $(WARN) -Wno-unknown-warning-option \
	-Wno-default-const-init-var-unsafe -I. -Iuapi -ffile-prefix-map=$(CURDIR)=.
# A context of a program has the registers of its architecture in front. The headers that tell which
# are the system's or, on another machine, those of the cross compiler.
WALK_BPF_HEADERS_x86 := /usr/include/$(MULTIARCH)
WALK_BPF_HEADERS_arm64 := $(patsubst %/asm,%,$(firstword \
	$(wildcard /usr/include/aarch64-linux-gnu/asm) /usr/aarch64-linux-gnu/include/asm))
# The programs of each architecture. On arm64 only Python is known, and not in the walk.
WALK_BPF_x86	:= walk lend lend_native language native probed stack
WALK_BPF_arm64	:= walk lend lend_language language probed stack
HAS_LIBBPF_H	:= $(wildcard /usr/include/bpf/bpf_core_read.h)
WALK_BPF_SRC	:= $(sort $(wildcard bpf/*.[ch] kmod/*.h uapi/linux/shstk_rules.h)) tools/probes/bpf/event.h
LLVM_STRIP	?= llvm-strip


# Makes the programs of an architecture. $(1) folder, $(2) architecture, $(3) WALK_X86 or WALK_ARM64
define walk_objects
$(WALK_BPF_$(2):%=$(1)/shstk-%.bpf.o): $(1)/shstk-%.bpf.o: $(WALK_BPF_SRC) bpf/build.mk
	@mkdir -p $$(@D)
	$$(call say,BPF,$$@)$(WALK_BPF_CC) -I$$(WALK_BPF_HEADERS_$(2)) -D$(3) $$(if $$(filter stack,$$*),-DWALK_SHARED) -c -o $$@ bpf/$$*.bpf.c
	$$(Q)if command -v $(LLVM_STRIP) >/dev/null; then $(LLVM_STRIP) -g $$@; fi
endef

ifneq ($(and $(HAS_CLANG),$(HAS_LIBBPF_H),$(WALK_BPF_$(ARCH))),)
$(eval $(call walk_objects,$(B),$(ARCH),$(if $(filter arm64,$(ARCH)),WALK_ARM64,WALK_X86)))
TOOL_OBJECTS	+= $(WALK_BPF_$(ARCH):%=$(B)/shstk-%.bpf.o)
endif
