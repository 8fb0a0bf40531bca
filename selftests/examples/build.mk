# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of examples/: they are built and run on this machine as their comments say. The loader also
# runs in guests, which have shadow stacks.
#
#   make bench-hooks   measure what examples/hooks/ gain (Documentation/hooks.rst)

EXAMPLES_B := $(B)/selftests/examples
EXAMPLES_LIB_x86 := $(B)/lib/native/libshstk.a
EXAMPLES_LIB_arm64 := $(B)/lib/arm64/libshstk.a
EXAMPLES_CFLAGS := $(CSTD) $(WARN) -I. -Ilibshstk -O2 -g

$(EXAMPLES_B)/examples_test: selftests/examples/examples_test.sh $(wildcard examples/*.c) all man
	@mkdir -p $(@D)
	$(Q)cp $< $@

CHECK += $(EXAMPLES_B)/examples_test

# The hooks are built by the test itself, as their comments say.
selftests/examples/hooks_test.py: | all

CHECK += selftests/examples/hooks_test.py

bench-hooks: all
	$(Q)selftests/examples/hooks_cost.py

.PHONY: bench-hooks

# The loader is position independent, so that it is not where the programs that it loads must lie.
# $(1) architecture
define examples_guest
$(EXAMPLES_B)/$(1)/loader: examples/loader.c $$(EXAMPLES_LIB_$(1))
	@mkdir -p $$(@D)
	$$(call say,GUESTCC,$$@)$$(GUEST_CC_$(1)) $$(EXAMPLES_CFLAGS) -fPIE -static-pie -o $$@ $$^ \
		-pthread
$(EXAMPLES_B)/$(1)/loaded: selftests/examples/loaded.c tools/inject/preload/ssp.h \
		$$(EXAMPLES_LIB_$(1))
	@mkdir -p $$(@D)
	$$(call say,GUESTCC,$$@)$$(GUEST_CC_$(1)) $$(EXAMPLES_CFLAGS) -static -o $$@ \
		$$(filter %.c %.a,$$^) -pthread

GUEST_$(1) += examples:loader=$(EXAMPLES_B)/$(1)/loader,$(EXAMPLES_B)/$(1)/loaded,word
endef
$(foreach a,x86 arm64,$(eval $(call examples_guest,$(a))))
