# SPDX-License-Identifier: GPL-2.0-or-later
#
# The BPF programs of `shstk record --heap -p`, made by clang if there is one: without it the
# command says so. They need no library; the command itself loads them.

PROBES_CC	:= $(CLANG) -target bpf -O2 -Wall -Wextra -Werror -I/usr/include/$(shell $(CC) -dumpmachine)

# $(1) the object; $(2) the registers: X86 or ARM64
define probes_object
$(1): tools/probes/bpf/heap.bpf.c tools/probes/bpf/event.h tools/probes/build.mk
	@mkdir -p $$(@D)
	$$(call say,BPF,$$@)$$(PROBES_CC) -DPROBES_$(2) -c -o $$@ $$<
endef
$(eval $(call probes_object,$(B)/shstk-heap.bpf.o,$(if $(filter arm64,$(ARCH)),ARM64,X86)))

HAS_CLANG	:= $(shell command -v $(CLANG))
TOOL_OBJECTS	+= $(if $(HAS_CLANG),$(B)/shstk-heap.bpf.o)
