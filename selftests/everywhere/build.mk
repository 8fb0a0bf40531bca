# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the library in unusual surroundings: its global names; several copies of it in one
# process, also closed again; far more frames, threads and modules than usual; without memory;
# linked in every way.

EVERY := $(B)/selftests/everywhere
EVERY_CFLAGS := $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 -g $(KSELFTEST_FLAGS) -Wno-unused-parameter

$(EVERY)/%_test: selftests/everywhere/%_test.c $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(EVERY_CFLAGS) -MMD -MP -o $@ $< $(B)/libshstk.a -pthread $(EVERY_LIBS)

$(EVERY)/copies_test: $(EVERY)/copies_plugin.so $(B)/libshstk.so
$(EVERY)/copies_test: EVERY_LIBS := -Wl,-rpath,$(abspath $(B)),-rpath,$(abspath $(EVERY))

$(EVERY)/copies_plugin.so: selftests/everywhere/copies_plugin.c $(B)/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(EVERY_CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ $< $(B)/libshstk.a

$(EVERY)/scale_test: $(EVERY)/scale_plugin.so
$(EVERY)/scale_test: EVERY_LIBS := -DSCALE_PLUGIN='"$(EVERY)/scale_plugin.so"'

$(EVERY)/scale_plugin.so: selftests/everywhere/scale_plugin.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(EVERY_CFLAGS) -fPIC -shared -nostdlib -o $@ $<

EVERY_WRAP := malloc calloc reallocarray strdup free fopen fclose __getdelim getline mmap munmap
$(EVERY)/fail_test: EVERY_LIBS := $(EVERY_WRAP:%=-Wl,--wrap=%)

$(EVERY)/arm64/fail_test: selftests/everywhere/fail_test.c $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(ARM64)gcc $(EVERY_CFLAGS) $(arm64_FLAGS) -static -o $@ $^ -pthread \
		$(EVERY_WRAP:%=-Wl,--wrap=%)

selftests/everywhere/names_test.sh: | $(B)/libshstk.a $(B)/libshstk.so $(B)/libshstk-symbol.a

CHECK += selftests/everywhere/names_test.sh $(EVERY)/copies_test $(EVERY)/scale_test $(EVERY)/fail_test
USER_arm64 += $(EVERY)/arm64/fail_test

# The capture tests in programs of every kind: static or dynamic, at a fixed address or position
# independent. With musl the program is dynamic here, and static in selftests/capture.
KINDS := static static-pie no-pie
static_KIND := -static -no-pie
static-pie_KIND := -static-pie -fPIE
no-pie_KIND := -no-pie -fno-pie

# $(1) kind, $(2) variant of the library, $(3) folder
define every_kind
$(EVERY)/$(3)/%_test: selftests/capture/%_test.c selftests/capture/tree.c $(B)/lib/$(2)/libshstk.a
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(2)_CC) $$(CSTD) $$(EVERY_CFLAGS) -fomit-frame-pointer -Wno-sign-compare \
		-Wno-clobbered $$($(2)_FLAGS) $$($(1)_KIND) -o $$@ $$^ -pthread
endef
$(foreach k,$(KINDS),$(eval $(call every_kind,$(k),native,$(k))))
$(eval $(call every_kind,static-pie,arm64,arm64-static-pie))

$(EVERY)/musl/musl_test: selftests/capture/musl_test.c selftests/capture/tree.c $(B)/lib/musl/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(musl_CC) $(CSTD) $(EVERY_CFLAGS) -Wno-sign-compare $(musl_FLAGS) -o $@ $^

CHECK += $(KINDS:%=$(EVERY)/%/capture_test) $(EVERY)/static/signal_test $(EVERY)/musl/musl_test
USER_arm64 += $(EVERY)/arm64-static-pie/capture_test

# Tests that programs built here also run with the C libraries of later releases.
GLIBC_TESTS := $(B)/capture/native/capture_test $(B)/capture/native/module_test \
	$(EVERY)/copies_test

$(EVERY)/glibc_test: selftests/everywhere/glibc.sh $(GLIBC_TESTS)
	$(Q)printf '#!/bin/sh\nexec selftests/everywhere/glibc.sh $(GLIBC_TESTS)\n' >$@
	$(Q)chmod +x $@

CHECK += $(EVERY)/glibc_test
