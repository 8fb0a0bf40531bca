# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk broker`, and of attacks on it. selftests/record/paranoid.sh tests what ordinary
# users record with it under each kernel.perf_event_paranoid.

BROKER_B := $(B)/selftests/broker
$(BROKER_B)/broker_test: selftests/broker/broker_test.c selftests/broker/facts.h \
		selftests/broker/client.h selftests/own_mounts.h tools/perf/borrow_protocol.h all
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -g $(CPPFLAGS_COMMON) \
		-o $@ $(filter %.c,$^)

CHECK += $(BROKER_B)/broker_test

# Tests the process that answers, with events between its check and the opening of an event.
$(BROKER_B)/race_test: selftests/broker/race_test.c selftests/broker/facts.h $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -Wl,--wrap=syscall -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

CHECK += $(BROKER_B)/race_test

# Tests how users are counted, with the broker's own functions.
USERS_WRAP := now_ns held_create held_open held_count subordinate_renew bpf_loaded_set walker_loaded
$(BROKER_B)/users_test: selftests/broker/users_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) $(USERS_WRAP:%=-Wl,--wrap=%) -MMD -MP -o $@ $< \
		$@-shstk.o $(filter-out $(addprefix $(B)/tools/,shstk.o broker/broker.o),$(filter %.o,$^)) \
		$(filter %.a,$^) $(TOOL_LIBS)

CHECK += $(BROKER_B)/users_test

# Tests what asks the broker, with a stand-in for it.
$(BROKER_B)/borrow_test: selftests/broker/borrow_test.c $(patsubst %,$(B)/tools/perf/%.o,borrow borrow_reply)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TOOL_CFLAGS) $(KSELFTEST_FLAGS) -Wl,--wrap=getsockopt -MMD -MP -o $@ $< \
		$(filter %.o,$^)

CHECK += $(BROKER_B)/borrow_test

# Tests walks that the broker lends. The program's own functions have frame pointers, and its calls stay.
$(BROKER_B)/walk_test: selftests/broker/walk_test.c $(addprefix selftests/broker/,watch.h facts.h client.h) \
		tools/perf/borrow_protocol.h bpf/walk.h bpf/lend.h kmod/walk_end.h all
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -fno-optimize-sibling-calls \
		$(CPPFLAGS_COMMON) -o $@ $(filter %.c,$^)

CHECK += $(BROKER_B)/walk_test

# Tests reading of interpreters' frames that the broker lends.
$(BROKER_B)/frames_test $(BROKER_B)/native_frames_test: $(BROKER_B)/%_test: selftests/broker/%_test.c \
		$(addprefix selftests/broker/,frames.h watch.h facts.h client.h) \
		tools/perf/borrow_protocol.h bpf/language.h bpf/native.h bpf/lend.h all
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g $(CPPFLAGS_COMMON) -o $@ $(filter %.c,$^)

CHECK += $(if $(filter x86,$(ARCH)),$(BROKER_B)/frames_test $(BROKER_B)/native_frames_test)

selftests/broker/record_test.py: $(addprefix $(BPF_B)/,spin naps)

CHECK += selftests/broker/record_test.py

CHECK += selftests/broker/unit_test.sh
