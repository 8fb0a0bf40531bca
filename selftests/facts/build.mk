# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the facts on which the library and the modules rely. All architectures share one source,
# and the tests run in the guests that have shadow stacks. absent_test is for machines without and
# runs on this one.

FACTS_TESTS	:= control layout signal thread token fault access
FACTS_CFLAGS	:= $(CSTD) $(WARN) -Wno-missing-field-initializers -O2 -g \
	-D_GNU_SOURCE $(KSELFTEST_FLAGS)
# The tests' inline assembly pushes in leaf functions, so there must be no red zone.
FACTS_CFLAGS_x86 := -mno-red-zone
FACTS_CFLAGS_arm64 := -mbranch-protection=standard

# Argument: $(1) the architecture.
define facts_arch
$(B)/facts/$(1)/%: selftests/facts/%.c selftests/facts/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(FACTS_CFLAGS) $$(FACTS_CFLAGS_$(1)) \
		-Iselftests/facts/$(1) -static -pthread -MMD -MP -o $$@ $$<

GUEST_$(1) += $$(foreach t,$$(FACTS_TESTS),facts:$$(t)=$(B)/facts/$(1)/$$(t)_test)
endef
$(foreach a,x86 arm64 riscv,$(eval $(call facts_arch,$(a))))

CHECK += $(B)/facts/$(ARCH)/absent_test

# These are dynamic programs with a C library that switches shadow stacks on itself, glibc 2.43 for
# arm64. It needs libgcc_s for pthread_exit(). The second and the third file are not marked.
FACTS_GLIBC	:= $(addprefix $(B)/facts/arm64/,glibc_test glibc_plain libplain.so)
FACTS_FORKY	:= selftests/guest/in forky aarch64-linux-gnu-gcc $(FACTS_CFLAGS) \
	-mbranch-protection=standard -Iselftests/facts/arm64

$(B)/facts/arm64/glibc_test: selftests/facts/arm64/glibc_test.c selftests/facts/build.mk
	@mkdir -p $(@D)
	$(call say,GUESTCC,$@)$(FACTS_FORKY) -MMD -MP -o $@ $< \
		-Wl,--no-as-needed -lgcc_s
$(B)/facts/arm64/glibc_plain: selftests/facts/arm64/glibc_plain.c selftests/facts/build.mk
	@mkdir -p $(@D)
	$(call say,GUESTCC,$@)$(FACTS_FORKY) -Wl,-z,gcs=never -o $@ $<
$(B)/facts/arm64/libplain.so: selftests/facts/arm64/glibc_plain.c selftests/facts/build.mk
	@mkdir -p $(@D)
	$(call say,GUESTCC,$@)$(FACTS_FORKY) -Wl,-z,gcs=never -shared -fPIC -o $@ $<

ifneq ($(wildcard $(SHSTK_CACHE)/state/forky),)
GUEST_arm64-7.2 += facts:glibc=$(subst $() ,$(comma),$(FACTS_GLIBC))
$(B)/guest/check-arm64-7.2: $(FACTS_GLIBC)
endif
