# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the walk in BPF (bpf/, tools/bpf/): its chains are compared with copies of the same
# stacks.
#
#   make check-bpf-many  compare BPF_SAMPLES (1000000) chains of eleven programs with copies; half an
#                   hour, and up to 1 GB in TMPDIR; not part of make check. With BPF_SUMS=FOLDER the
#                   counts are kept there, and the next run, or one at the same time, adds to them

BPF_B	:= $(B)/selftests/bpf

# chains is linked with all of the command but its main().
$(BPF_B)/chains: selftests/bpf/chains.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

# hostile_test has the walk read memory that is no stack.
$(BPF_B)/hostile_test: selftests/bpf/hostile_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a \
		$(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-walk.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$(TOOL_OBJ))) $(filter %.a,$^) $(TOOL_LIBS)

# walk_cost is measured with frame pointers and without.
BPF_COST := $(BPF_B)/walk_cost $(BPF_B)/walk_cost_fp
$(BPF_B)/walk_cost_fp: BPF_COST_FLAGS := -fno-omit-frame-pointer
$(BPF_COST): selftests/bpf/walk_cost.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -fomit-frame-pointer -fno-optimize-sibling-calls \
		$(BPF_COST_FLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$(TOOL_OBJ))) $(filter %.a,$^) $(TOOL_LIBS)

# share_test has the users' shares of the room for files, asked_test the requests that are forgotten,
# tries_test when files are tried again, golang_test how files are recognised that get no table.
BPF_SERVE := $(BPF_B)/share_test $(BPF_B)/asked_test $(BPF_B)/tries_test $(BPF_B)/golang_test
$(BPF_SERVE): $(BPF_B)/%: selftests/bpf/%.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$(TOOL_OBJ))) $(filter %.a,$^) $(TOOL_LIBS)

CHECK += $(if $(wildcard /usr/include/bpf/libbpf.h),$(BPF_SERVE))

# depth_test has how much of the kernel's stack each program leaves.
selftests/bpf/depth_test.py: | $(filter %.bpf.o,$(TOOL_OBJECTS))
CHECK += selftests/bpf/depth_test.py

# These have a part of the walk as it is; piece_test has a memory of its own.
$(addprefix $(BPF_B)/,piece_test ruled_test): $(BPF_B)/%_test: selftests/bpf/%_test.c bpf/%.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -I. -Iuapi $(OPT) -fno-strict-aliasing -MMD -MP -o $@ $<

$(BPF_B)/ring_test: selftests/bpf/ring_test.c bpf/ring_record.h bpf/walk.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -I. -Iuapi $(OPT) -fno-strict-aliasing -MMD -MP -o $@ $<

CHECK += $(BPF_B)/piece_test $(BPF_B)/ruled_test $(BPF_B)/ring_test

# The BPF object lies beside the program that loads it, as it does in an installation.
$(BPF_B)/shstk-walk.bpf.o: $(B)/shstk-walk.bpf.o
$(BPF_B)/shstk-stack.bpf.o: $(B)/shstk-stack.bpf.o
$(BPF_B)/shstk_stack.bpf.h: bpf/shstk_stack.bpf.h
$(BPF_B)/stacks.bpf.c: examples/stacks.bpf.c
$(BPF_B)/returned.bpf.c: selftests/bpf/returned.bpf.c
$(BPF_B)/shstk: $(B)/shstk
$(BPF_B)/judge: $(B)/selftests/offline/judge
$(BPF_B)/cases.sh: selftests/loader/cases.sh
$(BPF_B)/shstkd-profile.service: tools/record/shstkd-profile.service
$(BPF_B)/walk.sh: selftests/bpf/walk.sh
$(BPF_B)/throw: $(B)/selftests/record/throw
$(BPF_B)/input.i: $(B)/selftests/kmod/$(ARCH)/input.i
$(BPF_B)/lower_stack: $(B)/selftests/stacks/lower_stack
$(addprefix $(BPF_B)/,shstk-walk.bpf.o shstk-stack.bpf.o shstk_stack.bpf.h stacks.bpf.c returned.bpf.c shstk judge \
		cases.sh walk.sh throw input.i lower_stack shstkd-profile.service):
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(BPF_B)/walk_test.sh: selftests/bpf/walk_test.sh $(BPF_B)/chains $(BPF_B)/shstk $(BPF_B)/judge \
		$(BPF_B)/cases.sh $(BPF_B)/walk.sh $(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-walk.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)cp $< $@

# What measures has no test, so that it is built here.
$(BPF_B)/walk_test.sh: | $(BPF_COST)

BPF_SAMPLES ?= 1000000
check-bpf-many:
	$(Q).ci/packages-install build check
	$(Q)+$(CHECK_MAKE) run-check-bpf-many
run-check-bpf-many: $(BPF_B)/walk_test.sh $(BPF_B)/throw $(BPF_B)/input.i
	$(Q)$(if $(BPF_SUMS),mkdir -p $(BPF_SUMS) &&) \
		$< many=$(BPF_SAMPLES) $(addprefix sums=,$(abspath $(BPF_SUMS)))
.PHONY: check-bpf-many run-check-bpf-many

$(BPF_B)/sums_test.sh: selftests/bpf/sums_test.sh $(BPF_B)/walk_test.sh
	$(Q)cp $< $@

CHECK += $(BPF_B)/walk_test.sh $(BPF_B)/sums_test.sh $(if $(filter x86,$(ARCH)),$(BPF_B)/hostile_test)

BPF_TARGET_CFLAGS := $(CSTD) $(WARN) -D_GNU_SOURCE -I. -O1 -g -fomit-frame-pointer -fno-optimize-sibling-calls
$(addprefix $(BPF_B)/,spin naps changes maps no_batch): $(BPF_B)/%: selftests/bpf/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(BPF_TARGET_CFLAGS) -o $@ $< -pthread
$(BPF_B)/spin $(BPF_B)/changes: selftests/bpf/three_calls.h
# Not each compiler makes 32-bit code. In place of the program there is one that fails then.
$(BPF_B)/spin32: selftests/bpf/spin32.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -m32 -static -nostdlib -fno-pie -no-pie -fno-stack-protector \
		-fno-omit-frame-pointer -fno-optimize-sibling-calls -o $@ $< 2>$@.log || \
		{ printf '#!/bin/sh\nexit 1\n' >$@ && chmod +x $@; }
# Tables are kept by build IDs.
$(BPF_B)/spin_unnamed: $(BPF_B)/spin
	$(Q)objcopy --remove-section .note.gnu.build-id $< $@
$(BPF_B)/late_library.so: selftests/bpf/late_library.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(BPF_TARGET_CFLAGS) -fPIC -shared -o $@ $<

$(BPF_B)/opened.so: selftests/bpf/opened.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(BPF_TARGET_CFLAGS) -fPIC -shared -o $@ $< -ldl

$(BPF_B)/record_test.sh: selftests/bpf/record_test.sh $(BPF_B)/spin $(BPF_B)/naps \
		$(BPF_B)/spin32 $(BPF_B)/spin_unnamed $(BPF_B)/maps $(BPF_B)/no_batch \
		$(BPF_B)/changes $(BPF_B)/late_library.so $(BPF_B)/lower_stack \
		$(BPF_B)/shstk $(BPF_B)/cases.sh \
		$(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-walk.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(BPF_B)/auto_test.sh: selftests/bpf/auto_test.sh $(BPF_B)/record_test.sh $(BPF_B)/shstkd-profile.service \
		$(BPF_B)/opened.so
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK += $(BPF_B)/record_test.sh $(BPF_B)/auto_test.sh

# The example, which is linked in the test. It needs libbpf's headers.
$(BPF_B)/stacks: examples/stacks.c bpf/shstk_stack.bpf.h $(B)/libshstk-bpf.so $(B)/libshstk-symbolize.so
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(WARN) -Ibpf -Ilibshstk -O2 -o $@ $< -L$(B) -lshstk-bpf -lshstk-symbolize \
		-lbpf -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..'

$(BPF_B)/forge $(BPF_B)/returned: $(BPF_B)/%: selftests/bpf/%.c bpf/walk.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -I. -Iuapi -O2 -o $@ $< -lbpf

$(BPF_B)/stack_test.sh: selftests/bpf/stack_test.sh $(addprefix $(BPF_B)/,spin stacks forge returned shstk cases.sh \
		shstk_stack.bpf.h stacks.bpf.c returned.bpf.c) \
		$(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-stack.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK += $(if $(wildcard /usr/include/bpf/libbpf.h),$(BPF_B)/stack_test.sh)

# The library as any loader has it. In guests it lies beside the test.
$(BPF_B)/library_test: selftests/bpf/library_test.c libshstk/shstk_bpf.h $(B)/libshstk-bpf.so
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -Ilibshstk -O1 -g -o $@ $< -L$(B) -lshstk-bpf \
		-pthread -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..'

$(BPF_B)/library_test.sh: selftests/bpf/library_test.sh $(BPF_B)/library_test | all
	@mkdir -p $(@D)
	$(Q)cp $< $@

# For guests, where no program can be linked.
$(BPF_B)/stacks.bpf.o: $(BPF_B)/stacks.bpf.c $(BPF_B)/shstk_stack.bpf.h $(BPF_B)/shstk-stack.bpf.o
	$(Q)$(CLANG) -target bpf -O2 -g -I$(BPF_B) -I/usr/include/$(MULTIARCH) -c -o $(@:.o=.own.o) $<
	$(Q)bpftool gen object $@ $(@:.o=.own.o) $(BPF_B)/shstk-stack.bpf.o

selftests/bpf/starter_test.py: | all
CHECK += $(if $(wildcard /usr/include/bpf/libbpf.h),selftests/bpf/starter_test.py $(BPF_B)/library_test.sh)
