# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-bpf.so: tables of unwind rules for the BPF programs of a loader.

BPF_LIB_OBJ	:= $(B)/bpf/server.o
BPF_LIB_MAP	:= libshstk/bpf/libshstk-bpf.map
BPF_LIB_LDFLAGS	:= -Wl,-soname,libshstk-bpf.so.0 -Wl,-z,defs -Wl,--version-script=$(BPF_LIB_MAP)

# BINDIR is set by packaging/build.mk, which is read later.
$(B)/bpf/%.o: libshstk/bpf/%.c libshstk/bpf/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(native_CC) $(LIB_CFLAGS) $(native_FLAGS) -DSHSTK_COMMAND='"$(BINDIR)/shstk"' \
		-MMD -MP -c -o $@ $<

$(B)/libshstk-bpf.so: $(BPF_LIB_OBJ) $(APART_OBJ) $(BPF_LIB_MAP)
	$(call say,LD,$@)$(call link_shared,$(BPF_LIB_LDFLAGS) $(filter %.o,$^) -lpthread)
	@ln -sf $(@F) $@.0

all: $(B)/libshstk-bpf.so
