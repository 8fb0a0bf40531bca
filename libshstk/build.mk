# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk: the capture library (libc only), and libshstk-symbol, what needs
# elfutils, protobuf-c and zlib.
#
# The library is compiled once per variant into $(B)/lib/VARIANT/. "native" is
# the one that is installed; the others exist for the tests.

LIB_CORE_SRC	:= $(wildcard libshstk/*.c libshstk/go/*.c libshstk/arch/*/*.c)
# A guest: in the archive only, where nothing of the core asks for it.
LIB_MARKER_SRC	:= $(wildcard libshstk/marker/*.c)
LIB_SYMBOL_SRC	:= $(wildcard libshstk/symbol/*.c)

LIB_CFLAGS := $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -fPIC -fvisibility=hidden \
	-fno-plt -ftls-model=initial-exec -fasynchronous-unwind-tables -fno-tree-slp-vectorize

# Whatever a capture can reach calls no cancellation point of the C library, which a
# handler must not; of the library's objects, these two work for their caller.
CANCELLABLE := %/address_space.o %/shadow_remote.o
# $(1) objects, or linked ones
no_cancellation = $(Q)$(NM) -A -u $(filter-out $(CANCELLABLE),$(1)) | \
	awk -f libshstk/cancellation.awk libshstk/cancellation.points -
CANCELLATION := libshstk/cancellation.awk libshstk/cancellation.points

VARIANTS := native clang arm64 riscv asan tsan musl
native_CC := $(CC)
native_FLAGS = $(OPT) $(OWN_FLAGS) $(BARE_FLAGS)
clang_CC := $(CLANG)
clang_FLAGS := -O2 -g
arm64_CC := $(ARM64)gcc
arm64_FLAGS := -O2 -g -mbranch-protection=standard
# Functions of the library do not push: compilers that know Zicfiss are new.
riscv_CC := $(RISCV)gcc
riscv_FLAGS := -O2 -g
asan_CC := $(CC)
asan_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
tsan_CC := $(CC)
tsan_FLAGS := -O1 -g -fsanitize=thread
# musl-tools has no kernel headers of its own.
musl_CC := musl-gcc
musl_FLAGS := -O2 -g -idirafter /usr/include \
	-idirafter /usr/include/$(MULTIARCH)
native_ARCH := $(ARCH)
musl_ARCH := $(ARCH)
clang_ARCH := $(ARCH)
asan_ARCH := $(ARCH)
tsan_ARCH := $(ARCH)
arm64_ARCH := arm64
riscv_ARCH := riscv

LIB_LDFLAGS := -Wl,-soname,libshstk.so.0 -Wl,-z,nodelete -Wl,--version-script=libshstk/libshstk.map
# The sanitizers' run time comes with the program.
NO_UNDEFINED := -Wl,-z,defs
$(foreach v,$(filter-out asan tsan,$(VARIANTS)),$(eval $(v)_LDFLAGS := $(NO_UNDEFINED)))
# $(1) objects and options, $(2) variant: the library of a variant that is not installed.
lib_link = $($(2)_CC) $($(2)_FLAGS) -shared -o $@ -Wl,-z,now -Wl,-z,relro $(1)

# $(1) variant
define lib_variant
$(1)_OBJ := $$(LIB_CORE_SRC:libshstk/%.c=$(B)/lib/$(1)/%.o)
$(1)_MARKER_OBJ := $$(LIB_MARKER_SRC:libshstk/%.c=$(B)/lib/$(1)/%.o)

$(B)/lib/$(1)/%.o: libshstk/%.c libshstk/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $$(LIB_CFLAGS) $$($(1)_FLAGS) \
		-Ilibshstk/arch/$$($(1)_ARCH) -MMD -MP -c -o $$@ $$<

$(B)/lib/$(1)/libshstk.a: $$($(1)_OBJ) $$($(1)_MARKER_OBJ) $(CANCELLATION)
	@rm -f $$@
	$$(call no_cancellation,$$($(1)_OBJ) $$($(1)_MARKER_OBJ))
	$$(call say,AR,$$@)$(AR) rcs $$@ $$($(1)_OBJ) $$($(1)_MARKER_OBJ)

$(B)/lib/$(1)/libshstk.so: $$($(1)_OBJ) libshstk/libshstk.map
	$$(call say,LD,$$@)$$(call $(if $(filter native,$(1)),link_shared,lib_link),\
		$$(LIB_LDFLAGS) $$($(1)_LDFLAGS) $$($(1)_OBJ) -lpthread -ldl,$(1))
	@ln -sf libshstk.so $$(@D)/libshstk.so.0
endef
$(foreach v,$(VARIANTS),$(eval $(call lib_variant,$(v))))

# In the archive that is installed, names that are not public have shstk_ in front
# too: a static program may call its own functions as it likes. Tests of the parts
# link the other one.
$(B)/libshstk.a: $(B)/lib/native/libshstk.a
	$(Q)$(NM) -g --defined-only $< | \
		awk 'NF == 3 && $$3 !~ /^shstk_/ { print $$3, "shstk_private_" $$3 }' >$(@:.a=.names)
	$(call say,AR,$@)$(OBJCOPY) --redefine-syms=$(@:.a=.names) $< $@

$(B)/libshstk.so: $(B)/lib/native/libshstk.so
	$(Q)cp $< $@
	$(Q)ln -sf libshstk.so $(B)/libshstk.so.0

all: $(B)/libshstk.a $(B)/libshstk.so

include libshstk/symbol/build.mk
include libshstk/go/symbolize/build.mk
include libshstk/symbolize/build.mk
