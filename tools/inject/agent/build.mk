# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-agent.so, which `shstk record` preloads into its targets. It contains its own copy of the
# capture library, and exports nothing but its hooks.

# It shortens deep stacks as the recorder does.
AGENT_SRC	:= $(sort $(wildcard tools/inject/agent/*.c tools/inject/common/*.c)) \
	tools/language/hidden_variable.c tools/language/python/versions.c tools/repeats.c
AGENT_OBJ	:= $(AGENT_SRC:tools/%.c=$(B)/tools/%.o)

# What the compiler cannot check about a buffer is checked when it is filled (common/anylibc.c).
INJECT_FORTIFY	:= -U_FORTIFY_SOURCE $(if $(filter-out -O0,$(filter -O%,$(OPT))),-D_FORTIFY_SOURCE=2)

AGENT_CFLAGS	:= $(INJECTED_FLAGS) $(INJECT_FORTIFY) \
	-fPIC -fvisibility=hidden -fno-plt -ftls-model=initial-exec \
	-foptimize-sibling-calls -fasynchronous-unwind-tables
AGENT_LDFLAGS	:= -pthread -Wl,-soname,libshstk-agent.so \
	-Wl,-z,defs -Wl,-z,nodelete -Wl,--exclude-libs,ALL -ldl

$(AGENT_OBJ): TOOL_CFLAGS += $(AGENT_CFLAGS)

$(B)/libshstk-agent.so: $(AGENT_OBJ) $(B)/lib/native/libshstk.a
	$(call no_cancellation,$(AGENT_OBJ))
	$(call say,LD,$@)$(call link_shared,$^ $(target_gcs_link) $(AGENT_LDFLAGS))
	$(target_gcs_mark)

# Nothing is recorded on other machines (tools/record/record.c).
ifneq ($(filter x86 arm64,$(ARCH)),)
TOOL_OBJECTS	+= $(B)/libshstk-agent.so
endif
