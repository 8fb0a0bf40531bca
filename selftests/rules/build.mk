# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk rules` that need no module: the cache, the process that compiles, and the search for files.

RULES_B := $(B)/selftests/rules
$(RULES_B)/sandbox_test: selftests/rules/sandbox_test.c tools/rules/confine.c tools/rules/confine.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) \
		-o $@ $(filter %.c,$^)
$(RULES_B)/running_test: selftests/rules/running_test.c tools/rules/running_files.c tools/rules/mounts.c \
		tools/rules/confine.c tools/rules/subordinate.c \
		tools/proc/maps.c tools/proc/tasks.c tools/rules/running_files.h tools/rules/subordinate.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) \
		-o $@ $(filter %.c,$^)
$(RULES_B)/subordinate_test: selftests/rules/subordinate_test.c tools/rules/subordinate.c \
		tools/rules/subordinate.h uapi/linux/shstk_rules.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) \
		-o $@ $(filter %.c,$^)
$(RULES_B)/go_rules: selftests/rules/go_rules.c kmod/rules_check.h $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -o $@ \
		$(filter %.c %.a,$^) -pthread
selftests/rules/cache_test.py: | $(RULES_B)/go_rules all
$(RULES_B)/fake_device.so: selftests/rules/fake_device.c selftests/rules/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -g $(CPPFLAGS_COMMON) -fPIC -shared -o $@ $<
selftests/rules/serve_test.py: | $(RULES_B)/fake_device.so all
CHECK += $(RULES_B)/sandbox_test $(RULES_B)/running_test $(RULES_B)/subordinate_test selftests/rules/cache_test.py
# A process of it waits for a file system that does not answer. Whoever sets a uprobe in a library that this process
# has mapped waits for it, and until then no process of the machine can fork.
CHECK_ALONE += selftests/rules/serve_test.py

# A stripped Go program without C, for a guest in which the module is loaded.
$(RULES_B)/go: selftests/rules/go.go
	@mkdir -p $(@D)
	$(call say,GO,$@)CGO_ENABLED=0 go build -ldflags='-s -w' -o $@ $<
ifeq ($(ARCH)-$(words $(wildcard $(SHSTK_CACHE)/root-x86) $(shell command -v go)),x86-2)
GUEST_KMOD_x86-qemu-7.2 += rules:go=$(subst $() ,$(comma),selftests/rules/go.sh $(RULES_B)/go \
	selftests/loader/cases.sh $(B)/shstk $(B)/selftests/loader/libprotobuf-c.so.1)
endif
