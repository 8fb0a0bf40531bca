# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-crash-preload.so: the handlers of libshstk-crash for programs that are not linked with it. It
# contains its own copy of that library, and exports nothing but its hook.

CRASH_PRELOAD_LDFLAGS := -pthread -Wl,-soname,libshstk-crash-preload.so -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,--exclude-libs,ALL -ldl

# What of glibc it uses, it does without where another C library has not got it (anylibc.c).
CRASH_PRELOAD_SRC := tools/inject/crash/preload.c tools/inject/common/anylibc.c
CRASH_PRELOAD_OBJ := $(CRASH_PRELOAD_SRC:tools/%.c=$(B)/crash/%.o)

$(B)/crash/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OWN_FLAGS) $(TOOL_CFLAGS) $(INJECTED_FLAGS) -fPIC \
		-fvisibility=hidden -fno-plt -MMD -MP -c -o $@ $<

$(B)/libshstk-crash-preload.so: $(CRASH_PRELOAD_OBJ) $(CRASH_LIB_OBJ) $(B)/libshstk.a
	$(call say,LD,$@)$(call link_shared,$^ $(target_gcs_link) $(CRASH_PRELOAD_LDFLAGS))
	$(target_gcs_mark)

TOOL_OBJECTS	+= $(B)/libshstk-crash-preload.so
