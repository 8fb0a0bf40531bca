# SPDX-License-Identifier: GPL-2.0-or-later
#
# The BPF programs of `shstk record --heap -p`, and of `shstk record` for Go by copies of stacks.
# clang makes them, if it is installed. Without them the command says so, or works without them.
# They need no library; the command itself loads them.

PROBES_CC	:= $(CLANG) -target bpf -O2 $(WARN) -I/usr/include/$(MULTIARCH)

# Rules for the objects: $(1) is the folder, $(2) the machine's registers, X86 or ARM64.
define probes_objects
$(1)/shstk-%.bpf.o: tools/probes/bpf/%.bpf.c tools/probes/bpf/event.h \
		tools/probes/bpf/goroutine.h tools/probes/build.mk
	@mkdir -p $$(@D)
	$$(call say,BPF,$$@)$$(PROBES_CC) -DPROBES_$(2) -c -o $$@ $$<
endef
$(eval $(call probes_objects,$(B),$(if $(filter arm64,$(ARCH)),ARM64,X86)))

HAS_CLANG	:= $(shell command -v $(CLANG))
PROBES_OBJECTS	:= $(if $(HAS_CLANG),$(addprefix $(B)/,shstk-heap.bpf.o shstk-goroutine.bpf.o))
TOOL_OBJECTS	+= $(PROBES_OBJECTS)
