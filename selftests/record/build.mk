# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk record` and `shstk trace`, with a program of known behaviour and with programs of
# Debian.

RECORD_B	:= $(B)/selftests/record
RECORD_CC	:= $(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g \
	-fomit-frame-pointer -fno-optimize-sibling-calls -pthread

# The target: target.c, and a file for each subject.
TARGET_SRC	:= selftests/record/target.c $(wildcard selftests/record/target_*.c) selftests/record/target.h
$(RECORD_B)/target: $(TARGET_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $(filter %.c,$^) -ldl \
		-Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
$(RECORD_B)/target-fp: $(TARGET_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -fno-omit-frame-pointer -o $@ $(filter %.c,$^) -ldl \
		-Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
$(RECORD_B)/target-static: $(TARGET_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -DSTATIC -static -o $@ $(filter %.c,$^)
$(RECORD_B)/pointers: selftests/record/pointers.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/tight: selftests/record/tight.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/cancel: selftests/record/cancel.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -MMD -MP -o $@ $< -ldl
$(RECORD_B)/names: selftests/record/names.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -O1 -g $(WARN) -o $@ $<
$(RECORD_B)/long_names: selftests/record/long_names.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/deep: selftests/record/deep.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/deep-fp: selftests/record/deep.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -fno-omit-frame-pointer -DFEW -o $@ $<
$(RECORD_B)/nobody: selftests/record/nobody.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -static -o $@ $<
$(RECORD_B)/pieces: selftests/record/pieces.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/crowd: selftests/record/crowd.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/reuse: selftests/record/reuse.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/reuse-%: selftests/record/reuse.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -fno-pie -no-pie -DPROGRAM -DNAME=work_in_$* -o $@ $<
$(RECORD_B)/libjvm.so: selftests/record/jvm.c selftests/record/jvm.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -shared -fPIC -Wl,-soname,libjvm.so -o $@ $<
$(RECORD_B)/jit: selftests/record/jit.c $(RECORD_B)/libjvm.so selftests/record/jvm.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $(filter %.c %.so,$^) -Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
$(RECORD_B)/shorten: selftests/record/shorten.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $< -ldl
$(RECORD_B)/shorten-%.so: selftests/record/shorten.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -shared -fPIC -DLIBRARY=$* -o $@ $<
$(RECORD_B)/truth: selftests/record/truth.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/sums: selftests/record/sums.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
$(RECORD_B)/target-musl: selftests/record/musl.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(musl_CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -pthread -o $@ $<
$(RECORD_B)/storm: selftests/record/storm.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -MMD -MP -o $@ $< -lrt
$(RECORD_B)/interleave: selftests/record/interleave.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -MMD -MP -o $@ $< -Wl,-z,now
$(RECORD_B)/inside: selftests/record/inside.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -MMD -MP -o $@ $< -ldl -Wl,-z,now \
		-Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
$(RECORD_B)/sandbox: selftests/record/sandbox.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -MMD -MP -o $@ $< -ldl \
		-Wl,-rpath,'$$ORIGIN' -Wl,--enable-new-dtags
$(RECORD_B)/plugin-%.so: selftests/record/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -shared -fPIC -DNAME=plugin_$* -o $@ $<

$(RECORD_B)/small_machine.so: selftests/record/small_machine.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -shared -fPIC -o $@ $<

# The tests in Python run from the source tree; what they run must be built before.
RECORD_TESTS := $(patsubst %,selftests/record/%_test.py,agent signals filters lifetime programs \
	trace perf_events)
$(RECORD_TESTS): | $(RECORD_B)/target $(RECORD_B)/target-fp \
	$(RECORD_B)/target-static $(RECORD_B)/target-musl $(RECORD_B)/truth \
	$(RECORD_B)/plugin-one.so $(RECORD_B)/plugin-two.so $(RECORD_B)/plugin-three.so \
	$(RECORD_B)/cancel $(RECORD_B)/inside $(RECORD_B)/pointers $(RECORD_B)/tight \
	$(RECORD_B)/storm $(RECORD_B)/interleave $(RECORD_B)/sandbox $(RECORD_B)/names \
	$(RECORD_B)/pieces all

$(RECORD_B)/install_test: selftests/record/install_test.sh all
	@mkdir -p $(@D)
	$(Q)cp $< $@

selftests/record/copies_test.py: | $(RECORD_B)/target $(RECORD_B)/target-static \
	$(RECORD_B)/deep $(RECORD_B)/deep-fp $(RECORD_B)/jit $(RECORD_B)/reuse \
	$(RECORD_B)/reuse-first $(RECORD_B)/reuse-other $(RECORD_B)/shorten \
	$(RECORD_B)/shorten-600.so $(RECORD_B)/shorten-1400.so $(RECORD_B)/small_machine.so all

selftests/record/attach_test.py: | $(RECORD_B)/target $(RECORD_B)/crowd all

# The file that describes its inlined functions is removed.
$(RECORD_B)/split: selftests/record/split.c
	@mkdir -p $(@D)
	$(call say,CC,$@)cd $(@D) && $(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -gsplit-dwarf -c -o split.o \
		$(abspath $<) && rm -f split.dwo && $(CC) -o split split.o
selftests/record/top_test.py: | $(RECORD_B)/target $(RECORD_B)/split $(RECORD_B)/long_names all

selftests/record/sums_test.py: | $(RECORD_B)/split $(RECORD_B)/sums all

$(RECORD_B)/wakers: selftests/record/wakers.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
selftests/record/wakers_test.py: | $(RECORD_B)/wakers all

$(RECORD_B)/family: selftests/record/family.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
selftests/record/targets_test.py: | $(RECORD_B)/crowd $(RECORD_B)/family all

selftests/record/kept_test.py: | $(RECORD_B)/target $(RECORD_B)/target-static all

$(RECORD_B)/faults: selftests/record/faults.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC) -o $@ $<
selftests/record/events_test.py: | $(RECORD_B)/faults all

CHECK	+= $(RECORD_B)/install_test $(RECORD_TESTS) $(patsubst %,selftests/record/%_test.py,events targets sums \
	copies attach top wakers kept)

# The recorder with stand-ins for the rings, and with the main() of these tests.
REPLAY_WRAP := $(addprefix perf_rings_,open read close stop lost total memory began executes)
$(RECORD_B)/mixed_test: REPLAY_WRAP += perf_probe shadow_stacks_any module_loaded rules_read_state
$(RECORD_B)/ways_test: REPLAY_WRAP += unwinder_unwind
$(RECORD_B)/adapt_test: REPLAY_WRAP += $(addprefix walker_,start started ready begin set_next \
	write_callchains can_write_callchains) gomoments_program
RECORD_REPLACED := $(addprefix $(RECORD_B)/,replay chain_test mixed_test ways_test adapt_test)
$(RECORD_REPLACED): $(RECORD_B)/%: selftests/record/%.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(REPLAY_WRAP:%=-Wl,--wrap=%) -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK	+= $(RECORD_REPLACED)

# What is mapped, with files that the test makes.
$(RECORD_B)/mappings_test: selftests/record/mappings_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK	+= $(RECORD_B)/mappings_test

# The rings of many CPUs, without the rest of the recorder.
$(RECORD_B)/rings_test: selftests/record/rings_test.c tools/perf/rings.c \
		$(addprefix $(B)/tools/perf/,borrow.o borrow_reply.o event.o regs.o)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $< $(filter %.o,$^)

# The agent's account of threads that ended, with another process at its stores.
$(RECORD_B)/ended_test: selftests/record/ended_test.c $(B)/tools/inject/agent/calls.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $< $(filter %.o,$^)

# Samples that wait for several threads, with a stand-in for unwinding, and with ThreadSanitizer.
$(RECORD_B)/ahead_test: selftests/record/ahead_test.c tools/convert/ahead.c tools/shortened.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TOOL_CFLAGS) $(tsan_FLAGS) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $<

CHECK	+= $(RECORD_B)/ahead_test

# A ring that grows, with events of this machine.
$(RECORD_B)/grow_test: selftests/record/grow_test.c tools/perf/rings.c \
		$(addprefix $(B)/tools/perf/,borrow.o borrow_reply.o event.o regs.o)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $< $(filter %.o,$^)

CHECK	+= $(RECORD_B)/rings_test $(RECORD_B)/grow_test $(RECORD_B)/ended_test

JIT_OBJ := $(patsubst %,$(B)/tools/java/%.o,jit_code codecache hotspot method vmstructs)

# The reader of HotSpot's tables, without the rest of the command.
$(RECORD_B)/vmstructs_test: selftests/record/vmstructs_test.c $(B)/tools/java/vmstructs.o \
		$(B)/tools/elf/symbols.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

# A test of the code that reads other processes, without the rest of the command.
$(RECORD_B)/budget_test: selftests/record/budget_test.c $(JIT_OBJ) $(B)/tools/elf/symbols.o \
		$(B)/tools/proc/tasks.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

# What look-ups of Java's code may take, with tables and a clock that the test makes.
$(RECORD_B)/look_ups_test: selftests/record/look_ups_test.c $(B)/tools/java/jit_code.o \
		$(B)/tools/java/hotspot.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

# Frames of Java's interpreter, with memory that the test makes.
$(RECORD_B)/methods_test: selftests/record/methods_test.c \
		$(patsubst %,$(B)/tools/java/%.o,inlined method methods vmstructs) \
		$(B)/tools/language/languages.o $(B)/tools/language/place.o $(B)/tools/repeats.o \
		$(B)/tools/elf/symbols.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

# The headers of ELF files, without the rest of the command.
$(RECORD_B)/headers_test: selftests/record/headers_test.c $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.a,$^) $(SYMBOL_LIBS)

CHECK	+= $(RECORD_B)/vmstructs_test $(RECORD_B)/budget_test $(RECORD_B)/look_ups_test \
	$(RECORD_B)/methods_test $(RECORD_B)/headers_test

# What /proc tells of a process, the command that another process starts, threads without events, which CPUs lost
# records, periods that vary, which processes and threads are recorded, what is read of stacks and of code, where shadow stacks are
# looked for, and how the agent shares time in the kernel, each with stand-ins for all else.
$(RECORD_B)/about_test: $(B)/tools/proc/about.o
$(RECORD_B)/apart_test: $(B)/tools/record/targets/target.o
$(RECORD_B)/calls_test: $(B)/tools/inject/agent/calls.o
$(RECORD_B)/filter_test: $(B)/tools/inject/agent/filter.o
$(RECORD_B)/rescue_test: $(B)/tools/record/rescue.o
$(RECORD_B)/late_test: $(B)/tools/record/perf/late.o
$(RECORD_B)/losses_test: $(B)/tools/record/perf/losses.o
$(RECORD_B)/vary_test: $(B)/tools/record/perf/vary.o
$(RECORD_B)/scope_test: $(B)/tools/record/perf/scope.o
$(RECORD_B)/targets_find_test: $(B)/tools/record/targets/targets.o
$(RECORD_B)/read_twice_test: $(B)/tools/convert/stack_read_twice.o
$(RECORD_B)/stepped_test $(RECORD_B)/probe_sites_test: $(B)/tools/convert/stepped.o $(B)/lib/native/libshstk.a
$(RECORD_B)/maps_test: $(B)/tools/proc/maps.o
$(RECORD_B)/shadow_test: $(addprefix $(B)/tools/proc/,shadow.o tasks.o)
$(RECORD_B)/file_rules_test: $(B)/lib/native/libshstk.a
$(RECORD_B)/file_rules_test: KSELFTEST_FLAGS += -Wl,--wrap=module_rule
RECORD_ALONE := $(addprefix $(RECORD_B)/,about_test apart_test calls_test file_rules_test filter_test late_test \
	losses_test maps_test told_test read_twice_test rescue_test scope_test shadow_test stepped_test probe_sites_test \
	targets_find_test vary_test)
$(RECORD_ALONE): $(RECORD_B)/%: selftests/record/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^)

CHECK	+= $(RECORD_ALONE)

# A callchain beside a sample.
$(RECORD_B)/beside_test: selftests/record/beside_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$(TOOL_OBJ))) $(filter %.a,$^) $(TOOL_LIBS)
CHECK	+= $(RECORD_B)/beside_test

# The line about how much was sampled; what outlives a profile.
$(RECORD_B)/sum_line_test $(RECORD_B)/renew_test: $(RECORD_B)/%: selftests/record/%.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK	+= $(RECORD_B)/sum_line_test $(RECORD_B)/renew_test

# How often maps are read of a process that changes them, with a stand-in for the clock.
$(RECORD_B)/maps_early_test: selftests/record/maps_early_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -Wl,--wrap=now_ns -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK	+= $(RECORD_B)/maps_early_test

# The recorder with stand-ins for the clock, the rings and the command.
RHYTHM_WRAP := now_ns syscall close mmap ioctl read setpriority sigtimedwait wait4 waitpid \
	target_find target_hold target_go
$(RECORD_B)/rhythm_test: selftests/record/rhythm_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(RHYTHM_WRAP:%=-Wl,--wrap=%) -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK	+= $(RECORD_B)/rhythm_test

# The agent, linked into a program in which nobody takes what it tells: with sanitizers, and
# without.
RECORD_FULL	:= $(RECORD_B)/full_test $(RECORD_B)/full_test-plain
$(RECORD_B)/full_test: $(B)/lib/asan/libshstk.a
$(RECORD_B)/full_test: RECORD_FULL_FLAGS := $(asan_FLAGS)
$(RECORD_B)/full_test-plain: $(B)/lib/native/libshstk.a
$(RECORD_FULL): selftests/record/full_test.c $(AGENT_SRC) \
		$(wildcard tools/inject/agent/*.h tools/inject/common/*.h tools/inject/*.h) \
		| $(B)/libshstk-agent.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(AGENT_CFLAGS) $(RECORD_FULL_FLAGS) \
		-DAGENT='"$(B)/libshstk-agent.so"' -o $@ $(filter %.c %.a,$^) -ldl -lrt

CHECK	+= $(RECORD_FULL)

# Takes as many samples as a day of recording, in some minutes.
.PHONY: replay-record
replay-record: $(RECORD_B)/replay
	$< 10000000

# The storm, and the orders of two signals, at full length: many hours.
STORM_ROUNDS ?= 100000
.PHONY: storm-record
storm-record: selftests/record/signals_test.py
	STORM_ROUNDS=$(STORM_ROUNDS) STORM_STRIDE=1 $< storm_of_handlers orders_of_two_signals

# The agent for arm64, which an emulator runs; "make check" has the compiler.
RECORD_ARM64	:= $(RECORD_B)/arm64
$(RECORD_ARM64)/libshstk-agent.so: $(AGENT_SRC) $(wildcard tools/inject/agent/*.h tools/inject/common/*.h tools/inject/*.h) \
		$(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(TOOL_CFLAGS) $(AGENT_CFLAGS) -shared \
		-o $@ $(AGENT_SRC) $(B)/lib/arm64/libshstk.a \
		$(call gcs_link,$(ARM64)) $(AGENT_LDFLAGS)
	$(call gcs_mark,$(ARM64),$@)
$(RECORD_ARM64)/target: $(TARGET_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC:$(CC)%=$(ARM64)gcc%) -o $@ $(filter %.c,$^)
$(RECORD_ARM64)/target-static: $(TARGET_SRC)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC:$(CC)%=$(ARM64)gcc%) -DSTATIC -static -o $@ $(filter %.c,$^)
$(RECORD_ARM64)/filter_test: selftests/record/filter_test.c tools/inject/agent/filter.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -static -MMD -MP -o $@ $^
$(RECORD_ARM64)/deep: selftests/record/deep.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC:$(CC)%=$(ARM64)gcc%) -o $@ $<
$(RECORD_ARM64)/publish: selftests/context/publish.c selftests/context/variable.c selftests/context/variable.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(CSTD) $(WARN) -D_GNU_SOURCE -I. -O1 -g -rdynamic -pthread \
		-o $@ $(filter %.c,$^) -ldl
selftests/record/arm64_test.py: | $(RECORD_ARM64)/libshstk-agent.so $(RECORD_ARM64)/target \
		$(RECORD_ARM64)/publish

CHECK	+= selftests/record/arm64_test.py

# The whole command for the arm64 guest. Debian 12 has no arm64 packages of the libraries that it
# needs: elfutils, lzma, zlib and zstd come from the guest's Debian. A few functions replace what
# only pprof needs, and C++ names are left out (left_out.c).
RECORD_ROOT	:= $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu
RECORD_SYMBOL	:= $(SYMBOL_SRC:libshstk/symbol/%.c=$(RECORD_ARM64)/symbol/%.o) \
	$(SYMBOL_PROTO:%=$(RECORD_ARM64)/symbol/%.pb-c.o)
RECORD_TOOLS	:= $(TOOL_SRC:tools/%.c=$(RECORD_ARM64)/tools/%.o)
RECORD_CC_ARM64	:= $(ARM64)gcc $(TOOL_CFLAGS) -idirafter /usr/include -MMD -MP

$(RECORD_ARM64)/tools/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(RECORD_ARM64)/symbol/%.o: libshstk/symbol/%.c | $(SYMBOL_PROTO_H)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -I$(SYMBOL_GEN) -c -o $@ $<
$(RECORD_ARM64)/symbol/%.pb-c.o: $(SYMBOL_GEN)/%.pb-c.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -I$(SYMBOL_GEN) -c -o $@ $<
$(RECORD_ARM64)/left_out.o: selftests/record/left_out.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(RECORD_ARM64)/shstk: $(RECORD_TOOLS) $(RECORD_SYMBOL) $(RECORD_ARM64)/left_out.o \
		$(B)/lib/arm64/libshstk.a
	$(call say,LD,$@)$(ARM64)gcc $(OPT) -pthread -o $@ $^ -Wl,--allow-shlib-undefined \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm

# The judge of callchains, too.
$(RECORD_ARM64)/offline/%.o: selftests/offline/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(RECORD_ARM64)/judge: $(RECORD_ARM64)/offline/judge.o $(RECORD_ARM64)/offline/chains.o $(RECORD_TOOLS) \
		$(RECORD_SYMBOL) $(RECORD_ARM64)/left_out.o $(B)/lib/arm64/libshstk.a
	$(Q)$(ARM64)objcopy --weaken-symbol=main $(RECORD_ARM64)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(ARM64)gcc $(OPT) -pthread -o $@ $@-shstk.o \
		$(filter-out $(RECORD_ARM64)/tools/shstk.o,$^) -Wl,--allow-shlib-undefined \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm

# For guests: hardware and software at the same moment, with programs of Debian. The loader's tests
# bring these programs and the libraries.
$(RECORD_ARM64)/throw: selftests/record/throw.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ -O2 -g $(WARN) -mbranch-protection=standard -o $@ $<
$(RECORD_B)/throw: selftests/record/throw.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -O2 -g $(WARN) -o $@ $<

# The object that takes each sample from both, and the program that shows where they differ.
RECORD_COMPARE_CFLAGS := $(INJECTED_FLAGS) -fPIC -fvisibility=hidden -fno-plt
$(RECORD_ARM64)/compare_agent.so: selftests/record/compare_agent.c selftests/record/compare.h \
		$(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(TOOL_CFLAGS) -Ilibshstk $(RECORD_COMPARE_CFLAGS) \
		-mbranch-protection=standard -shared -o $@ $(filter %.c %.a,$^) \
		$(call gcs_link,$(ARM64)) -pthread -Wl,--exclude-libs,ALL
	$(call gcs_mark,$(ARM64),$@)
$(RECORD_B)/compare_agent.so: selftests/record/compare_agent.c selftests/record/compare.h \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -Ilibshstk $(RECORD_COMPARE_CFLAGS) \
		-shared -o $@ $(filter %.c %.a,$^) -pthread -Wl,--exclude-libs,ALL
$(RECORD_ARM64)/compare.o: selftests/record/compare.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(RECORD_CC_ARM64) -c -o $@ $<
$(RECORD_ARM64)/compare: $(RECORD_ARM64)/compare.o $(RECORD_SYMBOL) $(RECORD_ARM64)/left_out.o \
		$(B)/lib/arm64/libshstk.a
	$(call say,LD,$@)$(ARM64)gcc $(OPT) -pthread -o $@ $^ -Wl,--allow-shlib-undefined \
		$(addprefix $(RECORD_ROOT)/,libdw.so.1 libelf.so.1 liblzma.so.5 libz.so.1 libzstd.so.1) -lm
$(RECORD_B)/compare: selftests/record/compare.c selftests/record/compare.h \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -o $@ $(filter %.c %.a,$^) $(TOOL_LIBS)

RECORD_GUEST_arm64 := selftests/loader/cases.sh $(addprefix $(RECORD_ARM64)/,shstk \
	libshstk-agent.so throw target deep)
RECORD_GUEST_x86 := selftests/loader/cases.sh $(addprefix $(B)/,shstk \
	libshstk-agent.so libshstk-start.so selftests/record/throw selftests/record/target)
record_words = $(subst $() ,,$(RECORD_GUEST_$(1):%=$(comma)%))
# selftests/record/sources.sh has these, too.
RECORD_COMPARE_arm64 := $(addprefix $(RECORD_ARM64)/,compare compare_agent.so)
RECORD_COMPARE_x86 := $(addprefix $(RECORD_B)/,compare compare_agent.so)
compare_words = $(call record_words,$(1))$(subst $() ,,$(RECORD_COMPARE_$(1):%=$(comma)%))

ifneq ($(wildcard $(RECORD_ROOT)/libdw.so.1),)
GUEST_arm64-7.2 += record:sources=selftests/record/sources.sh$(call compare_words,arm64)
RECORD_FILTERS := selftests/loader/cases.sh $(addprefix $(RECORD_ARM64)/,shstk libshstk-agent.so target \
	target-static filter_test)
GUEST_arm64-7.2 += record:filters=selftests/record/filters.sh$(subst $() ,,$(RECORD_FILTERS:%=$(comma)%))
GUEST_KMOD_arm64-7.2 += record:perf=selftests/record/perf.sh,full$(call record_words,arm64)
GUEST_ICOUNT += record:event=selftests/record/event.sh$(call record_words,arm64)
endif
ifneq ($(and $(filter x86,$(ARCH)),$(wildcard $(SHSTK_CACHE)/root-x86)),)
GUEST_x86-7.2 += record:sources=selftests/record/sources.sh$(call compare_words,x86)
GUEST_KMOD_x86-7.2 += record:perf=selftests/record/perf.sh,short$(call record_words,x86)
RECORD_RULES := $(RECORD_GUEST_x86) $(B)/selftests/loader/libprotobuf-c.so.1
GUEST_KMOD_x86-qemu-7.2 += record:rules=selftests/record/rules.sh$(subst $() ,,$(RECORD_RULES:%=$(comma)%))
RECORD_PARANOID := $(RECORD_RULES) $(RECORD_B)/nobody
GUEST_x86-qemu-7.2 += record:paranoid=selftests/record/paranoid.sh$(subst $() ,,$(RECORD_PARANOID:%=$(comma)%))
endif
