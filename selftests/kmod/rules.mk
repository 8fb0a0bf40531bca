# SPDX-License-Identifier: GPL-2.0-or-later
#
# Debian's perf on Debian's programs by unwind rules, in separate guests.
#
#   make check-rules  test callchains by unwind rules: Debian's programs in three guests, and
#                   what a chain costs; leaves build/rules.csv, build/rules-cost.csv and
#                   build/rules-system.csv
#   make check-first  test callchains of the first run of each program, while the daemon loads its
#                   tables, in guests (FIRST_GUESTS) whose clocks count instructions
#   make check-cpus  load tables for 2,000 files, walk and unload in a guest with 64 CPUs (CPUS_NR)
#   make check-chains  compare a million callchains (CHAINS_SAMPLES) of these programs with
#                   copies of the stacks, on x86 by elfutils, too; takes hours, and is not part
#                   of make check

RULES_GUESTS := x86-qemu-6.12 x86-qemu-7.2 arm64-7.2
RULES_ROOT = $(SHSTK_CACHE)/programs-$(1)
RULES_PROGRAMS := perf bash python3 sqlite3 perl openssl git tar xz node env cp mkdir rm
# The programs that are sampled in each guest. Emulation is slow, so some guests have fewer.
RULES_WORK_x86-qemu-7.2 := bash:python3:sqlite3:perl:gcc:openssl:git:tar:xz:c++:node
RULES_WORK_x86-qemu-6.12 := bash:python3:sqlite3:gcc:git
RULES_WORK_arm64-7.2 := bash:python3:sqlite3:perl:gcc:xz
# The guests in which as many samples as wanted are compared. Code that node makes at run time has
# no rules.
CHAINS_SAMPLES ?= 1000000
CHAINS_GUESTS ?= x86-qemu-7.2
FIRST_GUESTS ?= x86-qemu-7.2 x86-qemu-6.12 arm64-7.2
FIRST_WORK_arm64-7.2 ?= $(RULES_WORK_x86-qemu-7.2)
$(foreach g,$(RULES_GUESTS),$(eval FIRST_WORK_$(g) ?= $(RULES_WORK_$(g))))
$(foreach g,$(RULES_GUESTS),$(eval \
	CHAINS_WORK_$(g) ?= $(patsubst %:node,%,$(RULES_WORK_$(g)))))
RULES_CC1_x86 := x86_64-linux-gnu
RULES_CC1_arm64 := aarch64-linux-gnu
RULES_SHSTK_x86 := $(B)/shstk
RULES_SHSTK_arm64 := $(B)/selftests/record/arm64/shstk
RULES_JUDGE_x86 := $(B)/selftests/offline/judge
RULES_JUDGE_arm64 := $(B)/selftests/record/arm64/judge
RULES_THROW_x86 := $(B)/selftests/record/throw
RULES_THROW_arm64 := $(B)/selftests/record/arm64/throw

# Builds the files for the guests of an architecture. $(1) is the architecture.
define kmod_rules_files
$(B)/selftests/kmod/$(1)/both.so: selftests/kmod/both.c selftests/kmod/rules.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(CSTD) $$(WARN) -D_GNU_SOURCE -O2 -fPIC -shared -o $$@ $$<
# Something to compile for the compilers that are sampled.
$(B)/selftests/kmod/$(1)/input.i: libshstk/go/gopclntab.c selftests/kmod/rules.mk
	@mkdir -p $$(@D)
	$$(call say,CPP,$$@)$$(GUEST_CC_$(1)) $$(CSTD) $$(CPPFLAGS_COMMON) -E -P -o $$@ $$<
RULES_FILES_$(1) := selftests/loader/cases.sh $(RULES_SHSTK_$(1)) $(RULES_JUDGE_$(1)) \
	$(B)/selftests/kmod/$(1)/both.so $(RULES_THROW_$(1)) $(B)/selftests/kmod/$(1)/input.i \
	$(if $(filter x86,$(1)),$(B)/selftests/loader/libprotobuf-c.so.1 \
		$(B)/selftests/kmod/x86/rules_elfutils)
endef
# rules_elfutils is linked with all of the command except its main().
$(B)/selftests/kmod/x86/rules_elfutils: selftests/kmod/rules_elfutils.c $(TOOL_OBJ) \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -MMD -MP -o $@ $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.c %.o %.a,$^)) -pthread $(TOOL_LIBS)
$(foreach a,x86 arm64,$(eval $(call kmod_rules_files,$(a))))

# Writes the beginning of a guest's step, with the programs. $(1) is the guest, $(2) the
# architecture, $(3) the name of the folder, $(4) the seconds, $(5) how the guest's clock runs if
# not like this machine's.
define kmod_rules_begin
echo '#!/bin/sh'; \
echo "exec selftests/guest/run $(1) --out $(B)/guest/$(3) --memory 2048 \\"; \
echo "	--sysroot $(call RULES_ROOT,$(2)) --lib $(B)/selftests/loader --timeout $(4) \\"; \
echo "	$(if $(filter x86,$(2)),$(if $(5),,--cpus 2) --append nohpet) $(5) \\"; \
for p in $(RULES_PROGRAMS); do echo "	--prog programs-$(2):/usr/bin/$$p \\"; done; \
echo "	--prog programs-$(2):/usr/libexec/gcc/$(RULES_CC1_$(2))/14/cc1 \\"; \
echo "	--add $(call RULES_ROOT,$(2))/usr/lib/python3.13:/usr/lib/python3.13 \\"; \
echo "	--add $(call RULES_ROOT,$(2))/usr/share/nodejs:/usr/share/nodejs \\";
endef

# The files that a guest's step needs. $(1) is the guest, $(2) the architecture.
kmod_rules_module = $(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(1))))
kmod_rules_needs = $(if $(call guest_ready,$(1)),$(B)/guest/init-$(2) $(RULES_FILES_$(2)) \
	$(call kmod_rules_module,$(1)))

# Defines check-rules for a guest. $(1) is the guest, $(2) the architecture.
define kmod_rules_guest
$(B)/guest/check-rules-$(1): FORCE selftests/kmod/rules_programs.sh \
		$$$$(call kmod_rules_needs,$(1),$(2))
	@mkdir -p $$(@D)
	@{ $$(call kmod_rules_begin,$(1),$(2),rules-$(1),1500) \
	   echo "	--after csv=selftests/kmod/rules_csv \\"; \
	   echo "	'rules:without=selftests/kmod/rules_programs.sh without $(1) $(RULES_WORK_$(1)) $$(RULES_FILES_$(2))' \\"; \
	   echo "	$$(call kmod_rules_module,$(1)) \\"; \
	   echo "	'rules:with=selftests/kmod/rules_programs.sh with $(1) $(RULES_WORK_$(1))'"; } >$$@
	@chmod +x $$@
CHECK_RULES += $(B)/guest/check-rules-$(1)

$(B)/guest/rules-chains-$(1).sh: FORCE selftests/kmod/rules_programs.sh \
		$$$$(call kmod_rules_needs,$(1),$(2))
	@mkdir -p $$(@D)
	@{ $$(call kmod_rules_begin,$(1),$(2),rules-chains-$(1),360000) \
	   echo "	$$(call kmod_rules_module,$(1)) \\"; \
	   echo "	'chains=selftests/kmod/rules_programs.sh many=$$(CHAINS_SAMPLES) $(1) $$(CHAINS_WORK_$(1)) $$(RULES_FILES_$(2))'"; } >$$@
	@chmod +x $$@

$(B)/guest/check-first-$(1): FORCE selftests/kmod/rules_programs.sh \
		$$$$(call kmod_rules_needs,$(1),$(2))
	@mkdir -p $$(@D)
	@{ $$(call kmod_rules_begin,$(1),$(2),rules-first-$(1),3000,--icount) \
	   echo "	$$(call kmod_rules_module,$(1)) \\"; \
	   echo "	'first=selftests/kmod/rules_programs.sh first $(1) $$(FIRST_WORK_$(1)) $$(RULES_FILES_$(2))'"; } >$$@
	@chmod +x $$@
endef
$(foreach g,$(RULES_GUESTS),$(eval $(call kmod_rules_guest,$(g),$(firstword $(subst -, ,$(g))))))

# The guests of check-rules-cost have a clock that counts instructions, and one CPU.
RULES_COST_x86 := $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1
RULES_COST_arm64 := $(B)/selftests/record/arm64/shstk

# The guests in which it is measured what perf adds to a whole system, and the files for that.
RULES_SYSTEM := x86-qemu-7.2
RULES_SYSTEM_NEEDS := --prog programs-x86:/usr/bin/python3 --prog programs-x86:/usr/bin/perf \
	--add $(call RULES_ROOT,x86)/usr/lib/python3.13:/usr/lib/python3.13
# Writes the step for that. $(1) is the guest, $(2) is "without" or "with".
kmod_rules_system = $(if $(filter $(RULES_SYSTEM),$(1)),echo \
	"	'rules:system-$(2)=selftests/kmod/rules_system.sh $(2) $(1)' \\";)

# Defines check-rules-cost for a guest. $(1) is the guest, $(2) the architecture.
define kmod_rules_cost_guest
RULES_COST_FILES_$(2) := selftests/loader/cases.sh $(RULES_COST_$(2)) \
	$(B)/selftests/kmod/$(2)/rules_cost $(B)/selftests/kmod/$(2)/rules_cost_fp
$(B)/guest/check-rules-cost-$(1): FORCE selftests/kmod/rules_cost.sh \
		selftests/kmod/rules_system.sh \
		$$$$(if $$$$(call guest_ready,$(1)),$(B)/guest/init-$(2) $$(RULES_COST_FILES_$(2)) \
		$$$$(filter %/shstk_perf.ko,$$$$(KMOD_$(subst -qemu-,-,$(1)))))
	@mkdir -p $$(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/run $(1) --icount --out $(B)/guest/rules-cost-$(1) \\"; \
	   echo "	--sysroot $$(call RULES_ROOT,$(2)) --lib $(B)/selftests/loader --timeout 600 \\"; \
	   echo "	$(if $(filter x86,$(2)),--append nohpet) --after csv=selftests/kmod/rules_csv \\"; \
	   $(if $(filter $(RULES_SYSTEM),$(1)),echo "	$$(RULES_SYSTEM_NEEDS) \\";) \
	   echo "	'rules:cost-without=selftests/kmod/rules_cost.sh without $(1) $$(RULES_COST_FILES_$(2))' \\"; \
	   $$(call kmod_rules_system,$(1),without) \
	   echo "	$$(filter %/shstk_perf.ko,$$(KMOD_$(subst -qemu-,-,$(1)))) \\"; \
	   echo "	'rules:cost-with=selftests/kmod/rules_cost.sh with $(1)' \\"; \
	   $$(call kmod_rules_system,$(1),with) echo; } >$$@
	@chmod +x $$@
CHECK_RULES += $(B)/guest/check-rules-cost-$(1)
endef
$(foreach g,$(RULES_GUESTS),$(eval $(call kmod_rules_cost_guest,$(g),$(firstword $(subst -, ,$(g))))))

# A guest with many CPUs, of which each has memory of its own in the module.
CPUS_GUEST := x86-qemu-7.2
CPUS_NR ?= 64
CPUS_FILES := 2000
CPUS_SHSTK := $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1
CPUS_MODULE = $(filter %/shstk_perf.ko,$(KMOD_$(subst -qemu-,-,$(CPUS_GUEST))))
$(B)/guest/check-cpus: FORCE $$(if $$(call guest_ready,$(CPUS_GUEST)),$(B)/guest/init-x86 $(CPUS_SHSTK) \
		$(B)/selftests/kmod/x86/rules_test $(B)/selftests/kmod/x86/rules_many $$(CPUS_MODULE))
	@mkdir -p $(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/run $(CPUS_GUEST) --cpus $(CPUS_NR) --out $(B)/guest/cpus \\"; \
	   echo "	--memory 2048 --timeout 900 --append nohpet \\"; \
	   echo "	--sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader \\"; \
	   echo "	$(CPUS_MODULE) 'rules:many=$(B)/selftests/kmod/x86/rules_many $(CPUS_FILES)' \\"; \
	   echo "	'kmod:rules=$(B)/selftests/kmod/x86/rules_test $(CPUS_SHSTK)' -shstk_perf"; } >$@
	@chmod +x $@

check-cpus:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)+$(CHECK_MAKE) run-check-cpus
run-check-cpus: $(B)/guest/check-cpus
	$(Q)selftests/run --guests $<
check-rules:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup || $(SKIPPED)
	$(Q)+$(CHECK_MAKE) run-check-rules
run-check-rules: $(CHECK_RULES)
	$(Q)selftests/run --guests $(CHECK_RULES)
check-first:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)+$(CHECK_MAKE) run-check-first
run-check-first: $(FIRST_GUESTS:%=$(B)/guest/check-first-%)
	$(Q)selftests/run --guests $^
check-chains:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)+$(CHECK_MAKE) run-check-chains
run-check-chains: $(foreach g,$(CHAINS_GUESTS),$(B)/guest/rules-chains-$(g).sh)
	$(Q)$(foreach s,$^,$(s) || exit 1;)
.PHONY: check-cpus run-check-cpus check-rules run-check-rules check-first run-check-first check-chains run-check-chains
