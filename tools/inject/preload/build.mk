# SPDX-License-Identifier: GPL-2.0-or-later
#
# libshstk-start.so: the start-up object of `shstk run`. It is linked against nothing, so that it
# works with glibc and musl. libshstk-start-cet.so is the one for x86 C libraries that handle shadow
# stacks. It is marked as ready for them, because such a C library would leave them off otherwise.

START_x86 := start.c enable.c jump.S restorer.S patch.c context.c fault.c fault_x86.c settings.c find_mapping.c
START_CET := start_ready.c enable.c restorer.S fault.c fault_x86.c settings.c find_mapping.c
START_arm64 := start_ready.c fault.c fault_arm64.c settings.c find_mapping.c
START_CC_x86 := $(CC)
START_CC_arm64 := $(if $(filter arm64,$(ARCH)),$(CC),$(ARM64)gcc)
START_CFLAGS := $(CSTD) $(WARN) -D_GNU_SOURCE -fPIC -fvisibility=hidden \
	-fno-stack-protector -fexceptions -mgeneral-regs-only

# The caller's flags apply to the object for this machine; the other object is for tests.
START_OPT_$(ARCH) = $(OPT) -ffile-prefix-map=$(CURDIR)=. $(INJECTED_FLAGS)
START_FLAGS_x86 := -fcf-protection=full
START_FLAGS_arm64 := -mno-outline-atomics -mbranch-protection=standard

START_LDFLAGS = -shared -nostdlib -Wl,-soname,$(@F) -Wl,-z,now -Wl,-z,relro \
	-Wl,-z,noexecstack

# $(1) architecture
define start_object
$(B)/tools/inject/preload/$(1)/%.o: tools/inject/preload/% tools/inject/preload/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(START_CC_$(1)) $$(or $$(START_OPT_$(1)),-O2 -g) $$(START_CFLAGS) $$(START_FLAGS_$(1)) -MMD -MP -c -o $$@ $$<

$(B)/preload/$(1)/libshstk-start.so: $$(START_$(1):%=$(B)/tools/inject/preload/$(1)/%.o)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(START_CC_$(1)) $$(START_LDFLAGS) -o $$@ $$^
endef
$(foreach a,x86 arm64,$(eval $(call start_object,$(a))))

$(B)/libshstk-start.so: $(B)/preload/$(ARCH)/libshstk-start.so
	$(Q)cp $< $@

$(B)/libshstk-start-cet.so: $(START_CET:%=$(B)/tools/inject/preload/x86/%.o)
	$(call say,LD,$@)$(START_CC_x86) $(START_LDFLAGS) -Wl,-z,shstk -Wl,-z,ibt -o $@ $^

ifeq ($(ARCH),x86)
TOOL_OBJECTS += $(B)/libshstk-start-cet.so
endif
ifneq ($(filter x86 arm64,$(ARCH)),)
TOOL_OBJECTS += $(B)/libshstk-start.so
endif
