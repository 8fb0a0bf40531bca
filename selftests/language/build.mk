# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of stacks with the functions that an interpreter runs (tools/language/,
# bpf/language_walk.h).

LANGUAGE_B	:= $(B)/selftests/language
LANGUAGE_BPF	:= $(filter %/shstk-language.bpf.o %/shstk-native.bpf.o,$(TOOL_OBJECTS))

# The program is linked with all of the command but its main().
$(LANGUAGE_B)/truth: selftests/language/truth.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -o $@ $< $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.o,$^)) $(filter %.a,$^) $(TOOL_LIBS)

# The readers of interpreters, without the rest of the command.
$(LANGUAGE_B)/limit_test: selftests/language/limit_test.c $(patsubst %,$(B)/tools/language/%.o,hidden_variable \
		languages place read python/frame python/function python/python python/recognise python/thread python/unsure \
		python/versions \
		php/cold php/frame php/function php/php php/publish php/recognise php/versions \
		ruby/frame ruby/function ruby/hidden ruby/names ruby/recognise ruby/ruby ruby/versions \
		v8/accessors v8/baseline v8/calls v8/frame v8/function v8/positions v8/recognise v8/safepoints v8/states v8/v8 \
		v8/versions) \
		$(B)/tools/elf/symbols.o $(B)/tools/convert/context_variable.o $(B)/tools/repeats.o $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/limit_test)

# What keeps the functions of a recording, with a language of the test's own.
$(LANGUAGE_B)/positions_test: selftests/language/positions_test.c $(patsubst %,$(B)/tools/language/%.o,languages place) \
		$(B)/tools/repeats.o $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(LANGUAGE_B)/positions_test

# Where functions with native frames of their own stand, with stacks of the test's own.
$(LANGUAGE_B)/place_test: selftests/language/place_test.c $(B)/tools/language/place.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

CHECK += $(LANGUAGE_B)/place_test

# What is told of V8's machine code, with records of the test's own.
$(LANGUAGE_B)/states_test: selftests/language/states_test.c $(patsubst %,$(B)/tools/language/v8/%.o,baseline calls frame \
		function positions safepoints states versions) $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^)

CHECK += $(LANGUAGE_B)/states_test

# What V8 has no variables for is found by its code, with code of the test's own.
$(LANGUAGE_B)/accessors_test: selftests/language/accessors_test.c $(B)/tools/language/v8/accessors.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^)

CHECK += $(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/accessors_test)

# How far threads lie below their thread pointers on arm64, with code of the test's own.
$(LANGUAGE_B)/thread_test: selftests/language/thread_test.c $(patsubst %,$(B)/tools/%.o,language/python/thread elf/symbols) \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(LANGUAGE_B)/thread_test

# Where Python's lists may be in the middle of a change, with code of the test's own.
$(LANGUAGE_B)/unsure_test: selftests/language/unsure_test.c $(patsubst %,$(B)/tools/language/python/%.o,frame unsure versions)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

CHECK += $(LANGUAGE_B)/unsure_test

# Where PHP makes a frame the innermost one, with code of the test's own.
$(LANGUAGE_B)/publish_test: selftests/language/publish_test.c $(B)/tools/language/php/publish.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

CHECK += $(LANGUAGE_B)/publish_test

# How what libruby does not export is found, with code of the test's own.
$(LANGUAGE_B)/hidden_test: selftests/language/hidden_test.c $(patsubst %,$(B)/tools/language/%.o,hidden_variable ruby/hidden) \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -no-pie -fno-pie -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/hidden_test)

# How a thread-local variable without a symbol is found, with code of the test's own.
$(LANGUAGE_B)/hidden_variable_test: selftests/language/hidden_variable_test.c $(B)/tools/language/hidden_variable.o
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

CHECK += $(LANGUAGE_B)/hidden_variable_test

# The tasks of Python, with memory of the test's own.
$(LANGUAGE_B)/awaits_test: selftests/language/awaits_test.c $(patsubst %,$(B)/tools/language/python/%.o,awaits function versions) \
		$(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ \
		$(filter %.c %.o %.a,$^) $(SYMBOL_LIBS)

CHECK += $(LANGUAGE_B)/awaits_test

# The BPF objects lie beside the program that loads them, as they do in an installation.
$(LANGUAGE_B)/shstk-%.bpf.o: $(B)/shstk-%.bpf.o
	@mkdir -p $(@D)
	$(Q)cp $< $@

# How Ruby's table of names is found, with code of the test's own.
$(LANGUAGE_B)/names_test: selftests/language/names_test.c $(patsubst %,$(B)/tools/language/ruby/%.o,names versions)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(KSELFTEST_FLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

CHECK += $(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/names_test)

# The program has the name of an interpreter.
$(LANGUAGE_B)/python3-forged: selftests/language/forged.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -pthread -rdynamic -o $@ $<

# This one has the name of Ruby.
$(LANGUAGE_B)/ruby-forged: selftests/language/forged_ruby.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -rdynamic -o $@ $<

# This one is taken for Node.js. (The folder is for its name.)
$(LANGUAGE_B)/forged/node: selftests/language/forged_node.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -pthread -rdynamic -o $@ $<

# As newer ones have it.
$(LANGUAGE_B)/forged-12/node $(LANGUAGE_B)/forged-13/node: $(LANGUAGE_B)/forged-%/node: selftests/language/forged_node.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -pthread -rdynamic -DMAJOR=$* -DMINOR=$(if $(filter 12,$*),4,6) -o $@ $<

# This one has a version that nobody knows.
$(LANGUAGE_B)/newer/node: selftests/language/forged_node.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -pthread -rdynamic -DMAJOR=99 -DMINOR=9 -o $@ $<

# This one is taken for Python without its lock.
$(LANGUAGE_B)/free_threaded/python3: selftests/language/refused_python.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -rdynamic -o $@ $<

# This one for a Python that nobody knows yet.
$(LANGUAGE_B)/newer/python3: selftests/language/refused_python.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -rdynamic -DVERSION=0x036300f0 -o $@ $<

# This one for a Python 3.15 that another compiler made.
$(LANGUAGE_B)/other_code/python3: selftests/language/refused_python.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -rdynamic -DVERSION=0x030f00f0 -DLOCKED -o $@ $<

LANGUAGE_TRUTH	:= $(LANGUAGE_B)/truth $(LANGUAGE_BPF:$(B)/%=$(LANGUAGE_B)/%)
selftests/language/python_test.py selftests/language/ways_test.py selftests/language/tasks_test.py: | $(LANGUAGE_TRUTH)
selftests/language/php_test.py: | $(LANGUAGE_TRUTH) all
selftests/language/ruby_test.py: | $(LANGUAGE_TRUTH) all
selftests/language/node_test.py: | $(LANGUAGE_TRUTH) $(LANGUAGE_B)/word.node
selftests/language/lent_test.py: | $(LANGUAGE_TRUTH) $(LANGUAGE_B)/python3-forged $(LANGUAGE_B)/forged/node \
	$(LANGUAGE_B)/word.node all
selftests/language/hostile_test.py: | $(LANGUAGE_TRUTH) $(LANGUAGE_B)/python3-forged $(LANGUAGE_B)/ruby-forged \
	$(patsubst %,$(LANGUAGE_B)/%/node,forged forged-12 forged-13)
selftests/language/trace_test.py selftests/language/java_test.py: | all
selftests/language/tree_test.py: | all $(LANGUAGE_B)/newer/python3 $(LANGUAGE_B)/free_threaded/python3
selftests/language/allocations_test.py: | all $(LANGUAGE_B)/late.so $(LANGUAGE_B)/embed
selftests/language/both_test.py: | all
selftests/language/languages_test.py: | all $(LANGUAGE_TRUTH) $(addprefix $(LANGUAGE_B)/,word.node newer/node free_threaded/python3 other_code/python3)
selftests/language/in_process_test.py: | all $(LANGUAGE_B)/publish_word.so $(LANGUAGE_B)/python3-forged
selftests/language/processes_test.py: | all $(LANGUAGE_B)/embed
selftests/language/pythons_test.py: | all $(LANGUAGE_TRUTH) $(addprefix $(LANGUAGE_B)/,publish_word.so embed) \
	$(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/stateless)

# A module of Node.js.
$(LANGUAGE_B)/word.node: selftests/language/node_word.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -fPIC -shared -o $@ $<

# Is preloaded.
$(LANGUAGE_B)/publish_word.so: selftests/language/publish_word.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -fPIC -shared -o $@ $<

# Is loaded while allocations are recorded.
$(LANGUAGE_B)/late.so: selftests/language/late.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -fomit-frame-pointer -fPIC -shared -o $@ $<

# A program with Python in it.
$(LANGUAGE_B)/embed: selftests/language/embed.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $<

# A thread that allocates without a state of the interpreter; for x86-64.
$(LANGUAGE_B)/stateless: selftests/language/stateless.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -O1 -g -o $@ $< -pthread

# It is linked with all of the command, too.
$(LANGUAGE_B)/bounds_test: selftests/language/bounds_test.c $(TOOL_OBJ) $(B)/libshstk-symbol.a \
		$(B)/lib/native/libshstk.a
	@mkdir -p $(@D)
	$(Q)objcopy --weaken-symbol=main $(B)/tools/shstk.o $@-shstk.o
	$(call say,LD,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) $(KSELFTEST_FLAGS) \
		-Wno-unused-parameter -MMD -MP -o $@ $@-shstk.o \
		$(filter-out $(B)/tools/shstk.o,$(filter %.c %.o %.a,$^)) -pthread $(TOOL_LIBS)

CHECK += selftests/language/offsets_test.py
CHECK += $(if $(filter x86,$(ARCH)),$(LANGUAGE_B)/bounds_test $(patsubst %,selftests/language/%_test.py,python pythons in_process php ruby node java hostile trace both processes languages allocations ways tasks tree lent))

#   make check-languages  print what is shown of programs in the languages that are installed here, and of SAMPLES=5000 stacks
#	how many are right; and judge those of OCaml 5 (OCAMLOPT, or EFFECTS: effects_many.c and effects.ml compiled elsewhere)
check-languages:
	$(Q).ci/packages-install build check
	$(Q)+$(CHECK_MAKE) run-check-languages
run-check-languages: all $(LANGUAGE_TRUTH) $(LANGUAGE_B)/word.node
	$(Q)selftests/language/languages.py
	$(Q)selftests/language/ocaml_test.py || [ $$? = 4 ]	# skipped without OCaml

#   make check-languages-many  judge a million stacks (SAMPLES) of each of these languages; hours
check-languages-many:
	$(Q).ci/packages-install build check
	$(Q)+$(CHECK_MAKE) run-check-languages-many
run-check-languages-many: all $(LANGUAGE_TRUTH) $(LANGUAGE_B)/word.node
	$(Q)selftests/language/languages_many.py $(or $(SAMPLES),1000000) $(LANGUAGES)

#   make check-languages-long  record programs in these languages for half an hour (SECONDS=1800) beside processes that
#	work (LOAD=2; without it as many as there are CPUs): nothing ends or stops, and memory is flat
check-languages-long:
	$(Q).ci/packages-install build check
	$(Q)+$(CHECK_MAKE) run-check-languages-long
run-check-languages-long: all
	$(Q)selftests/language/long.py

.PHONY: check-languages run-check-languages check-languages-long run-check-languages-long check-languages-many \
	run-check-languages-many
