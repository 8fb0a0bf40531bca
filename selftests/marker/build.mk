# SPDX-License-Identifier: GPL-2.0-or-later
#
# Markers: return addresses replaced on the stack (Documentation/markers.rst).

MARKER_CFLAGS := $(WARN) -Wno-clobbered -Wno-cast-function-type \
	-Wno-infinite-recursion \
	$(CPPFLAGS_COMMON) -Iselftests/capture -fno-omit-frame-pointer -O2 -g -MMD -MP

$(B)/marker/native/%_test: selftests/marker/%_test.cc selftests/marker/build.mk \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) $(MARKER_CFLAGS) -o $@ $< $(B)/lib/native/libshstk.a \
		-pthread -ldl

$(B)/marker/%/awake.o: selftests/marker/awake.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$($*_CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $($*_FLAGS) \
		-Ilibshstk/arch/$($*_ARCH) -O2 -g -MMD -MP -c -o $@ $<

# random_test is built without frame pointers, so no marker is placed in its own frames;
# records_test is built with them.
$(B)/marker/native/random_test $(B)/marker/native/records_test: \
		selftests/marker/random_test.cc $(B)/marker/native/awake.o \
		selftests/marker/build.mk $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) $(MARKER_CFLAGS) $(if $(filter %/random_test,$@),\
		-fomit-frame-pointer -DWITHOUT_RECORDS) -o $@ $(filter %.cc %.o %.a,$^) -pthread -ldl

$(B)/marker/native/clause_test: $(B)/marker/native/clause_test_plugin.so
$(B)/marker/native/clause_test_plugin.so: selftests/marker/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O2 -fPIC -shared -o $@ $<

$(B)/marker/native/local_test: selftests/marker/local_test.c $(B)/lib/native/libshstk.a \
		$(B)/marker/native/local_test_plugin.so selftests/marker/build.mk
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -O2 \
		-fno-omit-frame-pointer -o $@ $< $(B)/lib/native/libshstk.a -ldl

$(B)/marker/native/worth_test: selftests/marker/worth_test.c $(B)/lib/native/libshstk.a \
		selftests/marker/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) -Ilibshstk/arch/$(ARCH) -O2 \
		-fno-omit-frame-pointer -o $@ $< $(B)/lib/native/libshstk.a

$(B)/marker/%/jit_test: selftests/marker/jit_test.c selftests/formats/jit.h \
		$(B)/lib/%/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$($*_CC) $(CSTD) $(WARN) -Wno-unused-const-variable $(CPPFLAGS_COMMON) \
		$($*_FLAGS) -Iselftests/formats -fno-omit-frame-pointer $(MARKER_$*) -o $@ $< \
		$(B)/lib/$*/libshstk.a -pthread
MARKER_arm64 := -static

$(B)/marker/native/local_test_plugin.so: selftests/marker/local_plugin.cc \
		selftests/marker/build.mk
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) $(WARN) -O2 -fno-omit-frame-pointer -fPIC -shared -o $@ $<

# The arm64 programs are static: they have no dlopen(), and no other unwinders to compare with.
$(B)/marker/arm64/%_test: selftests/marker/%_test.cc selftests/marker/build.mk \
		$(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ $(MARKER_CFLAGS) $(arm64_FLAGS) -DMARKER_STATIC \
		-static -o $@ $< $(B)/lib/arm64/libshstk.a -pthread

$(B)/marker/arm64/random_test $(B)/marker/arm64/records_test: \
		selftests/marker/random_test.cc $(B)/marker/arm64/awake.o \
		selftests/marker/build.mk $(B)/lib/arm64/libshstk.a
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ $(MARKER_CFLAGS) $(if $(filter %/random_test,$@),\
		-fomit-frame-pointer -DWITHOUT_RECORDS) $(arm64_FLAGS) -DMARKER_STATIC -static -o $@ \
		$(filter %.cc %.o %.a,$^) -pthread

USER_arm64 += $(addprefix $(B)/marker/arm64/,clause_test random_test records_test jit_test)
CHECK += $(addprefix $(B)/marker/native/,clause_test random_test records_test local_test \
	worth_test jit_test)
