# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stacks of programs that treat their memory, their threads or their files in unusual ways: no stack
# may end too early, or be called complete when it is not.

STACKS := $(B)/selftests/stacks
STACKS_CC = $(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -fomit-frame-pointer -pthread

$(STACKS)/%: selftests/stacks/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(STACKS_CC) $($*_FLAGS) -o $@ $<

# With these options, the last page of the code is the first page of the data, too. The small
# program fits into one page, which is the first page of both.
SHARED_PAGE := -Wl,-z,noseparate-code,-z,norelro
executable_data_FLAGS := $(SHARED_PAGE)

$(STACKS)/executable_data_large: selftests/stacks/executable_data.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(STACKS_CC) $(SHARED_PAGE) -DROOM=20000 -o $@ $<

$(STACKS)/libreplaced.so: selftests/stacks/replaced_lib.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(STACKS_CC) -fPIC -fno-semantic-interposition -shared -Wl,-soname,$(@F) -o $@ $<

$(STACKS)/replaced: selftests/stacks/replaced.c $(STACKS)/libreplaced.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(STACKS_CC) -o $@ $^ -Wl,-rpath,'$$ORIGIN'

$(STACKS)/libprobed.so: selftests/stacks/probed_lib.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(STACKS_CC) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

$(STACKS)/probed: selftests/stacks/probed.c $(STACKS)/libprobed.so
	@mkdir -p $(@D)
	$(call say,LD,$@)$(STACKS_CC) -o $@ $^ -Wl,-rpath,'$$ORIGIN'

# Compilers split stacks on x86-64 only, if libgcc has what that takes.
split_stack_FLAGS = $(shell echo 'int main(void) { return 0; }' | $(CC) -fsplit-stack -x c -o /dev/null - \
	2>/dev/null && echo -fsplit-stack -DSPLIT)

$(STACKS)/coroutine_bare: selftests/stacks/coroutine.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(STACKS_CC) -DBARE -o $@ $<

STACKS_TARGETS := $(addprefix $(STACKS)/,executable_data executable_data_large \
	$(if $(filter x86,$(ARCH)),coroutine_bare) coroutine deep lower_stack moved_text mutexes no_info no_stop other_stack probed replaced split_stack)

selftests/stacks/stacks_test.py: | $(STACKS_TARGETS) all

CHECK += selftests/stacks/stacks_test.py
