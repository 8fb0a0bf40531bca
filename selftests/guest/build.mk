# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the init of the guests, one for each architecture, and one program for each guest, which
# runs the lists of selftests/build.mk in it.

GUESTS	:= x86-7.2 x86-6.12 x86-6.12-deb12 arm64-7.2 riscv-7.2
# These guests are fast and have two CPUs, but no shadow stacks. They run only the GUEST_x86-qemu
# lists.
QEMU_GUESTS := x86-qemu-7.2 x86-qemu-6.12 x86-qemu-6.12-rt x86-qemu-6.12-deb12
GUEST_OPTIONS_x86-qemu := --cpus 2
# The guests with Debian 13's PREEMPT_RT kernel and with Debian 12's kernel run only the steps that
# are listed for them by name.
GUEST_OPTIONS_x86-named := --cpus 2

GUEST_CC_x86 := $(CC)
GUEST_CC_arm64 := $(ARM64)gcc
GUEST_CC_riscv := $(if $(shell command -v riscv64-linux-gnu-gcc),,selftests/guest/in forky )riscv64-linux-gnu-gcc

$(B)/guest/init-%: selftests/guest/init.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(GUEST_CC_$*) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -static -o $@ $<

# Each word of a GUEST_ list has the form [NAME=]PROGRAM[,ARGUMENT...].
comma	:= ,
guest_arch = $(firstword $(subst -, ,$(1)))
guest_kind = $(if $(filter x86-qemu-%-rt x86-qemu-%-deb12,$(1)),x86-named,$(if $(filter x86-qemu-%,$(1)),x86-qemu,$(guest_arch)))
# Prints the files of this project that such a word names, because they have to be built first.
guest_file = $(filter $(B)/% selftests/%,$(subst =, ,$(subst $(comma), ,$(1))))
guest_name = $(if $(findstring =,$(1)),$(firstword $(subst =, ,$(1))),$(notdir $(firstword $(call guest_file,$(1)))))
guest_step = '$(1)'
# The same step under another name, which is run again after the modules are loaded.
guest_again = 'modules+$(call guest_name,$(1))=$(lastword $(subst =, ,$(1)))'

# These are evaluated in recipes and second expansion, when every fragment has been read.
guest_list = $(GUEST_$(call guest_kind,$(1))) $(GUEST_$(1))
guest_kmod = $(GUEST_KMOD_$(call guest_kind,$(1))) $(GUEST_KMOD_$(1))
guest_add = $(GUEST_ADD_$(call guest_kind,$(1)))
guest_steps = $(foreach s,$(call guest_list,$(1)),$(call guest_step,$(s))) \
	$(if $(GUEST_MODULES_$(1)),$(foreach m,$(GUEST_MODULES_$(1)),$(call guest_step,$(m))) \
	$(foreach s,$(call guest_kmod,$(1)),$(call guest_step,$(s))) \
	$(foreach s,$(filter upstream:%,$(call guest_list,$(1))),$(call guest_again,$(s))))
guest_options = $(foreach a,$(call guest_add,$(1)),--add $(a)) \
	$(foreach k,$(GUEST_KNOWN),--known $(k)) \
	$(foreach s,$(GUEST_STYLE),--style $(s) --style modules+$(s)) \
	$(GUEST_OPTIONS_$(call guest_kind,$(1))) $(GUEST_OPTIONS_$(1))
guest_files = $(foreach s,$(call guest_list,$(1)) $(call guest_kmod,$(1)) $(GUEST_MODULES_$(1)),\
	$(call guest_file,$(s))) $(foreach a,$(call guest_add,$(1)),$(firstword $(subst :/, ,$(a))))

# If parts of a guest are missing, nothing is built for it: its program then says what is missing,
# and is skipped.
guest_ready = $(if $(wildcard $(SHSTK_CACHE)/state/source),$(wildcard $(SHSTK_CACHE)/state/kernel-$(subst -qemu-,-,$(1))))

.SECONDEXPANSION:
$(patsubst %,$(B)/guest/check-%,$(GUESTS) $(QEMU_GUESTS)): $(B)/guest/check-%: FORCE \
		$$(if $$(call guest_ready,$$*),$(B)/guest/init-$$(call guest_arch,$$*) $$(call guest_files,$$*))
	@mkdir -p $(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/run $* $$(echo "$(strip $(call guest_options,$*))") \\"; \
	   printf '\t%s \\\n' $(foreach s,$(call guest_steps,$*),"$(subst $(comma), ,$(s))"); echo; } >$@
	@chmod +x $@
FORCE:

# Tests of the runner itself.
CHECK += selftests/guest/count_test.sh
CHECK_GUEST += $(if $(CHECK_GOALS),$(B)/guest/guest_test)

$(B)/guest/warn/warn.ko: selftests/guest/warn.c
	@mkdir -p $(@D)
	$(Q)cp $< $(@D)/ && echo 'obj-m := warn.o' >$(@D)/Kbuild
	$(call say,KBUILD,$@)selftests/guest/in trixie make -s \
		-C $$(cat $(SHSTK_CACHE)/kernels/arm64-7.2/headers) \
		ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- M=$(CURDIR)/$(@D) modules

$(B)/guest/guest_test: selftests/guest/guest_test.sh \
		$$(if $$(call guest_ready,arm64-7.2),$(B)/guest/warn/warn.ko $(B)/guest/init-arm64)
	@mkdir -p $(@D)
	@printf '#!/bin/sh\nexec selftests/guest/guest_test.sh %s\n' $(B)/guest/warn/warn.ko >$@
	@chmod +x $@

# Builds the files that selftests/guest/shell copies into a guest.
guest-files-%:
	@echo $(call guest_files,$*)

# User-mode emulation, for the tests that it can run correctly.
$(B)/guest/check-user-arm64: FORCE $$(if $$(wildcard $(SHSTK_CACHE)/state/source),\
		$$(foreach s,$$(USER_arm64),$$(call guest_file,$$(s))))
	@mkdir -p $(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/user arm64 $(foreach k,$(GUEST_KNOWN),--known $(k)) \\"; \
	   printf '\t%s \\\n' $(foreach s,$(USER_arm64),"'$(subst $(comma), ,$(s))'"); echo; } >$@
	@chmod +x $@

CHECK += $(if $(CHECK_GOALS),$(if $(USER_arm64),$(B)/guest/check-user-arm64))

CHECK_GUEST += $(if $(CHECK_GOALS),$(patsubst %,$(B)/guest/check-%,$(GUESTS) $(QEMU_GUESTS)))

run-check-arm64 run-check-x86 run-check-riscv: run-check-%: $$(filter $(B)/guest/check-$$*-$$(PERCENT),$$(CHECK_GUEST))
	$(Q)selftests/run --guests $^
PERCENT := %

.PHONY: FORCE run-check-arm64 run-check-x86 run-check-riscv

include selftests/bpf/guest.mk
include selftests/broker/guest.mk
