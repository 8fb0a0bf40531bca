# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the walk in BPF in guests. selftests/guest/build.mk includes this file after it has
# defined the guests.
#
#   make check-bpf  run the BPF walk on other kernels (BPF_GUESTS): their verifiers, Debian's
#                   programs and forged stacks; ten minutes a guest; leaves build/bpf.csv
#   make bench-bpf-guest  count the instructions of a user stack by the BPF walk, the module's walk,
#                   perf's own callchain and a copy, in a guest

BPF_GUESTS ?= x86-qemu-6.1 x86-qemu-6.12 x86-qemu-7.2 arm64-7.2
BPF_ARM64 := $(B)/selftests/record/arm64
# The programs that are sampled. Emulation is slow, so some guests have fewer.
BPF_WORK := bash python3 perl sqlite3 xz git
# Of node, two stacks of three go through code in its file that has no rule.
BPF_WORK_x86-qemu-7.2 := bash python3 sqlite3 perl gcc openssl git tar xz c++
BPF_WORK_arm64-7.2 := bash python3 sqlite3 perl gcc xz
BPF_LIBBPF_x86 := $(firstword $(wildcard /usr/lib/$(MULTIARCH)/libbpf.so.1)):/usr/lib/x86_64-linux-gnu/libbpf.so.1
BPF_LIBBPF_arm64 := $(SHSTK_CACHE)/programs-arm64/usr/lib/aarch64-linux-gnu/libbpf.so.1:/usr/lib/aarch64-linux-gnu/libbpf.so.1
BPF_FILES_x86 := selftests/loader/cases.sh $(BPF_B)/chains $(B)/shstk $(B)/selftests/offline/judge $(BPF_B)/shstk-walk.bpf.o \
	$(B)/selftests/loader/libprotobuf-c.so.1 $(B)/selftests/record/throw $(B)/selftests/kmod/x86/input.i
BPF_FILES_arm64 := selftests/loader/cases.sh $(addprefix $(BPF_ARM64)/,chains shstk judge shstk-walk.bpf.o) \
	$(B)/selftests/kmod/arm64/input.i
BPF_STEPS_arm64 = $(BPF_CONTEXT) $(BPF_LANGUAGE_arm64) $(LANGUAGE_COMMAND_arm64) $(BPF_LIBRARY_arm64)
BPF_STEPS_x86 = $(BPF_B)/hostile_test $(BPF_LANGUAGE_x86) $(BPF_LENT) $(BPF_LIBRARY)
# libshstk-bpf and what it starts.
BPF_LIBRARY_NEEDS := $(addprefix $(B)/,shstk shstk-stack.bpf.o libshstk-bpf.so.0 libshstk-symbolize.so.0 \
	selftests/loader/libprotobuf-c.so.1)
BPF_LIBRARY_STACKS := $(addprefix $(BPF_B)/,stacks stacks.bpf.o spin) selftests/loader/cases.sh
BPF_RECORD_x86 := selftests/loader/cases.sh $(BPF_B)/spin $(BPF_B)/spin32 $(B)/shstk $(BPF_B)/shstk-walk.bpf.o \
	$(B)/selftests/loader/libprotobuf-c.so.1
BPF_RECORD_arm64 := selftests/loader/cases.sh $(addprefix $(BPF_ARM64)/,spin shstk shstk-walk.bpf.o)
BPF_LIBRARY = $(BPF_B)/library_test $(BPF_LIBRARY_STACKS) $(BPF_LIBRARY_NEEDS)
BPF_LIBRARY_NEEDS_arm64 := $(addprefix $(BPF_ARM64)/,shstk shstk-stack.bpf.o libshstk-bpf.so.0)
BPF_LIBRARY_STACKS_arm64 := $(addprefix $(BPF_ARM64)/,stacks stacks.bpf.o spin) selftests/loader/cases.sh
BPF_LIBRARY_arm64 = $(BPF_ARM64)/library_test $(BPF_LIBRARY_STACKS_arm64) $(BPF_LIBRARY_NEEDS_arm64)
$(B)/libshstk-bpf.so.0: $(B)/libshstk-bpf.so
$(B)/libshstk-symbolize.so.0: $(B)/libshstk-symbolize.so
# What the broker lends: tests, the command and its programs.
BPF_LENT_NEEDS := $(addprefix $(B)/,shstk shstk-lend.bpf.o shstk-lend_native.bpf.o shstk-walk.bpf.o \
	selftests/loader/libprotobuf-c.so.1)
BPF_LENT = $(addprefix $(B)/selftests/broker/,walk_test frames_test native_frames_test) $(BPF_LENT_NEEDS)
BPF_CC1_x86 := x86_64-linux-gnu
BPF_CC1_arm64 := aarch64-linux-gnu

# The program and the test for arm64, with the command that selftests/record builds for it.
$(eval $(call walk_objects,$(BPF_ARM64),arm64,WALK_ARM64))
$(BPF_ARM64)/bpf/%.o: selftests/bpf/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(BPF_ARM64)/bpf/truth.o: selftests/language/truth.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(BPF_ARM64)/chains $(BPF_ARM64)/truth: $(BPF_ARM64)/%: $(BPF_ARM64)/bpf/%.o $$(RECORD_TOOLS) $$(RECORD_SYMBOL) \
		$(BPF_ARM64)/left_out.o $(B)/lib/arm64/libshstk.a
	$(Q)$(ARM64)objcopy --weaken-symbol=main $(RECORD_ARM64)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(ARM64)gcc $(OPT) -pthread -o $@ $@-shstk.o \
		$(filter-out $(RECORD_ARM64)/tools/shstk.o,$^) -Wl,--allow-shlib-undefined \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm

# libshstk-bpf, its test and the example for arm64. Names of addresses are found by the same code as in
# libshstk-symbolize, which is linked into the example.
$(BPF_ARM64)/libshstk-bpf.so.0: libshstk/bpf/server.c libshstk/crash/apart.c $$(BPF_LIB_MAP)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(filter-out -MMD -MP,$(RECORD_CC_ARM64)) -DSHSTK_COMMAND='"$(BINDIR)/shstk"' -fPIC \
		-fvisibility=hidden -shared $(BPF_LIB_LDFLAGS) -o $@ $(filter %.c,$^) -pthread
$(BPF_ARM64)/library_test: selftests/bpf/library_test.c libshstk/shstk_bpf.h $(BPF_ARM64)/libshstk-bpf.so.0
	$(call say,CC,$@)$(filter-out -MMD -MP,$(RECORD_CC_ARM64)) -Ilibshstk -o $@ $(filter %.c %.so.0,$^) \
		-pthread -Wl,-rpath,'$$ORIGIN'
$(BPF_ARM64)/spin: selftests/bpf/spin.c selftests/bpf/three_calls.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(BPF_TARGET_CFLAGS) -o $@ $< -pthread
$(BPF_ARM64)/bpf/stacks.o: examples/stacks.c libshstk/shstk_bpf.h bpf/shstk_stack.bpf.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -Ibpf -Ilibshstk -c -o $@ $<
$(BPF_ARM64)/bpf/symbolize.o: libshstk/symbolize/symbolize.c | $$(SYMBOL_PROTO_H)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -I$(SYMBOL_GEN) -c -o $@ $<
$(BPF_ARM64)/stacks: $(BPF_ARM64)/bpf/stacks.o $(BPF_ARM64)/bpf/symbolize.o $$(RECORD_SYMBOL) \
		$(BPF_ARM64)/left_out.o $(BPF_ARM64)/libshstk-bpf.so.0 $(B)/lib/arm64/libshstk.a
	$(call say,LD,$@)$(ARM64)gcc $(OPT) -pthread -o $@ $^ -Wl,--allow-shlib-undefined -Wl,-rpath,'$$ORIGIN' \
		$(firstword $(subst :, ,$(BPF_LIBBPF_arm64))) \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm
$(BPF_ARM64)/stacks.bpf.o: $(BPF_B)/stacks.bpf.c $(BPF_B)/shstk_stack.bpf.h $(BPF_ARM64)/shstk-stack.bpf.o
	$(Q)$(CLANG) -target bpf -O2 -g -I$(BPF_B) -I$(WALK_BPF_HEADERS_arm64) -c -o $(@:.o=.own.o) $<
	$(Q)bpftool gen object $@ $(@:.o=.own.o) $(BPF_ARM64)/shstk-stack.bpf.o

BPF_LANGUAGE := selftests/harness.py $(addprefix selftests/language/,python_test.py truth_runs.py program.py judge.py)
BPF_LANGUAGE_x86 := $(BPF_LANGUAGE) $(addprefix $(B)/selftests/language/,truth shstk-language.bpf.o)
BPF_LANGUAGE_arm64 := $(BPF_LANGUAGE) $(BPF_ARM64)/truth $(BPF_ARM64)/shstk-language.bpf.o

# Python's functions in stopped processes, where it allocates, by the agent, and by what a broker lends, its tasks, and
# functions of OCaml. Each word is a test, with those of its functions that are short, and with the version of Python
# if that is not the guest's own. OCaml's program (static, of effects_many.c and effects.ml) is made elsewhere; without
# it that test is skipped.
BPF_EFFECTS := $(if $(wildcard $(SHSTK_CACHE)/ocaml-arm64/effects),$(BPF_ARM64)/effects)
LANGUAGE_TESTS_arm64 := trace_test:told,told_in_core \
	allocations_test:right,shown,lock,right_of_process,shown_of_process,lock_of_process \
	in_process_test:plain,threads lent_test:shown,compared,right,placed ocaml_test:copied,traced \
	$(addsuffix :3.11,python_test:shown,compared,right,placed allocations_test:right,shown in_process_test:plain) \
	$(addsuffix :3.14,python_test:shown,compared,right,placed tree_test:told_by_python,told_in_core)
LANGUAGE_COMMAND_arm64 := $(addprefix selftests/,harness.py parts.py pprof.py $(addprefix language/,trace_test.py told.py \
	waiting.py allocations_test.py allocations.py objects.py node_program.py written_program.py probed.py permitted.py \
	in_process_test.py program.py judge.py lent_test.py truth_runs.py node_judge.py ocaml_test.py python_test.py \
	tree_test.py waiting_tasks.py changing_tasks.py) broker/lending.py) \
	$(addprefix $(BPF_ARM64)/,shstk libshstk-agent.so publish_word.so truth shstk-language.bpf.o shstk-lend.bpf.o \
	shstk-lend_language.bpf.o shstk-probed.bpf.o shstk-walk.bpf.o) \
	$(addprefix $(B)/selftests/heap/arm64/,libshstk-heap.so shstk-heap.bpf.o) $(BPF_EFFECTS)
# Files of these versions.
LANGUAGE_PYTHON_arm64 := $(foreach v,python-arm64:3.11 root-arm64:3.14,$(foreach f,bin lib,\
	$(SHSTK_CACHE)/$(subst :,/usr/$(f)/python,$(v)):/usr/$(f)/python$(lastword $(subst :, ,$(v)))))
$(BPF_ARM64)/effects: $(SHSTK_CACHE)/ocaml-arm64/effects
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(BPF_ARM64)/publish_word.so: selftests/language/publish_word.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(WARN) -O1 -g -fPIC -shared -o $@ $<
# $(1) is such a word, $(2) the number of a part of it.
language_part = $(word $(2),$(subst :, ,$(1)))
language_name = $(subst _test,,$(call language_part,$(1),1))$(addprefix -,$(call language_part,$(1),3))
language_choice = $(if $(1),env PYTHON=/usr/bin/python$(1) )
language_step = echo "	'language:$(call language_name,$(1))=$(call language_choice,$(call language_part,$(1),3))selftests/language/guest_command.sh \
	$(call language_part,$(1),1) $(call language_part,$(1),2) $(LANGUAGE_COMMAND_arm64)' \\";

# Allocations by probes on a kernel that no other guest has (HEAP_PROBED_x86 is known later).
BPF_GUESTS_PROBED := x86-qemu-6.1
bpf_probed = $(if $(filter $(BPF_GUESTS_PROBED),$(1)),$(HEAP_PROBED_x86))
bpf_step_probed = $(if $(call bpf_probed,$(1)),echo \
	"	'heap:probed=selftests/heap/probed_test.sh brief $(call bpf_probed,$(1))' \\";)

# Trace contexts by the walk of arm64: the test, the command and its program.
BPF_CONTEXT := $(addprefix selftests/,harness.py pprof.py context/context_test.py language/permitted.py) \
	$(addprefix $(BPF_ARM64)/,publish shstk shstk-walk.bpf.o)

# Writes the steps that only guests of an architecture have. $(1) is the architecture.
define bpf_steps_x86
echo "	'bpf:hostile=$(BPF_B)/hostile_test $(BPF_B)/shstk-walk.bpf.o' \\"; \
echo "	'bpf:library=$(BPF_B)/library_test $(BPF_LIBRARY_NEEDS)' \\"; \
echo "	'bpf:stacks=selftests/bpf/library.sh $(BPF_LIBRARY_STACKS) $(BPF_LIBRARY_NEEDS)' \\"; \
echo "	'bpf:record=selftests/bpf/record.sh $(BPF_RECORD_x86)' \\"; \
echo "	'broker:walk=selftests/broker/walk.sh $(B)/selftests/broker/walk_test $(BPF_LENT_NEEDS)' \\"; \
echo "	'broker:frames=selftests/broker/walk.sh $(B)/selftests/broker/frames_test $(BPF_LENT_NEEDS)' \\"; \
echo "	'broker:native=selftests/broker/walk.sh $(B)/selftests/broker/native_frames_test $(BPF_LENT_NEEDS)' \\"; \
echo "	'language:python=selftests/language/guest.sh $(BPF_LANGUAGE_x86) $(B)/selftests/loader/libprotobuf-c.so.1' \\";
endef

define bpf_steps_arm64
echo "	'bpf:library=$(BPF_ARM64)/library_test $(BPF_LIBRARY_NEEDS_arm64)' \\"; \
echo "	'bpf:stacks=selftests/bpf/library.sh $(BPF_LIBRARY_STACKS_arm64) $(BPF_LIBRARY_NEEDS_arm64)' \\"; \
echo "	'bpf:record=selftests/bpf/record.sh $(BPF_RECORD_arm64)' \\"; \
echo "	'context:bpf=selftests/context/guest.sh $(BPF_CONTEXT)' \\"; \
echo "	'language:python=selftests/language/guest.sh $(BPF_LANGUAGE_arm64)' \\"; \
$(foreach t,$(LANGUAGE_TESTS_arm64),$(call language_step,$(t)))
endef

# In guests that have the module, its chains are compared with those of the walk, in the last step.
bpf_module_of = $(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1))))
bpf_step_module = $(if $(call bpf_module_of,$(1)),echo \
	"	$(call bpf_module_of,$(1)) 'bpf:module=selftests/bpf/walk.sh module $(filter-out node,$(2)) $(BPF_FILES_$(3))' \\";)

# $(1) guest, $(2) its architecture, $(3) the programs
define bpf_guest
$(B)/guest/check-bpf-$(1): FORCE selftests/bpf/walk.sh \
		$$$$(if $$$$(call guest_ready,$(1)),$(B)/guest/init-$(2) $$(BPF_FILES_$(2)) $$(BPF_STEPS_$(2)) $$$$(call bpf_probed,$(1)) $$$$(call bpf_module_of,$(1)))
	@mkdir -p $$(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/run $(1) --out $(B)/guest/bpf-$(1) --memory 2048 \\"; \
	   echo "	--sysroot $$(SHSTK_CACHE)/programs-$(2) --lib $(B)/selftests/loader --timeout 1500 \\"; \
	   echo "	$(if $(filter x86,$(2)),--cpus 2 --append nohpet) --add $$(BPF_LIBBPF_$(2)) --after csv=selftests/kmod/rules_csv \\"; \
	   for p in $(filter-out gcc c++,$(3)) cp mkdir rm env stat true; do echo "	--prog programs-$(2):/usr/bin/$$$$p \\"; done; \
	   echo "	--prog programs-$(2):/usr/libexec/gcc/$$(BPF_CC1_$(2))/14/cc1 \\"; \
	   echo "	--add $$(SHSTK_CACHE)/programs-$(2)/usr/lib/python3.13:/usr/lib/python3.13 \\"; \
	   echo "	--add $$(SHSTK_CACHE)/programs-$(2)/usr/share/nodejs:/usr/share/nodejs \\"; \
	   echo "	--prog programs-$(2):/usr/lib/$$(BPF_CC1_$(2))/libffi.so.8 \\"; \
	   $$(foreach f,$$(LANGUAGE_PYTHON_$(2)),echo "	--add $$(f) \\";) \
	   $$(bpf_steps_$(2)) $$(call bpf_step_probed,$(1)) \
	   echo "	'bpf:walk=selftests/bpf/walk.sh $(3) $$(BPF_FILES_$(2))' \\"; \
	   $$(call bpf_step_module,$(1),$(3),$(2)) echo; } >$$@
	@chmod +x $$@
CHECK_BPF += $(B)/guest/check-bpf-$(1)
endef
$(foreach g,$(BPF_GUESTS),$(eval $(call bpf_guest,$(g),$(call guest_arch,$(g)),\
	$(or $(BPF_WORK_$(g)),$(BPF_WORK)))))

# What a stack costs, in a guest with one CPU whose clock counts instructions.
BPF_COST_FILES := selftests/loader/cases.sh $(BPF_COST) $(B)/shstk $(BPF_B)/shstk-walk.bpf.o \
	$(B)/selftests/loader/libprotobuf-c.so.1
bpf_module = $(filter %/shstk_perf.ko,$(KMOD_x86-7.2))
bench-bpf-guest:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)+$(CHECK_MAKE) run-bench-bpf-guest
run-bench-bpf-guest: $(B)/guest/init-x86 $(BPF_COST_FILES) $$(bpf_module)
	$(Q)selftests/guest/run x86-qemu-7.2 --icount --out $(B)/guest/bpf-cost --append 'nohpet clearcpuid=erms,fsrm' \
		--memory 1024 --timeout 900 --sysroot $(SHSTK_CACHE)/programs-x86 \
		--lib $(B)/selftests/loader --add $(BPF_LIBBPF_x86) \
		'cost:without=selftests/bpf/walk_cost.sh without x86-7.2 $(BPF_COST_FILES)' \
		$(bpf_module) 'cost:with=selftests/bpf/walk_cost.sh with x86-7.2'
	$(Q)sed -n 's/^cost:with| \(walk: .*\|# depth .*\)/\1/p' $(B)/guest/bpf-cost/output.log

check-bpf:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)selftests/guest/setup kernel-x86-6.1 python-arm64
	$(Q)+$(CHECK_MAKE) run-check-bpf
run-check-bpf: $(CHECK_BPF)
	$(Q)selftests/run --guests $(CHECK_BPF)

.PHONY: check-bpf run-check-bpf bench-bpf-guest run-bench-bpf-guest
