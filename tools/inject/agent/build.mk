# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-agent.so, which `shstk record` preloads into its targets. It holds
# its own copy of the capture library, and exports nothing but its hooks.

AGENT_SRC	:= $(wildcard tools/inject/agent/*.c tools/inject/common/*.c)
AGENT_OBJ	:= $(AGENT_SRC:tools/%.c=$(B)/tools/%.o)

AGENT_CFLAGS	:= -U_FORTIFY_SOURCE -fPIC -fvisibility=hidden -fno-plt -ftls-model=initial-exec \
	-foptimize-sibling-calls -fasynchronous-unwind-tables
AGENT_LDFLAGS	:= -pthread -Wl,-soname,libshstk-agent.so -Wl,-z,now \
	-Wl,-z,relro -Wl,-z,defs -Wl,-z,nodelete -Wl,--exclude-libs,ALL -ldl

$(AGENT_OBJ): TOOL_CFLAGS += $(AGENT_CFLAGS)

$(B)/libshstk-agent.so: $(AGENT_OBJ) $(B)/libshstk.a
	$(call no_cancellation,$(AGENT_OBJ))
	$(call say,LD,$@)$(CC) $(OPT) -shared -o $@ $^ $(own_link) $(AGENT_LDFLAGS)
	$(own_mark)

TOOL_OBJECTS	+= $(B)/libshstk-agent.so
