# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds libshstk-go-symbolize.so, which gives Go's runtime the names of C functions. It contains
# the parts of libshstk-symbol and libshstk that it needs; a program loads elfutils with it.

GOSYMBOLIZE_SRC := $(sort $(wildcard libshstk/go/symbolize/*.c))
GOSYMBOLIZE_MAP := libshstk/go/symbolize/libshstk-go-symbolize.map
GOSYMBOLIZE_LDFLAGS := -Wl,-soname,libshstk-go-symbolize.so.0 -Wl,-z,nodelete -Wl,-z,defs \
	-Wl,--as-needed -Wl,--version-script=$(GOSYMBOLIZE_MAP)

# $(1) variant
define gosymbolize_variant
gosymbolize_$(1)_OBJ := $$(GOSYMBOLIZE_SRC:libshstk/go/symbolize/%.c=$(B)/gosymbolize/$(1)/%.o)

$(B)/gosymbolize/$(1)/%.o: libshstk/go/symbolize/%.c libshstk/go/symbolize/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $$(SYMBOL_CFLAGS) $$(symbol_$(1)_FLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach v,native clang,$(eval $(call gosymbolize_variant,$(v))))

$(B)/libshstk-go-symbolize.so: $(gosymbolize_native_OBJ) $(B)/symbol/native/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a $(GOSYMBOLIZE_MAP)
	$(call say,LD,$@)$(call link_shared,$(GOSYMBOLIZE_LDFLAGS) $(filter %.o %.a,$^) $(SYMBOL_LIBS) -lpthread -ldl)
	@ln -sf $(@F) $@.0

all: $(B)/libshstk-go-symbolize.so
