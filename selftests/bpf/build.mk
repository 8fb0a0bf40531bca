# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the walk in BPF (bpf/, tools/bpf/): its chains are compared with copies of the same
# stacks.

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

# The BPF object lies beside the program that loads it, as it does in an installation.
$(BPF_B)/shstk-walk.bpf.o: $(B)/shstk-walk.bpf.o
$(BPF_B)/shstk: $(B)/shstk
$(BPF_B)/judge: $(B)/selftests/offline/judge
$(BPF_B)/cases.sh: selftests/loader/cases.sh
$(BPF_B)/walk.sh: selftests/bpf/walk.sh
$(BPF_B)/shstk-walk.bpf.o $(BPF_B)/shstk $(BPF_B)/judge $(BPF_B)/cases.sh $(BPF_B)/walk.sh:
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(BPF_B)/walk_test.sh: selftests/bpf/walk_test.sh $(BPF_B)/chains $(BPF_B)/shstk $(BPF_B)/judge \
		$(BPF_B)/cases.sh $(BPF_B)/walk.sh $(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-walk.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK += $(BPF_B)/walk_test.sh $(if $(filter x86,$(ARCH)),$(BPF_B)/hostile_test)

$(BPF_B)/spin: selftests/bpf/spin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -fomit-frame-pointer \
		-fno-optimize-sibling-calls -o $@ $<

$(BPF_B)/record_test.sh: selftests/bpf/record_test.sh $(BPF_B)/spin $(BPF_B)/shstk $(BPF_B)/cases.sh \
		$(patsubst $(B)/%,$(BPF_B)/%,$(filter %/shstk-walk.bpf.o,$(TOOL_OBJECTS)))
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK += $(BPF_B)/record_test.sh
