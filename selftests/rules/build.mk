# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk rules` as far as no module is needed: the cache, and the process that compiles.

RULES_B := $(B)/selftests/rules
$(RULES_B)/sandbox_test: selftests/rules/sandbox_test.c tools/rules/sandbox.c tools/rules/sandbox.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) \
		-o $@ $(filter %.c,$^)
$(RULES_B)/cache_test: selftests/rules/cache_test all
	@mkdir -p $(@D)
	$(Q)cp $< $@
CHECK += $(RULES_B)/sandbox_test $(RULES_B)/cache_test
