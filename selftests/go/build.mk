# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of Go programs: names, rules and stacks by the table that each Go program carries. The tests
# build the programs themselves, with the machine's own Go.

GO_B := $(B)/selftests/go

$(GO_B)/table: selftests/go/table.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -MMD -MP -o $@ $< $(B)/lib/native/libshstk.a

selftests/go/names_test.py: | $(GO_B)/table $(EXPORT_B)/driver-native

selftests/go/stacks_test.py selftests/go/goroutines_test.py: | $(B)/shstk

selftests/go/record_test.py selftests/go/labels_test.py: | $(B)/shstk $(TOOL_OBJECTS)

CHECK += selftests/go/names_test.py selftests/go/stacks_test.py selftests/go/goroutines_test.py \
	selftests/go/record_test.py selftests/go/labels_test.py

# On arm64 the programs run in a guest, and what it prints is judged on this machine. Arguments: the
# program and one with labels, how often running programs are looked at, how many core files are
# made, and for how many seconds programs are recorded.
GO_ARM64 := $(B)/selftests/record/arm64
GO_ARM64_BPF := $(if $(HAS_CLANG),$(GO_ARM64)/shstk-goroutine.bpf.o)
go_guest_step = go:native:$(1)=selftests/go/guest.sh,$(GO_ARM64)/shstk,$(GO_B)/arm64/load-$(1),$(GO_B)/arm64/named-$(1),5,1,5,$(GO_ARM64)/libshstk-agent.so,selftests/loader/cases.sh$(addprefix $(comma),$(GO_ARM64_BPF))

$(eval $(call probes_objects,$(GO_ARM64),ARM64))

$(GO_B)/arm64/load-%: selftests/go/load.go selftests/go/calls.go
	@mkdir -p $(@D)
	$(call say,GO,$@)selftests/go/guest_test.py --build load.go $* $@

$(GO_B)/arm64/named-%: selftests/go/named.go selftests/go/calls.go
	@mkdir -p $(@D)
	$(call say,GO,$@)selftests/go/guest_test.py --build named.go $* $@

ifneq ($(and $(shell command -v go),$(wildcard $(SHSTK_CACHE)/root-arm64)),)
GUEST_arm64-7.2 += $(call go_guest_step,stripped) $(call go_guest_step,stripped-cgo)
GUEST_OPTIONS_arm64-7.2 += --after go=selftests/go/guest_test.py
endif

# The same by every release of Go that Debian's suites have. What fails does not keep the
# rest from being run; the last line sums up.
#
#   make check-go   fetch all releases of Go in Debian (2.2 GB), and run the tests of Go programs by each
GO_SUITES := $(patsubst %,selftests/go/%_test.py,names stacks goroutines record labels traceback \
	package)
check-go: all $(GO_B)/table $(EXPORT_B)/driver-native $(B)/guest/init-arm64 \
		$(GO_ARM64)/shstk $(GO_ARM64)/libshstk-agent.so $(GO_ARM64_BPF)
	$(Q)selftests/go/toolchains || echo 'make: only releases that are there are tested'
	$(Q)selftests/run --with=--suites --logs $(B)/check-go --timeout 14400 \
		--guest-timeout 28800 $(GO_SUITES) --guests selftests/go/guest_test.py

.PHONY: check-go

# This test makes the tables itself; it also runs with sanitizers.
$(GO_B)/forms_test: selftests/go/forms_test.c $(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(asan_FLAGS) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $< $(B)/lib/asan/libshstk.a

CHECK += $(GO_B)/forms_test

$(GO_B)/switch_test: selftests/go/switch_test.c $(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(asan_FLAGS) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $< $(B)/lib/asan/libshstk.a

$(GO_B)/switch_own_test: selftests/go/switch_own_test.c $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $< $(B)/lib/native/libshstk.a -pthread

$(GO_B)/arm64/switch_own_test: selftests/go/switch_own_test.c $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -static -o $@ $< $(B)/lib/arm64/libshstk.a -pthread

CHECK += $(GO_B)/switch_test $(GO_B)/switch_own_test
# This test runs in the guest, as user-mode emulation has no process_vm_readv().
GUEST_arm64 += $(GO_B)/arm64/switch_own_test

# These tests are linked with all of the command but its main().
$(GO_B)/splice_test $(GO_B)/moment_test $(GO_B)/left_test: $(GO_B)/%: selftests/go/%.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.c %.o %.a,$^)) -pthread $(TOOL_LIBS)

CHECK += $(GO_B)/splice_test $(GO_B)/moment_test $(GO_B)/left_test

# Tests of the package go/shstk. Go decides by itself what has to be built anew.
selftests/go/package_test.py: | $(GO_B)/package

$(GO_B)/package:
	@mkdir -p $(@D)
	$(call say,GO,$@)selftests/go/package_test.py --build && touch $@

CHECK += selftests/go/package_test.py

# The package beside runtime.Callers and a walk by frame pointers, by this machine's Go or that
# in GO_ROOT. Times are the least of so many rounds, which hardly depends on what else runs.
#
#   make bench-go        measure times of go/shstk, the least of GO_ROUNDS (1000); a verdict on each bar
#   make bench-go-instr  count instructions of its traces, on amd64 and arm64, by emulation
GO_ROUNDS ?= 1000
GO_ROOT ?=
bench-go:
	$(Q)selftests/go/bench_package --rounds=$(GO_ROUNDS) $(GO_ROOT)

bench-go-instr:
	$(Q)selftests/go/bench_package --instructions $(GO_ROOT)

# Frames of C that Go's profiles have, and what a sample costs, beside another provider of
# tracebacks: CGOSYMBOLIZER is a copy of github.com/ianlancetaylor/cgosymbolizer.
#
#   make bench-go-traceback  compare go/shstktraceback with CGOSYMBOLIZER (a folder)
bench-go-traceback: $(B)/libshstk.so
	$(Q)selftests/go/bench_traceback '$(CGOSYMBOLIZER)'

.PHONY: bench-go bench-go-instr bench-go-traceback

# Tests of what libshstk gives to Go's runtime: one called by C, and one by a Go program.
$(GO_B)/plugin.so: selftests/go/plugin.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(OPT) -fPIC -shared -MMD -MP -o $@ $<

$(GO_B)/traceback_c_test: selftests/go/traceback_c_test.c $(B)/lib/native/libshstk.a $(GO_B)/plugin.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -DPLUGIN='"$(abspath $(GO_B))/plugin.so"' -MMD -MP -o $@ $< \
		$(B)/lib/native/libshstk.a -pthread

# It looks up its own lines, also where the caller's CFLAGS ask for no debug information.
$(GO_B)/symbolize_test: selftests/go/symbolize_test.c | $(B)/libshstk-go-symbolize.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -g $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $< $(B)/libshstk-go-symbolize.so \
		-Wl,-rpath,$(abspath $(B)) -pthread

selftests/go/traceback_test.py: | $(B)/libshstk.so $(B)/libshstk-go-symbolize.so

CHECK += $(GO_B)/traceback_c_test $(GO_B)/symbolize_test selftests/go/traceback_test.py
