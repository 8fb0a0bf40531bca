# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of `shstk run` and related commands. The programs know nothing of shadow stacks: they are
# built with plain options and use the libraries of the guest's Debian.
#
#   make check-cet-glibc  test shstk run with a C library that was built for CET

LT := $(B)/selftests/loader
LT_CFLAGS := -O2 -g $(WARN) -D_GNU_SOURCE
MUSL_CC := $(shell command -v musl-gcc)
MUSL_LD := $(wildcard /lib/ld-musl-x86_64.so.1)

$(LT)/%: selftests/loader/%.c tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(LT_CFLAGS) -o $@ $< $(LT_LIBS) -pthread
$(LT)/%: selftests/loader/%.cc tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -O2 -g $(WARN) -fnon-call-exceptions -o $@ $< -pthread
$(LT)/libfcontext.so: selftests/loader/fcontext.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(LT_CFLAGS) -shared -fPIC -o $@ $<
$(LT)/fcontext_static_test: selftests/loader/fcontext_test.c selftests/loader/fcontext.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(LT_CFLAGS) -o $@ $(filter %.c,$^)
$(LT)/unaware_musl: selftests/loader/unaware_test.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(MUSL_CC) $(LT_CFLAGS) -o $@ $<
$(LT)/unaware_static: selftests/loader/unaware_test.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(LT_CFLAGS) -DSTATIC -static -o $@ $< -pthread
$(LT)/ownjump_static_pie: selftests/loader/ownjump_test.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(LT_CFLAGS) -static-pie -fPIE -o $@ $<
$(LT)/static_test: LT_LIBS := -static
$(LT)/violate: LT_LIBS := -fno-omit-frame-pointer
$(LT)/fcontext_test: LT_LIBS := -L$(LT) -lfcontext -Wl,-rpath,'$$ORIGIN'
$(LT)/fcontext_test: $(LT)/libfcontext.so

# No other program in the guest's Debian needs this library.
$(LT)/libprotobuf-c.so.1:
	@mkdir -p $(@D)
	$(call say,CP,$@)cp $(shell $(CC) -print-file-name=libprotobuf-c.so.1) $@

# Everything that the guest script needs; it is copied in because it is named.
LOADER_X86 := selftests/loader/cases.sh $(B)/shstk $(B)/libshstk-start.so \
	$(addprefix $(LT)/,unaware_test except_test fcontext_test \
	fcontext_static_test ownjump_test violate static_test unaware_static \
	ownjump_static_pie libfcontext.so)
LOADER_X86_OPTIONS := --sysroot $(SHSTK_CACHE)/root-x86 --lib $(LT) \
	$(foreach p,bash sqlite3 perl python3,--prog root-x86:/usr/bin/$(p)) \
	--add $(SHSTK_CACHE)/root-x86/usr/lib/python3.13:/usr/lib/python3.13
ifneq ($(and $(MUSL_CC),$(MUSL_LD)),)
LOADER_MUSL := $(LT)/unaware_musl
LOADER_X86_OPTIONS += --add $(LT)/unaware_musl:/t/unaware_musl \
	--add $(realpath $(MUSL_LD)):/lib/ld-musl-x86_64.so.1
endif

ifeq ($(ARCH),x86)
CHECK += selftests/loader/check.sh
LOADER_STEP := $(foreach p,programs violations debian,\
	$(p)=selftests/loader/x86.sh$(comma)$(p)$(subst $() ,,$(LOADER_X86:%=$(comma)%)))
$(foreach g,x86-7.2 x86-6.12,\
	$(eval GUEST_$(g) += $(LOADER_STEP)) \
	$(eval GUEST_OPTIONS_$(g) += $(LOADER_X86_OPTIONS)) \
	$(eval $(B)/guest/check-$(g): $(LOADER_X86) $(LOADER_MUSL) $(LT)/libprotobuf-c.so.1))
endif

# Debian's programs, and marked and unmarked programs of these tests, with a C library built for
# CET. All other libraries are Debian's.
CET := $(LT)/cet
CET_MARKED := $(addprefix $(CET)/,unaware_marked except_marked ownjump_marked violate_marked stand_marked)
CET_FLAGS := $(LT_CFLAGS) -DLIBC_HANDLES -fno-omit-frame-pointer -fno-optimize-sibling-calls
$(CET)/unaware_cet: selftests/loader/unaware_test.c tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CET_FLAGS) -o $@ $< -pthread
$(CET)/except_marked: selftests/loader/except_test.cc tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(CXX) -O2 -g $(WARN) -fnon-call-exceptions -Wl,-z,shstk -o $@ $< -pthread
$(CET)/stand_marked: selftests/offline/stand.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CET_FLAGS) -Wl,-z,shstk -o $@ $< -pthread
$(CET)/%_marked: selftests/loader/%_test.c tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CET_FLAGS) -Wl,-z,shstk -o $@ $< -pthread
$(CET)/%_marked: selftests/loader/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CET_FLAGS) -Wl,-z,shstk -o $@ $< -pthread

CET_LIB := usr/lib/x86_64-linux-gnu
CET_STEP := cet=selftests/loader/cet.sh selftests/loader/cases.sh $(B)/shstk \
	$(B)/libshstk-start.so $(B)/libshstk-start-cet.so $(CET)/unaware_cet $(CET_MARKED)
check-cet-glibc: all $(CET)/unaware_cet $(CET_MARKED) $(LT)/libprotobuf-c.so.1 $(LOADER_MUSL)
	$(Q)selftests/guest/setup root-x86 cet-glibc
	$(Q)rm -rf $(CET)/root && mkdir -p $(CET)/root/$(CET_LIB) && \
		cp -as $(SHSTK_CACHE)/root-x86/$(CET_LIB)/*.so* $(CET)/root/$(CET_LIB)/ && \
		cp -asf $(SHSTK_CACHE)/cet-glibc/. $(CET)/root/ && \
		ln -s $(SHSTK_CACHE)/root-x86/usr/bin $(CET)/root/usr/bin
	$(Q)selftests/guest/run x86-7.2 --out $(B)/guest/cet-glibc --timeout 900 --slack 8 \
		--sysroot $(CURDIR)/$(CET)/root --lib $(LT) \
		$(foreach p,bash sqlite3 perl python3,--prog $(CURDIR)/$(CET)/root:/usr/bin/$(p)) \
		--add $(SHSTK_CACHE)/root-x86/usr/lib/python3.13:/usr/lib/python3.13 \
		$(if $(LOADER_MUSL),--add $(LOADER_MUSL):/t/unaware_musl \
			--add $(realpath $(MUSL_LD)):/lib/ld-musl-x86_64.so.1) '$(CET_STEP)'
.PHONY: check-cet-glibc

# The arm64 guest has the command that selftests/record builds for it; a second file with that name
# would get another name there. Debian 14's libraries are in the guest. The programs are built with
# an older C library, so they are not marked.
LTA := $(LT)/arm64

$(LTA)/%: selftests/loader/%.c tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(LT_CFLAGS) -mbranch-protection=standard \
		-o $@ $< $(LT_LIBS) -pthread
$(LTA)/%: selftests/loader/%.cc tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CXX,$@)$(ARM64)g++ -O2 -g $(WARN) -mbranch-protection=standard \
		-fnon-call-exceptions -o $@ $< -pthread
$(LTA)/static_test: LT_LIBS := -static
$(LTA)/violate: LT_LIBS := -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -mbranch-protection=none
$(LTA)/ownjump_test: LT_LIBS := -mbranch-protection=none

# A static program whose C library knows GCS.
$(LTA)/marked_static: selftests/loader/unaware_test.c tools/inject/preload/ssp.h
	@mkdir -p $(@D)
	$(call say,CC,$@)selftests/guest/in forky aarch64-linux-gnu-gcc $(LT_CFLAGS) \
		-mbranch-protection=standard -DSTATIC -static -o $@ $< -pthread

# An unmarked library to preload; this project's preloaded libraries have to be marked.
$(LTA)/libplain.so: selftests/record/plugin.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(arm64_CC) $(LT_CFLAGS) -shared -fPIC -DNAME=plain -o $@ $<

LOADER_ARM64 := selftests/loader/cases.sh $(B)/preload/arm64/libshstk-start.so \
	$(addprefix $(B)/selftests/record/arm64/,shstk libshstk-agent.so) \
	$(addprefix $(B)/selftests/heap/arm64/,libshstk-heap.so libshstk-backtrace.so) \
	$(addprefix $(LTA)/,unaware_test except_test ownjump_test violate static_test marked_static libplain.so)
GUEST_arm64-7.2 += loader=selftests/loader/arm64.sh$(subst $() ,,$(LOADER_ARM64:%=$(comma)%))
GUEST_OPTIONS_arm64-7.2 += \
	$(foreach p,bash sqlite3 perl python3,--prog root-arm64:/usr/bin/$(p)) \
	--add $(SHSTK_CACHE)/root-arm64/usr/lib/python3.14:/usr/lib/python3.14
$(B)/guest/check-arm64-7.2: $(if $(wildcard $(SHSTK_CACHE)/root-arm64),$(LOADER_ARM64))

# Fuzzing of what these commands read: programs and messages (selftests/fuzz/run finds these).
FUZZ_LOADER := $(FUZZ_B)/objects_fuzz $(FUZZ_B)/report_fuzz
$(FUZZ_B)/objects_fuzz: $(patsubst %,tools/elf/%.c,load object objects package search) \
	tools/proc/maps.c tools/proc/path.c tools/proc/script.c tools/proc/tasks.c
$(FUZZ_B)/report_fuzz: tools/run/violations.c
$(FUZZ_LOADER): $(FUZZ_B)/%_fuzz: selftests/fuzz/%_fuzz.c $(B)/symbol/fuzz/libshstk-symbol.a \
		$(B)/lib/fuzz/libshstk.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CLANG) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(fuzz_FLAGS) \
		-fsanitize=fuzzer -o $@ $(filter %.c,$^) $(filter %.a,$^) $(SYMBOL_LIBS)
# A program as the seed, and what dpkg-query says.
$(FUZZ_B)/objects_seed: $(LT)/violate
	@mkdir -p $(@D)
	$(Q)printf '\002diversion by d from: /c\na:amd64, b: /bin/a\nb: /lib/b.so\nc: /c\n' >$@-packages
	$(Q){ printf '\001'; cat $<; } >$@
fuzz selftests/fuzz/run: | $(FUZZ_LOADER) $(FUZZ_B)/objects_seed
