# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-heap.so, which `shstk record --heap` preloads into its targets. It contains its own copy
# of the capture library, and exports nothing but its hooks. It shortens deep stacks as the recorder
# does.

HEAP_SRC	:= $(sort $(wildcard tools/inject/heap/*.c)) \
	$(addprefix tools/inject/common/,anylibc.c env.c limits.c private.c python.c rawcall.c room.c sandbox_hook.c) \
	tools/language/hidden_variable.c tools/language/python/versions.c tools/repeats.c
HEAP_OBJ	:= $(HEAP_SRC:tools/%.c=$(B)/tools/heap-objects/%.o)

# -fno-builtin-...: the compiler must not turn malloc() followed by memset() into calloc() here.
HEAP_CFLAGS	:= $(INJECTED_FLAGS) $(INJECT_FORTIFY) \
	-fPIC -fvisibility=hidden -fno-plt -ftls-model=initial-exec \
	-fasynchronous-unwind-tables -fno-builtin-malloc -fno-builtin-calloc \
	-fno-builtin-realloc -fno-builtin-free
HEAP_LDFLAGS	:= -pthread -Wl,-soname,libshstk-heap.so \
	-Wl,-z,defs -Wl,-z,nodelete -Wl,-z,initfirst \
	-Wl,--exclude-libs,ALL -ldl

$(HEAP_OBJ): TOOL_CFLAGS += $(HEAP_CFLAGS)
$(B)/tools/heap-objects/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OWN_FLAGS) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libshstk-heap.so: $(HEAP_OBJ) $(B)/lib/native/libshstk.a
	$(call no_cancellation,$(HEAP_OBJ))
	$(call say,LD,$@)$(call link_shared,$^ $(target_gcs_link) $(HEAP_LDFLAGS))
	$(target_gcs_mark)

TOOL_OBJECTS	+= $(B)/libshstk-heap.so
