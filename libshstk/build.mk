# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds libshstk, the capture library (which needs libc only), and libshstk-symbol, which needs
# elfutils, protobuf-c and zlib.
#
# The library is compiled once for each variant into $(B)/lib/VARIANT/. The variant "native" is
# installed; the others are for the tests.

LIB_CORE_SRC	:= $(sort $(wildcard libshstk/*.c libshstk/go/*.c libshstk/arch/*/*.c))
# The marker is only in the archive, and nothing in the core of the library uses it.
LIB_MARKER_SRC	:= $(sort $(wildcard libshstk/marker/*.c))
LIB_SYMBOL_SRC	:= $(sort $(wildcard libshstk/symbol/*.c))

LIB_CFLAGS := $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -fPIC -fvisibility=hidden \
	-fno-plt -ftls-model=initial-exec -fasynchronous-unwind-tables -fno-tree-slp-vectorize

# Code that a capture can reach must not call a cancellation point of the C library, because a
# signal handler must not. The objects in CANCELLABLE are never used in a handler.
CANCELLABLE := %/address_space.o %/shadow_remote.o
# Checks that no object calls a cancellation point; $(1): objects or linked files.
no_cancellation = $(Q)$(NM) -A -u $(filter-out $(CANCELLABLE),$(1)) | \
	awk -f libshstk/cancellation.awk libshstk/cancellation.points -
CANCELLATION := libshstk/cancellation.awk libshstk/cancellation.points

VARIANTS := native clang arm64 riscv asan tsan musl
native_CC := $(CC)
native_FLAGS = $(OPT) $(OWN_FLAGS) $(INJECTED_FLAGS)
clang_CC := $(CLANG)
clang_FLAGS := -O2 -g
arm64_CC := $(ARM64)gcc
arm64_FLAGS := -O2 -g -mbranch-protection=standard
# Functions of this variant do not push to the shadow stack, because compilers that know Zicfiss are
# new.
riscv_CC := $(RISCV)gcc
riscv_FLAGS := -O2 -g
asan_CC := $(CC)
asan_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
tsan_CC := $(CC)
tsan_FLAGS := -O1 -g -fsanitize=thread
# musl-tools has no kernel headers of its own, so the system's are used.
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
# Sanitizer variants may have undefined symbols: the sanitizer's run time comes with the program.
NO_UNDEFINED := -Wl,-z,defs
$(foreach v,$(filter-out asan tsan,$(VARIANTS)),$(eval $(v)_LDFLAGS := $(NO_UNDEFINED)))
# Links the library of a variant that is not installed; $(1): objects and options, $(2): variant.
lib_link = $($(2)_CC) $($(2)_FLAGS) -shared -o $@ -Wl,-z,now -Wl,-z,relro $(1)

# The rules for one variant; $(1): variant.
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

# In the installed archive, private names get the prefix shstk_private_, so that a static program
# may use the same names for its own functions. Tests of parts of the library link the other
# archive.
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
include libshstk/crash/build.mk
include libshstk/bpf/build.mk
include libshstk/symbolize/build.mk
