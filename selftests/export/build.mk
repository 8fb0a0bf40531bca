# SPDX-License-Identifier: GPL-2.0-or-later
#
# Names and profile formats: scripts that drive libshstk-symbol through driver.c and read the
# results back by other programs. Every case runs with the library as it is installed and with
# address and undefined-behaviour sanitizers.

EXPORT_B := $(B)/selftests/export

# $(call export_driver,VARIANT) defines the rule of the driver for one variant of the library.
define export_driver
$(EXPORT_B)/driver-$(1): selftests/export/driver.c $(B)/symbol/$(1)/libshstk-symbol.a $(B)/lib/$(1)/libshstk.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$($(1)_CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) \
		$$($(1)_FLAGS) -MMD -MP -o $$@ $$< $(B)/symbol/$(1)/libshstk-symbol.a \
		$(B)/lib/$(1)/libshstk.a $(SYMBOL_LIBS)
endef
$(foreach v,native clang asan,$(eval $(call export_driver,$(v))))

# The driver with sanitizers, in which one allocation fails.
FAIL_WRAP := malloc calloc realloc reallocarray vasprintf asprintf
$(EXPORT_B)/driver-fail: selftests/export/driver.c selftests/export/fail.c $(B)/symbol/asan/libshstk-symbol.a \
		$(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(asan_CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(asan_FLAGS) \
		$(FAIL_WRAP:%=-Wl,--wrap=%) -o $@ $^ $(SYMBOL_LIBS)

# A test of the public library, built as its users build.
$(EXPORT_B)/symbolize_test: selftests/export/symbolize_test.c $(B)/libshstk-symbolize.so $(B)/libshstk.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g -Ilibshstk -MMD -MP -o $@ $< \
		-L$(B) -lshstk-symbolize -lshstk -Wl,-rpath,'$$ORIGIN/../..'

CHECK += $(EXPORT_B)/symbolize_test

$(EXPORT_B)/dlang_test $(EXPORT_B)/haskell_test $(EXPORT_B)/long_names_test $(EXPORT_B)/target_test: $(EXPORT_B)/%: selftests/export/%.c $(B)/symbol/asan/libshstk-symbol.a $(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(asan_CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(asan_FLAGS) -MMD -MP -o $@ $< \
		$(B)/symbol/asan/libshstk-symbol.a $(B)/lib/asan/libshstk.a $(SYMBOL_LIBS)

CHECK += $(EXPORT_B)/dlang_test $(EXPORT_B)/haskell_test $(EXPORT_B)/long_names_test $(EXPORT_B)/target_test

$(EXPORT_B)/build_id_test $(EXPORT_B)/entries_test $(EXPORT_B)/known_names_test $(EXPORT_B)/plt_test $(EXPORT_B)/readers_test: $(EXPORT_B)/%: selftests/export/%.c $(B)/symbol/asan/libshstk-symbol.a $(B)/lib/asan/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(asan_CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) $(asan_FLAGS) -MMD -MP \
		-o $@ $< $(B)/symbol/asan/libshstk-symbol.a $(B)/lib/asan/libshstk.a $(SYMBOL_LIBS)

CHECK += $(EXPORT_B)/build_id_test $(EXPORT_B)/entries_test $(EXPORT_B)/known_names_test $(EXPORT_B)/plt_test $(EXPORT_B)/readers_test

EXPORT_TESTS := selftests/export/symbol_test.py selftests/export/export_test.py \
	selftests/export/viewers_test.py selftests/export/speedscope_test.py \
	selftests/export/debuginfod_test.py selftests/export/costly_test.py

$(EXPORT_TESTS): | $(foreach v,native clang asan fail,$(EXPORT_B)/driver-$(v))
selftests/export/viewers_test.py: | $(B)/shstk

CHECK += $(EXPORT_TESTS)
