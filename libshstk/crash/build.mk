# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-crash.so: reports of a program's own crash. It contains the parts of libshstk that it
# needs.

# Starts a process that is no child, for other libraries as well.
APART_OBJ	:= $(B)/crash/apart.o
CRASH_LIB_OBJ	:= $(B)/crash/crash.o $(APART_OBJ)
CRASH_LIB_MAP	:= libshstk/crash/libshstk-crash.map
CRASH_LIB_LDFLAGS := -Wl,-soname,libshstk-crash.so.0 -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,--version-script=$(CRASH_LIB_MAP)

# BINDIR is set by packaging/build.mk, which is read later.
$(B)/crash/%.o: libshstk/crash/%.c libshstk/crash/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(native_CC) $(LIB_CFLAGS) $(native_FLAGS) -Ilibshstk/arch/$(native_ARCH) \
		-DCRASH_COMMAND='"$(BINDIR)/shstk"' -MMD -MP -c -o $@ $<

$(B)/libshstk-crash.so: $(CRASH_LIB_OBJ) $(B)/lib/native/libshstk.a $(CRASH_LIB_MAP)
	$(call no_cancellation,$(CRASH_LIB_OBJ))
	$(call say,LD,$@)$(call link_shared,$(CRASH_LIB_LDFLAGS) $(filter %.o %.a,$^) -lpthread -ldl)
	@ln -sf $(@F) $@.0

all: $(B)/libshstk-crash.so
