# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-backtrace.so: backtrace() and similar functions, served by libshstk. It contains its own
# copy of the capture library, and exports nothing but its hooks.

BACKTRACE_SRC	:= $(sort $(wildcard tools/inject/backtrace/*.c)) tools/inject/common/anylibc.c
BACKTRACE_OBJ	:= $(BACKTRACE_SRC:tools/%.c=$(B)/tools/backtrace-objects/%.o)

BACKTRACE_CFLAGS	:= $(INJECTED_FLAGS) -fPIC -fvisibility=hidden -fno-plt \
	-ftls-model=initial-exec -fasynchronous-unwind-tables \
	-foptimize-sibling-calls
BACKTRACE_LDFLAGS	:= -pthread -Wl,-soname,libshstk-backtrace.so \
	-Wl,-z,defs -Wl,-z,nodelete -Wl,--exclude-libs,ALL -ldl

$(BACKTRACE_OBJ): TOOL_CFLAGS += $(BACKTRACE_CFLAGS)
$(B)/tools/backtrace-objects/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OWN_FLAGS) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libshstk-backtrace.so: $(BACKTRACE_OBJ) $(B)/libshstk.a
	$(call no_cancellation,$(BACKTRACE_OBJ))
	$(call say,LD,$@)$(call link_shared,$^ $(target_gcs_link) $(BACKTRACE_LDFLAGS))
	$(target_gcs_mark)

TOOL_OBJECTS	+= $(B)/libshstk-backtrace.so
