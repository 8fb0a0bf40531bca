# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-symbolize.so: names for the addresses of shstk_capture(). It contains the parts of
# libshstk-symbol and libshstk that it needs; a program that uses it also loads elfutils.

SYMBOLIZE_MAP := libshstk/symbolize/libshstk-symbolize.map
SYMBOLIZE_LDFLAGS := -Wl,-soname,libshstk-symbolize.so.0 -Wl,-z,defs -Wl,--as-needed \
	-Wl,--version-script=$(SYMBOLIZE_MAP)

$(B)/symbolize/symbolize.o: libshstk/symbolize/symbolize.c libshstk/symbolize/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(native_CC) $(SYMBOL_CFLAGS) $(symbol_native_FLAGS) $(native_FLAGS) -MMD -MP -c -o $@ $<

$(B)/libshstk-symbolize.so: $(B)/symbolize/symbolize.o $(B)/symbol/native/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a $(SYMBOLIZE_MAP)
	$(call say,LD,$@)$(call link_shared,$(SYMBOLIZE_LDFLAGS) $(filter %.o %.a,$^) $(SYMBOL_LIBS) -lpthread -ldl)
	@ln -sf $(@F) $@.0

all: $(B)/libshstk-symbolize.so
