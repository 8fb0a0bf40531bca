# SPDX-License-Identifier: GPL-2.0-or-later
#
# Benchmarks (Documentation/bench.rst).
#
#   make bench          measure against peers and write build/bench.csv; QUICK=1: 30 s
#   make bench-heap     measure only what recording allocations costs
#   make bench-versus   measure this build of the library and another one (OLD=LIB) in one run
#   make bench-record   compare samples with the truth and with perf in the same run, and
#                       measure what samples cost
#   make bench-names    measure how long the names of a program with 0.7 GB of debug information
#                       take; the program is built once, in ~/.cache/shstk
#   make bench-languages
#                       measure what the functions of a Python program cost a sample
#   make bench-rate     measure what the recorder would take of a machine with 128 CPUs
#   make bench-crowd    measure what the recorder takes to begin and to end beside 10,000 processes
#   make bench-flood    measure what it takes where mappings of code change all the time
#   make bench-bpf      measure what the walk of stacks in BPF costs; BENCH_BPF names parts
#   make bench-shares   measure how far shares of samples are from the truth
#   make bench-threads  measure the same of what threads of 1 to 20 ms do
#   make bench-instr    count the instructions of captures and of recording allocations,
#                       under valgrind

BENCH := $(B)/bench
BENCH_CFLAGS := $(CSTD) -O2 -g $(WARN) $(CPPFLAGS_COMMON) -Iselftests/bench \
	-MMD -MP
BENCH_FP := -fno-omit-frame-pointer
BENCH_NOFP := -fomit-frame-pointer
BENCH_OBJ := $(patsubst %,$(BENCH)/%.o,bench base check floor instr job report \
	source versus abseil chain_fp chain_nofp chain_nofp1024)

# All code between the chain and the loop over frame pointers keeps its frame pointer. base.c and
# the chains with "nofp" in their name do not.
$(BENCH)/%.o: selftests/bench/%.c selftests/bench/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(BENCH_CFLAGS) $(BENCH_FP) -c -o $@ $<

$(BENCH)/base.o: BENCH_FP := $(BENCH_NOFP) $(if $(filter x86,$(ARCH)),-mno-red-zone)

$(BENCH)/abseil.o: selftests/bench/abseil.cc selftests/bench/build.mk
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -O2 -g $(WARN) -MMD -MP $(BENCH_FP) -c -o $@ $<

$(BENCH)/chain_%.c: selftests/bench/gen_chain.awk
	@mkdir -p $(@D)
	$(call say,GEN,$@)awk -v name=$* -v arch=$(ARCH) \
		-v count=$(if $(findstring 1024,$*),1024,16) -f $< >$@
$(BENCH)/chain_fp.o: $(BENCH)/chain_fp.c
	$(call say,CC,$@)$(CC) $(BENCH_CFLAGS) $(BENCH_FP) -c -o $@ $<
$(BENCH)/chain_nofp%.o: $(BENCH)/chain_nofp%.c
	$(call say,CC,$@)$(CC) $(BENCH_CFLAGS) $(BENCH_NOFP) -c -o $@ $<
$(BENCH)/chain_nofp.o: $(BENCH)/chain_nofp.c
	$(call say,CC,$@)$(CC) $(BENCH_CFLAGS) $(BENCH_NOFP) -c -o $@ $<

$(BENCH)/bench: $(BENCH_OBJ) $(B)/framehop/modules.o $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(CXX) -o $@ $^ -lunwind -labsl_stacktrace \
		-labsl_debugging_internal -labsl_raw_logging_internal -lelf \
		-Wl,-rpath,'$$ORIGIN/../framehop'

$(BENCH)/compile: $(BENCH)/compile.o $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(CC) -o $@ $^

$(BENCH)/overhead: $(BENCH)/overhead.o $(BENCH)/chain_nofp1024.o
	$(call say,LD,$@)$(CC) -o $@ $^

$(BENCH)/allocate: $(BENCH)/allocate.o
	$(call say,LD,$@)$(CC) -o $@ $< -lpthread
$(BENCH)/allocate.o: BENCH_FP := $(BENCH_NOFP)

$(BENCH)/cost.so: $(BENCH)/cost.o
	$(call say,LD,$@)$(CC) -shared -o $@ $<
$(BENCH)/cost.o: BENCH_FP := -fPIC

# The recorder with rings that are memory of this program.
RATE_WRAP := perf_rings_open perf_rings_close perf_rings_lost shstk_profile_add
$(BENCH)/record_rate: selftests/bench/record_rate.c tools/perf/rings.c selftests/bench/build.mk \
		$(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(RATE_WRAP:%=-Wl,--wrap=%) -MMD -MP -o $@ $< \
		$@-shstk.o $(filter-out $(B)/tools/shstk.o $(B)/tools/perf/rings.o,$(filter %.o,$^)) \
		$(filter %.a,$^) $(TOOL_LIBS)

# This is a test: it compares the memo with the plain walk, on the chains that are measured.
$(BENCH)/memo_test.o: BENCH_FP := $(BENCH_NOFP) -Ilibshstk/arch/$(ARCH)
$(BENCH)/memo_test: $(patsubst %,$(BENCH)/%.o,memo_test chain_fp chain_nofp \
		chain_nofp1024) $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(CC) -Wl,--wrap=scratch_call,--wrap=place_keep,--wrap=memo_clear -o $@ $^

$(BENCH)/state_test.o: BENCH_FP := $(BENCH_NOFP) -Ilibshstk/arch/$(ARCH) $(KSELFTEST_FLAGS) -Wno-unused-parameter
$(BENCH)/state_test: $(patsubst %,$(BENCH)/%.o,state_test chain_fp chain_nofp) $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(CC) -o $@ $^

CHECK += $(addprefix $(BENCH)/,memo_test state_test) selftests/bench/missed_test.py

BENCH_ARM64 := $(patsubst %,$(BENCH)/arm64/%.o,memo_test chain_fp chain_nofp chain_nofp1024)

$(BENCH)/arm64/chain_%.c: selftests/bench/gen_chain.awk
	@mkdir -p $(@D)
	$(call say,GEN,$@)awk -v name=$* -v arch=arm64 \
		-v count=$(if $(findstring 1024,$*),1024,16) -f $< >$@
$(BENCH)/arm64/chain_%.o: $(BENCH)/arm64/chain_%.c
	$(call say,CC,$@)$(ARM64)gcc $(BENCH_CFLAGS) $(if $(filter fp,$*),$(BENCH_FP),$(BENCH_NOFP)) \
		-c -o $@ $<
$(BENCH)/arm64/memo_test.o: selftests/bench/memo_test.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(ARM64)gcc $(BENCH_CFLAGS) $(BENCH_NOFP) -Ilibshstk/arch/arm64 -c -o $@ $<
$(BENCH)/arm64/memo_test: $(BENCH_ARM64) $(B)/lib/arm64/libshstk.a
	$(call say,LD,$@)$(ARM64)gcc -static -Wl,--wrap=scratch_call,--wrap=place_keep,--wrap=memo_clear -o $@ $^

USER_arm64 += $(BENCH)/arm64/memo_test,1,10000

# Packages are installed first, because a fresh machine could not compile without them.
bench bench-bpf bench-crowd bench-flood bench-heap bench-instr bench-languages bench-names bench-rate bench-record bench-shares \
		bench-threads bench-versus:
	$(Q).ci/packages-install build bench
	$(Q)$(MAKE) --no-print-directory run-$@

run-bench: all $(BENCH)/bench $(BENCH)/compile $(BENCH)/overhead $(BENCH)/cost.so $(BENCH)/allocate
	$(Q)selftests/bench/run $(B) $(if $(QUICK),-q)

run-bench-heap: all $(BENCH)/cost.so $(BENCH)/allocate
	$(Q)selftests/bench/heap $(B) $(if $(QUICK),-q)

run-bench-instr: $(BENCH)/bench all
	$(Q)selftests/bench/count $< $(BENCH)/count
	$(Q)selftests/bench/heap $(B) -i

run-bench-record: all $(B)/selftests/record/truth
	$(Q)selftests/bench/record $(B)
	$(Q)selftests/bench/copies $(B)
	$(Q)selftests/bench/processes $(B)

run-bench-names: all
	$(Q)selftests/bench/names $(B) $(SHSTK_CACHE)/big-program

run-bench-rate: all $(BENCH)/record_rate
	$(Q)selftests/bench/rate $(B)

$(BENCH)/sleepers: selftests/bench/sleepers.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -static -o $@ $<

run-bench-crowd: all $(BENCH)/sleepers
	$(Q)selftests/bench/crowd $(B)

$(BENCH)/flood: selftests/bench/flood.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer \
		-fno-optimize-sibling-calls -o $@ $<

run-bench-flood: all $(BENCH)/flood
	$(Q)selftests/bench/flood $(B)

run-bench-bpf: all $(addprefix $(B)/selftests/bpf/,walk_cost walk_cost_fp spin shstk-walk.bpf.o)
	$(Q)selftests/bench/bpf $(B) $(BENCH_BPF)

run-bench-languages: all
	$(Q)selftests/bench/languages $(B)

run-bench-shares: all $(B)/selftests/record/sums
	$(Q)selftests/bench/shares $(B)

run-bench-threads: all $(B)/selftests/record/sums
	$(Q)selftests/bench/threads $(B)

run-bench-versus: $(BENCH)/bench all
	$(Q)selftests/bench/versus $< $(if $(OLD),$(OLD),$(error OLD=LIB is missing)) $(B)/libshstk.so

.PHONY: bench-record bench-bpf run-bench-bpf bench-crowd run-bench-crowd bench-flood run-bench-flood bench-languages run-bench-languages bench-heap bench-instr bench-names bench-rate bench-shares bench-threads bench-versus \
	run-bench run-bench-names run-bench-rate run-bench-record run-bench-heap run-bench-instr run-bench-shares run-bench-threads run-bench-versus
