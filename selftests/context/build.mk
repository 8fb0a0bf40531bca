# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of trace contexts that threads publish (tools/convert/contexts.h, bpf/context_walk.h).

CONTEXT_B	:= $(B)/selftests/context
CONTEXT_CFLAGS	:= $(CSTD) $(WARN) -D_GNU_SOURCE -I. -O1 -g

$(CONTEXT_B)/publish: selftests/context/publish.c selftests/context/variable.c selftests/context/variable.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CONTEXT_CFLAGS) -rdynamic -pthread -o $@ $(filter %.c,$^) -ldl

# The variable in a library, in each way in which code may reach it. Not every compiler knows the
# names of both dialects; then it has one of them.
context_dialect = $(shell for d in $(1); do if $(CC) -mtls-dialect=$$d -E -x c /dev/null >/dev/null 2>&1; \
	then echo -mtls-dialect=$$d; break; fi; done)
CONTEXT_FAR	:= -DFILLER=65536
$(CONTEXT_B)/desc.so $(CONTEXT_B)/desc_far.so $(CONTEXT_B)/desc_own.so: \
	CONTEXT_MODEL = $(call context_dialect,gnu2 desc)
$(CONTEXT_B)/gnu.so $(CONTEXT_B)/gnu_far.so $(CONTEXT_B)/gnu_own.so: \
	CONTEXT_MODEL = $(call context_dialect,gnu trad)
$(CONTEXT_B)/initial.so: CONTEXT_MODEL = -ftls-model=initial-exec
$(CONTEXT_B)/desc_far.so $(CONTEXT_B)/gnu_far.so: CONTEXT_MORE = $(CONTEXT_FAR)
$(CONTEXT_B)/desc_own.so $(CONTEXT_B)/gnu_own.so: CONTEXT_MORE = $(CONTEXT_FAR) -DOWN

CONTEXT_SO	:= $(patsubst %,$(CONTEXT_B)/%.so,desc desc_far desc_own gnu gnu_far gnu_own initial)
$(CONTEXT_SO): selftests/context/variable.c selftests/context/variable.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CONTEXT_CFLAGS) -fPIC -shared $(CONTEXT_MODEL) $(CONTEXT_MORE) -o $@ $<

# Where a library's variable is, with files of the test's own.
$(CONTEXT_B)/variable_test: selftests/context/variable_test.c \
		$(patsubst %,$(B)/tools/%.o,convert/context_variable elf/symbols) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(CONTEXT_B)/variable_test

selftests/context/context_test.py: | all $(CONTEXT_B)/publish $(CONTEXT_SO)

CHECK += $(if $(filter x86,$(ARCH)),selftests/context/context_test.py)
