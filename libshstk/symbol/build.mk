# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-symbol.a: names for addresses, profiles and their formats. A program that links it also
# needs libshstk.a and $(SYMBOL_LIBS).

SYMBOL_SRC	:= $(sort $(wildcard libshstk/symbol/*.c))
SYMBOL_GEN	:= $(B)/symbol/gen
SYMBOL_LIBS	:= -ldw -lelf -liberty -lprotobuf-c -llzma -lz -lzstd

SYMBOL_CFLAGS	:= $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -fPIC -fvisibility=hidden \
	-I$(SYMBOL_GEN)

SYMBOL_PROTO	:= profile otlp
SYMBOL_PROTO_H	:= $(SYMBOL_PROTO:%=$(SYMBOL_GEN)/%.pb-c.h)

define symbol_proto
$(SYMBOL_GEN)/$(1).pb-c.c $(SYMBOL_GEN)/$(1).pb-c.h &: libshstk/symbol/$(1).proto
	@mkdir -p $$(@D)
	$$(call say,GEN,$$@)protoc-c --c_out=$(SYMBOL_GEN) -Ilibshstk/symbol $$<
endef
$(foreach p,$(SYMBOL_PROTO),$(eval $(call symbol_proto,$(p))))

symbol_native_FLAGS = $(OPT) $(OWN_FLAGS) $(HARDENED)
symbol_clang_FLAGS = $(clang_FLAGS)
symbol_asan_FLAGS = $(asan_FLAGS)

# $(call symbol_variant,VARIANT) defines the rules of one variant of the library.
define symbol_variant
symbol_$(1)_OBJ := $$(SYMBOL_SRC:libshstk/symbol/%.c=$(B)/symbol/$(1)/%.o) \
	$(SYMBOL_PROTO:%=$(B)/symbol/$(1)/%.pb-c.o)

$(B)/symbol/$(1)/%.o: libshstk/symbol/%.c libshstk/symbol/build.mk | $(SYMBOL_PROTO_H)
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $$(SYMBOL_CFLAGS) $$(symbol_$(1)_FLAGS) -MMD -MP -c -o $$@ $$<

$(B)/symbol/$(1)/%.pb-c.o: $(SYMBOL_GEN)/%.pb-c.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $$(SYMBOL_CFLAGS) $$(symbol_$(1)_FLAGS) -c -o $$@ $$<

$(B)/symbol/$(1)/otlp.o: SYMBOL_CFLAGS += -DSHSTK_VERSION='"$(VERSION)"'
$(B)/symbol/$(1)/export_flamegraph.o: libshstk/symbol/flamegraph.js
$(B)/symbol/$(1)/export_page.o: $$(sort $$(wildcard libshstk/symbol/page/*))

$(B)/symbol/$(1)/libshstk-symbol.a: $$(symbol_$(1)_OBJ)
	@rm -f $$@
	$$(call say,AR,$$@)$(AR) rcs $$@ $$^
endef
$(foreach v,native clang asan,$(eval $(call symbol_variant,$(v))))

$(B)/libshstk-symbol.a: $(B)/symbol/native/libshstk-symbol.a
	$(Q)cp $< $@

all: $(B)/libshstk-symbol.a
