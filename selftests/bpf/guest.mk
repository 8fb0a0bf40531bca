# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the walk in BPF in guests. selftests/guest/build.mk includes this file after it has
# defined the guests.
#
#   make check-bpf  run the BPF walk on other kernels (BPF_GUESTS): their verifiers, Debian's
#                   programs and forged stacks; ten minutes a guest

BPF_GUESTS ?= x86-qemu-6.12 x86-qemu-7.2
BPF_WORK := bash python3 perl sqlite3 xz git
BPF_LIBBPF := $(firstword $(wildcard /usr/lib/$(MULTIARCH)/libbpf.so.1))
BPF_FILES := selftests/loader/cases.sh $(BPF_B)/chains $(B)/shstk $(B)/selftests/offline/judge $(BPF_B)/shstk-walk.bpf.o \
	$(B)/selftests/loader/libprotobuf-c.so.1

BPF_LANGUAGE := selftests/harness.py $(addprefix selftests/language/,python_test.py program.py judge.py) \
	$(addprefix $(B)/selftests/language/,truth shstk-language.bpf.o)

# $(1) guest
define bpf_guest
$(B)/guest/check-bpf-$(1): FORCE selftests/bpf/walk.sh \
		$(if $(call guest_ready,$(1)),$(B)/guest/init-x86 $(BPF_FILES) $(BPF_LANGUAGE) $(BPF_B)/hostile_test)
	@mkdir -p $$(@D)
	@{ echo '#!/bin/sh'; \
	   echo "exec selftests/guest/run $(1) --out $(B)/guest/bpf-$(1) --memory 2048 \\"; \
	   echo "	--sysroot $$(SHSTK_CACHE)/programs-x86 --lib $(B)/selftests/loader --timeout 1500 \\"; \
	   echo "	--cpus 2 --append nohpet --add $$(BPF_LIBBPF):/usr/lib/x86_64-linux-gnu/libbpf.so.1 \\"; \
	   for p in $$(BPF_WORK) cp mkdir rm env; do echo "	--prog programs-x86:/usr/bin/$$$$p \\"; done; \
	   echo "	--add $$(SHSTK_CACHE)/programs-x86/usr/lib/python3.13:/usr/lib/python3.13 \\"; \
	   echo "	--prog programs-x86:/usr/lib/x86_64-linux-gnu/libffi.so.8 \\"; \
	   echo "	'bpf:hostile=$(BPF_B)/hostile_test $(BPF_B)/shstk-walk.bpf.o' \\"; \
	   echo "	'language:python=selftests/language/guest.sh $(BPF_LANGUAGE) $(B)/selftests/loader/libprotobuf-c.so.1' \\"; \
	   echo "	'bpf:walk=selftests/bpf/walk.sh $$(BPF_WORK) $(BPF_FILES)'"; } >$$@
	@chmod +x $$@
CHECK_BPF += $(B)/guest/check-bpf-$(1)
endef
$(foreach g,$(BPF_GUESTS),$(eval $(call bpf_guest,$(g))))

check-bpf:
	$(Q).ci/packages-install build check guest
	$(Q)selftests/guest/setup
	$(Q)+$(CHECK_MAKE) run-check-bpf
run-check-bpf: $(CHECK_BPF)
	$(Q)selftests/run --guests $(CHECK_BPF)

.PHONY: check-bpf run-check-bpf
