# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make module     build the kernel modules into build/kmod/KREL/, for the running kernel and
#                   for all kernels of the guests whose headers are installed
#   make install-dkms  install the sources of the modules where DKMS finds them
#
# Kbuild builds in a shadow tree of symbolic links, so that the source tree stays clean. The headers
# of the guests' kernels, and the compilers for them, are in the directory that
# selftests/guest/setup creates.

KMOD_SRC := Kbuild $(sort $(wildcard kmod/Kbuild kmod/*.[ch] uapi/linux/*.h))
KMOD_NAMES := shstk shstk_perf
# Linux 6.1 has no shadow stacks: that guest is for BPF programs.
KMOD_GUESTS := $(filter-out %-6.1,$(patsubst $(SHSTK_CACHE)/kernels/%/version,%,$(wildcard \
	$(SHSTK_CACHE)/kernels/x86-*/version $(SHSTK_CACHE)/kernels/arm64-*/version)))
KMOD_RUNNING := $(if $(wildcard /lib/modules/$(shell uname -r)/build),$(shell uname -r))

# The arguments that Kbuild needs to build for a guest's kernel. $(1) is the guest, such as
# arm64-7.2.
kmod_krel = $(shell cat $(SHSTK_CACHE)/kernels/$(1)/version)
kmod_args = -C $(shell cat $(SHSTK_CACHE)/kernels/$(1)/headers) \
	$(if $(filter arm64-%,$(1)),ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)

# Builds the modules. $(1) is the output directory, $(2) is the Kbuild command with its arguments.
define kmod_build
	$(Q)rm -rf $(1)/tree && mkdir -p $(1)/tree
	$(Q)for f in $(KMOD_SRC); do mkdir -p $(1)/tree/$$(dirname $$f) && \
		ln -s $(CURDIR)/$$f $(1)/tree/$$f || exit 1; done
	$(Q)$(2) M=$(CURDIR)/$(1)/tree $(if $(V),V=1,-s)
	$(Q)cp $(1)/tree/kmod/*.ko $(1)/
	$(Q)touch $@
endef

# Defines the rules that build the modules for one guest. $(1) is the guest.
define kmod_guest
$(B)/kmod/$$(call kmod_krel,$(1))/.built: $(KMOD_SRC) kmod/build.mk $(SHSTK_CACHE)/kernels/$(1)/version
	$$(call say,KBUILD,$$(@D))
	$$(call kmod_build,$$(@D),selftests/guest/in trixie make $$(call kmod_args,$(1)))
KMOD_BUILT += $(B)/kmod/$$(call kmod_krel,$(1))/.built
KMOD_$(1) := $$(patsubst %,$(B)/kmod/$$(call kmod_krel,$(1))/%.ko,$(KMOD_NAMES) $(if $(filter x86-%,$(1)),shstk_prctl))
$$(KMOD_$(1)): $(B)/kmod/$$(call kmod_krel,$(1))/.built ;
endef
$(foreach g,$(KMOD_GUESTS),$(eval $(call kmod_guest,$(g))))

# Builds the modules for the debug kernels that selftests/debug/kernel makes.
kmod_debug = -C $(SHSTK_CACHE)/debug-$(1)/linux \
	$(if $(filter arm64,$(1)),ARCH=arm64 CROSS_COMPILE=$(ARM64)) $(if $(filter %-clang,$(1)),LLVM=-19)
define kmod_debug_rule
$(B)/kmod/debug-$(1)/.built: $(KMOD_SRC) kmod/build.mk $(wildcard $(SHSTK_CACHE)/debug-$(1)/done)
	$$(call say,KBUILD,$$(@D))
	$$(call kmod_build,$$(@D),$$(MAKE) $$(call kmod_debug,$(1)))
endef
$(foreach a,arm64 x86 x86-clang,$(eval $(call kmod_debug_rule,$(a))))

ifneq ($(KMOD_RUNNING),)
$(B)/kmod/$(KMOD_RUNNING)/.built: $(KMOD_SRC) kmod/build.mk
	$(call say,KBUILD,$(@D))
	$(call kmod_build,$(@D),$(MAKE) -C /lib/modules/$(KMOD_RUNNING)/build)
KMOD_BUILT += $(B)/kmod/$(KMOD_RUNNING)/.built
endif

ifneq ($(KMOD_BUILT),)
module: $(KMOD_BUILT)
else
module:
	@echo "no kernel headers here: install linux-headers-$$(uname -r), or run selftests/guest/setup" >&2; exit 1
endif

install-dkms:
	$(Q)for f in $(KMOD_SRC); do \
		install -D -m 644 $$f $(DESTDIR)/usr/src/shstk-$(VERSION)/$$f || exit 1; done
	$(Q)sed 's/@VERSION@/$(VERSION)/' kmod/dkms.conf >$(DESTDIR)/usr/src/shstk-$(VERSION)/dkms.conf
	@echo "now: dkms install shstk/$(VERSION)"

.PHONY: module install-dkms
