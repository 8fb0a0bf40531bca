# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the kernel modules, for the guests. First it is tested what holds without the modules,
# then they are loaded and it is tested what they change.

KMOD_TEST_CFLAGS := $(CSTD) $(WARN) -Wno-missing-field-initializers -O2 -g \
	-fomit-frame-pointer -D_GNU_SOURCE -Iselftests/kmod -Iselftests/facts \
	-I. -Iuapi -Ilibshstk $(KSELFTEST_FLAGS)

CHECK += selftests/kmod/source_test.sh

kmod_space := $() $()

# Defines the tests of an architecture. $(1) is the architecture, $(2) the variant of libshstk, $(3)
# the milliseconds of each race, $(4) the seconds of fuzzing, both by the guest's clock.
define kmod_tests
# The lists in control.h test the generic calls; other sources test everything else.
$(B)/selftests/kmod/$(1)/prctl_test: selftests/facts/control_test.c selftests/kmod/control.h \
		selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-static -MMD -MP -o $$@ $$<

$(B)/selftests/kmod/$(1)/%_test: selftests/kmod/%_test.c selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-static -pthread -MMD -MP -o $$@ $$<

$(B)/selftests/kmod/$(1)/device_test: selftests/kmod/device_test.c libshstk/device.c \
		selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-static -pthread -MMD -MP -o $$@ $$(filter %.c,$$^)

$(B)/selftests/kmod/$(1)/device_fuzz $(B)/selftests/kmod/$(1)/rules_fuzz $(B)/selftests/kmod/$(1)/rules_many: \
		$(B)/selftests/kmod/$(1)/%: selftests/kmod/%.c selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-static -pthread -MMD -MP -o $$@ $$<

$(B)/selftests/kmod/$(1)/witness.so: selftests/kmod/witness.c $(B)/lib/$(2)/libshstk.a \
		selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -fno-omit-frame-pointer \
		-fPIC -shared -MMD -MP -o $$@ $$(filter %.c %.a,$$^) -ldl -pthread

$(B)/selftests/kmod/$(1)/bounds_test: selftests/kmod/bounds_test.c $(B)/lib/$(2)/libshstk.a \
		selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-static -pthread -MMD -MP -o $$@ $$(filter %.c %.a,$$^)

GUEST_$(1) += kmod:without:bounds=$(B)/selftests/kmod/$(1)/bounds_test
GUEST_KMOD_$(1) += kmod:bounds=$(B)/selftests/kmod/$(1)/bounds_test
GUEST_$(1) += kmod:without:perf=$(B)/selftests/kmod/$(1)/perf_test
GUEST_KMOD_$(1) += kmod:perf=$(B)/selftests/kmod/$(1)/perf_test
GUEST_KMOD_$(1) += kmod:prctl=$(B)/selftests/kmod/$(1)/prctl_test
GUEST_KMOD_$(1) += kmod:map=$(B)/selftests/kmod/$(1)/map_test
GUEST_KMOD_$(1) += kmod:device=$(B)/selftests/kmod/$(1)/device_test
GUEST_KMOD_$(1) += kmod:pointer=$(B)/selftests/kmod/$(1)/pointer_test
GUEST_KMOD_$(1) += kmod:stall=$(B)/selftests/kmod/$(1)/stall_test
GUEST_KMOD_$(1) += kmod:replaced=$(B)/selftests/kmod/$(1)/replaced_test
GUEST_KMOD_$(1) += kmod:race=$(B)/selftests/kmod/$(1)/race_test,$(3)
GUEST_KMOD_$(1) += kmod:fuzz=$(B)/selftests/kmod/$(1)/device_fuzz,$(4)
endef
$(eval $(call kmod_tests,x86,native,15,0.2))
$(eval $(call kmod_tests,arm64,arm64,300,5))

# BPF programs and their loaders. They are linked on x86 with the static libbpf of this system, for
# arm64 with that of the cache.
$(B)/selftests/kmod/%.bpf.o: selftests/kmod/%.bpf.c selftests/kmod/build.mk
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) -target bpf -O2 -g -Wall -I/usr/include/x86_64-linux-gnu \
		-Iselftests/kmod -MMD -MP -c -o $@ $<

KMOD_LIBBPF := $(SHSTK_CACHE)/libbpf-arm64/usr
KMOD_LIBS := $(SHSTK_CACHE)/root-arm64/usr/lib/aarch64-linux-gnu
KMOD_BPF_x86 := $(if $(wildcard /usr/include/bpf/libbpf.h),yes)
KMOD_BPF_arm64 := $(and $(wildcard $(KMOD_LIBBPF)/include/bpf/libbpf.h),$(wildcard $(KMOD_LIBS)/libelf.so.1))
KMOD_BPF_CC_x86 := $(CC) -static
KMOD_BPF_CC_arm64 := selftests/guest/in trixie aarch64-linux-gnu-gcc -isystem $(KMOD_LIBBPF)/include
KMOD_BPF_LIBS_x86 := -lbpf -lelf -lz
KMOD_BPF_LIBS_arm64 := $(KMOD_LIBBPF)/lib/aarch64-linux-gnu/libbpf.a \
	$(KMOD_LIBS)/libelf.so.1 $(KMOD_LIBS)/libz.so.1 -Wl,--allow-shlib-undefined

# Links the BPF loaders of an architecture. $(1) is the architecture.
define kmod_bpf
$(B)/selftests/kmod/$(1)/kfunc_test $(B)/selftests/kmod/$(1)/bpf_test \
		$(B)/selftests/kmod/$(1)/lsm_test $(B)/selftests/kmod/$(1)/rules_bpf_test \
		$(B)/selftests/kmod/$(1)/entering_test: \
		$(B)/selftests/kmod/$(1)/%: selftests/kmod/%.c selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$(KMOD_BPF_CC_$(1)) $$(KMOD_TEST_CFLAGS) -Iselftests/facts/$(1) \
		-MMD -MP -o $$@ $$< $(KMOD_BPF_LIBS_$(1))
GUEST_KMOD_$(1) += kmod:kfunc=$(B)/selftests/kmod/$(1)/kfunc_test,$(B)/selftests/kmod/offcpu.bpf.o
GUEST_KMOD_$(1) += kmod:lsm=$(B)/selftests/kmod/$(1)/lsm_test,$(B)/selftests/kmod/lsm.bpf.o
endef
$(foreach a,x86 arm64,$(if $(KMOD_BPF_$(a)),$(eval $(call kmod_bpf,$(a)))))

# NMIs are also made in Bochs. Their module is removed again afterwards.
GUEST_KMOD_x86-6.12 += $(if $(KMOD_BPF_x86),$(B)/selftests/kmod/nmi/x86-6.12/shstk_nmi.ko \
	kmod:entering=$(B)/selftests/kmod/x86/entering_test$(comma)$(B)/selftests/kmod/entering.bpf.o \
	-shstk_nmi)

# Debian's own perf and programs. The fragment of loader/ says where these are in the guest anyway.
KMOD_WITNESS_x86 = $(B)/selftests/kmod/x86/witness.so $(B)/shstk $(B)/libshstk-start.so
KMOD_WITNESS_arm64 = $(B)/selftests/kmod/arm64/witness.so
kmod_words = $(subst $(kmod_space),$(comma),$(strip $(1)))

# Only bpf_test shows what the kernel finds without the module: in Bochs one program with perf takes
# half a minute, and Debian's programs for arm64 have frame pointers. Run stock_test by hand to see
# it.
KMOD_STOCK_x86 = kmod:stock=$(call kmod_words,$(B)/selftests/kmod/x86/stock_test $(KMOD_WITNESS_x86) sqlite3)
KMOD_STOCK_arm64 = kmod:stock=$(call kmod_words,$(B)/selftests/kmod/arm64/stock_test $(KMOD_WITNESS_arm64))
KMOD_STOCK_BPF = $(if $(KMOD_BPF_$(1)),kmod:bpf=$(call kmod_words,$(B)/selftests/kmod/$(1)/bpf_test \
	$(B)/selftests/kmod/stack.bpf.o $(KMOD_WITNESS_$(1))))
kmod_without = $(1:kmod:%=kmod:without:%)

# The command for arm64 exists if there are libraries for it: see selftests/record.
KMOD_SHSTK_arm64 := selftests/loader/cases.sh $(B)/selftests/record/arm64/shstk \
	$(B)/preload/arm64/libshstk-start.so
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64),)
GUEST_KMOD_arm64-7.2 += kmod:events=$(call kmod_words,selftests/kmod/events.sh \
	$(KMOD_SHSTK_arm64) $(B)/selftests/loader/arm64/violate)
GUEST_KMOD_arm64-7.2 += kmod:running=$(call kmod_words,selftests/kmod/running.sh \
	$(KMOD_SHSTK_arm64) $(B)/selftests/offline/arm64/stand)
endif

GUEST_KMOD_arm64-7.2 += $(KMOD_STOCK_arm64) $(call KMOD_STOCK_BPF,arm64)
GUEST_arm64-7.2 += $(call kmod_without,$(call KMOD_STOCK_BPF,arm64))
GUEST_OPTIONS_arm64-7.2 += --prog root-arm64:/usr/bin/perf
ifeq ($(ARCH),x86)
GUEST_KMOD_x86-6.12 += $(KMOD_STOCK_x86) $(call KMOD_STOCK_BPF,x86)
GUEST_x86-6.12 += $(call kmod_without,$(call KMOD_STOCK_BPF,x86))
GUEST_KMOD_x86-6.12 += kmod:events=$(call kmod_words,selftests/kmod/events.sh \
	selftests/loader/cases.sh $(B)/shstk $(B)/libshstk-start.so $(B)/selftests/loader/violate)
GUEST_OPTIONS_x86-6.12 += --prog root-x86:/usr/bin/perf
endif

# Builds rules_cost with frame pointers and without them. $(1) is the architecture.
define kmod_cost
$(B)/selftests/kmod/$(1)/rules_cost: selftests/kmod/rules_cost.c selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -static -o $$@ $$<
$(B)/selftests/kmod/$(1)/rules_cost_fp: selftests/kmod/rules_cost.c selftests/kmod/build.mk
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$(GUEST_CC_$(1)) $$(KMOD_TEST_CFLAGS) -fno-omit-frame-pointer \
		-static -o $$@ $$<
endef
$(foreach a,x86 arm64,$(eval $(call kmod_cost,$(a))))

# Unwind rules need no shadow stacks. The command that compiles them is copied into the guest, with
# one library that the guests' folder does not have.
ifneq ($(wildcard $(SHSTK_CACHE)/root-arm64),)
GUEST_KMOD_arm64-7.2 += kmod:rules=$(call kmod_words,$(B)/selftests/kmod/arm64/rules_test \
	$(B)/selftests/record/arm64/shstk)
GUEST_KMOD_arm64-7.2 += kmod:rules-miss=$(B)/selftests/kmod/arm64/rules_miss_test
GUEST_KMOD_arm64-7.2 += $(B)/selftests/kmod/overlay/arm64-7.2/overlay.ko
GUEST_KMOD_arm64-7.2 += kmod:rules-change=$(B)/selftests/kmod/arm64/rules_change_test
GUEST_KMOD_arm64-7.2 += kmod:rules-frames=$(call kmod_words,$(B)/selftests/kmod/arm64/rules_frames_test \
	$(B)/selftests/record/arm64/shstk)
GUEST_KMOD_arm64-7.2 += kmod:rules-hostile=$(call kmod_words,$(B)/selftests/kmod/arm64/rules_hostile_test 2 1 \
	$(B)/selftests/record/arm64/shstk)
GUEST_KMOD_arm64-7.2 += kmod:rules-fuzz=$(call kmod_words,$(B)/selftests/kmod/arm64/rules_fuzz 2 1 \
	$(B)/selftests/record/arm64/shstk)
GUEST_KMOD_arm64-7.2 += $(if $(KMOD_BPF_arm64),kmod:rules-bpf=$(call kmod_words,$(B)/selftests/kmod/arm64/rules_bpf_test \
	$(B)/selftests/kmod/rules.bpf.o $(B)/selftests/record/arm64/shstk))
endif
ifeq ($(ARCH)-$(words $(wildcard $(SHSTK_CACHE)/root-x86)),x86-1)
GUEST_KMOD_x86-qemu += kmod:rules=$(call kmod_words,$(B)/selftests/kmod/x86/rules_test \
	$(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
GUEST_KMOD_x86-qemu += kmod:rules-miss=$(B)/selftests/kmod/x86/rules_miss_test
GUEST_KMOD_x86-qemu-7.2 += $(B)/selftests/kmod/overlay/x86-7.2/overlay.ko
GUEST_KMOD_x86-qemu-6.12 += $(B)/selftests/kmod/overlay/x86-6.12/overlay.ko
RULES_FRAMES_x86 := kmod:rules-frames=$(call kmod_words,$(B)/selftests/kmod/x86/rules_frames_test \
	$(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
RULES_CHANGE_x86 := kmod:rules-change=$(B)/selftests/kmod/x86/rules_change_test
RULES_CHANGE_x86 += kmod:rules-hotplug=$(call kmod_words,$(B)/selftests/kmod/x86/rules_hotplug_test 5 \
	$(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
GUEST_KMOD_x86-qemu-7.2 += $(RULES_CHANGE_x86) $(RULES_FRAMES_x86)
GUEST_KMOD_x86-qemu-6.12 += $(RULES_CHANGE_x86) $(RULES_FRAMES_x86)
GUEST_OPTIONS_x86-named += --sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader --append nohpet
GUEST_MODULES_x86-qemu-6.12-rt = $(filter %/shstk_perf.ko,$(KMOD_x86-6.12-rt))
GUEST_KMOD_x86-qemu-6.12-rt += $(B)/selftests/kmod/overlay/x86-6.12-rt/overlay.ko \
	$(RULES_CHANGE_x86) $(RULES_FRAMES_x86)
# The test of unloading while chains are walked by rules, or folders in /sys are held. $(1) is the guest.
kmod_unload = kmod:rules-unload=$(call kmod_words,$(B)/selftests/kmod/x86/rules_unload_test \
	$(filter %/shstk_perf.ko,$(KMOD_$(1))) $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1 \
	$(B)/selftests/kmod/hold/$(1)/shstk_hold.ko)
GUEST_x86-qemu-7.2 += $(call kmod_unload,x86-7.2)
GUEST_x86-qemu-6.12 += $(call kmod_unload,x86-6.12)
GUEST_x86-qemu-6.12-rt += $(call kmod_unload,x86-6.12-rt)
GUEST_OPTIONS_x86-qemu += --sysroot $(SHSTK_CACHE)/root-x86 --lib $(B)/selftests/loader
GUEST_MODULES_x86-qemu-7.2 = $(filter %/shstk_perf.ko,$(KMOD_x86-7.2))
GUEST_MODULES_x86-qemu-6.12 = $(filter %/shstk_perf.ko,$(KMOD_x86-6.12))
GUEST_KMOD_x86-qemu += $(if $(KMOD_BPF_x86),kmod:rules-bpf=$(call kmod_words,$(B)/selftests/kmod/x86/rules_bpf_test \
	$(B)/selftests/kmod/rules.bpf.o $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1))
# Chains by unwind rules in NMIs, on two CPUs. make check-nmi takes many more chains.
KMOD_NMI = kmod:nmi=$(call kmod_words,$(B)/selftests/kmod/x86/nmi_test 10000 200 $(B)/shstk \
	$(B)/selftests/loader/libprotobuf-c.so.1)
GUEST_KMOD_x86-qemu += kmod:rules-fuzz=$(call kmod_words,$(B)/selftests/kmod/x86/rules_fuzz 2 1 \
	$(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
# After that test, hostile stacks are walked in NMIs, too.
KMOD_HOSTILE = kmod:rules-hostile=$(call kmod_words,$(B)/selftests/kmod/x86/rules_hostile_test 2 1 \
	$(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
GUEST_KMOD_x86-qemu-7.2 += $(B)/selftests/kmod/nmi/x86-7.2/shstk_nmi.ko $(KMOD_NMI) $(KMOD_HOSTILE)
GUEST_KMOD_x86-qemu-6.12 += $(B)/selftests/kmod/nmi/x86-6.12/shstk_nmi.ko $(KMOD_NMI) $(KMOD_HOSTILE)
endif

# Builds the module that holds kobjects of shstk_perf.ko. $(1) is the guest.
define kmod_hold
$(B)/selftests/kmod/hold/$(1)/shstk_hold.ko: selftests/kmod/hold/shstk_hold.c \
		$(SHSTK_CACHE)/kernels/$(1)/version
	@mkdir -p $$(@D)
	$$(Q)cp $$< $$(@D)/ && echo 'obj-m := shstk_hold.o' >$$(@D)/Kbuild
	$$(call say,KBUILD,$$@)selftests/guest/in trixie make $$(call kmod_args,$(1)) M=$(CURDIR)/$$(@D) -s
endef
$(foreach g,x86-6.12 x86-6.12-rt x86-7.2,$(eval $(call kmod_hold,$(g))))

# Builds the module that lets allocations of the other modules fail. It hooks functions in the same
# way as shstk_perf.ko. $(1) is the guest.
define kmod_fault
$(B)/selftests/kmod/fault/$(1)/shstk_fault.ko: selftests/kmod/fault/shstk_fault.c kmod/hook.h \
		kmod/resolve.h $(SHSTK_CACHE)/kernels/$(1)/version
	@mkdir -p $$(@D)
	$$(Q)cp $$< $$(@D)/ && printf 'obj-m := shstk_fault.o\nccflags-y := -I$(CURDIR)/kmod\n' >$$(@D)/Kbuild
	$$(call say,KBUILD,$$@)selftests/guest/in trixie make $$(call kmod_args,$(1)) M=$(CURDIR)/$$(@D) -s
endef
$(foreach g,x86-6.12 x86-7.2,$(eval $(call kmod_fault,$(g))))
GUEST_x86-qemu-7.2 += $(B)/selftests/kmod/fault/x86-7.2/shstk_fault.ko \
	kmod:fault=$(B)/selftests/kmod/x86/fault_test$(comma)calls$(comma)$(filter %/shstk_perf.ko,$(KMOD_x86-7.2)) \
	-shstk_fault
GUEST_x86-6.12 += $(B)/selftests/kmod/fault/x86-6.12/shstk_fault.ko \
	kmod:fault=$(call kmod_words,$(B)/selftests/kmod/x86/fault_test calls \
		$(filter %/shstk.ko %/shstk_prctl.ko,$(KMOD_x86-6.12))) -shstk_fault

# Virtual machines inside a guest: QEMU's emulation has AMD's virtualization.
KMOD_KVM := virt/lib/irqbypass arch/x86/kvm/kvm arch/x86/kvm/kvm-amd
ifeq ($(ARCH)-$(words $(wildcard $(SHSTK_CACHE)/root-x86)),x86-1)
GUEST_KMOD_x86-qemu-7.2 += $(KMOD_KVM:%=$(B)/selftests/kmod/kvm/%.ko) \
	kmod:kvm=$(call kmod_words,$(B)/selftests/kmod/x86/kvm_test $(B)/shstk \
	$(B)/selftests/loader/libprotobuf-c.so.1) -kvm_amd -kvm -irqbypass
endif
$(KMOD_KVM:%=$(B)/selftests/kmod/kvm/%.ko): $(B)/selftests/kmod/kvm/%.ko: \
		$(SHSTK_CACHE)/kernels/x86-7.2/version
	@mkdir -p $(@D)
	$(call say,XZ,$@)xz -dc $(<D)/modules/$*.ko.xz >$@

# Defines the steps of a guest. $(1) is the guest, $(2) the architecture. kmod/build.mk sets KMOD_*,
# which are read later. In Bochs a round takes ten seconds or more.
define kmod_guest_tests
GUEST_MODULES_$(1) = $$(KMOD_$(1))
GUEST_$(1) += kmod:cgroup=$(B)/selftests/kmod/$(2)/cgroup_test,$$(filter %/shstk_perf.ko,$$(KMOD_$(1)))
$(if $(filter x86,$(2)),GUEST_$(1) += kmod:unload=$(B)/selftests/kmod/x86/unload_test$(comma)$$(filter %/shstk_prctl.ko,$$(KMOD_$(1))))
GUEST_KMOD_$(1) += kmod:hostile=$(B)/selftests/kmod/$(2)/hostile_test,$$(subst $$(kmod_space),$$(comma),$$(strip $$(KMOD_$(1))))
GUEST_$(1) += kmod:reload=$(B)/selftests/kmod/$(2)/reload_test,$(if $(filter x86,$(2)),2$(comma)50$(comma)20,3$(comma)100$(comma)0),$$(subst $$(kmod_space),$$(comma),$$(strip $$(KMOD_$(1))))
endef
$(foreach g,$(filter x86-% arm64-%,$(GUESTS)),\
	$(eval $(call kmod_guest_tests,$(g),$(firstword $(subst -, ,$(g))))))

# Overlayfs is a module in Debian's kernels, compressed so that the guests' busybox cannot unpack
# it.
$(B)/selftests/kmod/overlay/%/overlay.ko: $(SHSTK_CACHE)/kernels/%/version
	@mkdir -p $(@D)
	$(call say,XZ,$@)xz -dc $(<D)/modules/fs/overlayfs/overlay.ko.xz >$@

# Builds a source of NMIs, a module for the x86 guests. $(1) is the guest.
define kmod_nmi
$(B)/selftests/kmod/nmi/$(1)/shstk_nmi.ko: selftests/kmod/nmi/shstk_nmi.c $(SHSTK_CACHE)/kernels/$(1)/version
	@mkdir -p $$(@D)
	$$(Q)cp $$< $$(@D)/ && echo 'obj-m := shstk_nmi.o' >$$(@D)/Kbuild
	$$(call say,KBUILD,$$@)selftests/guest/in trixie make $$(call kmod_args,$(1)) M=$(CURDIR)/$$(@D) -s
endef
GUEST_OPTIONS_x86-qemu += --append nohpet
$(foreach g,x86-6.12 x86-6.12-rt x86-6.18 x86-7.2 x86-7.3,$(eval $(call kmod_nmi,$(g))))
include selftests/kmod/rules.mk
