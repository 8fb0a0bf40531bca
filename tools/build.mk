# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make picture    record the pictures in the README again, into Documentation/pictures/; needs
#                   Chromium for that of the page
#
# The command `shstk` is linked from tools/*.c, tools/*/*.c, tools/record/*/*.c and
# tools/language/*/*.c. The fragments in the folders of tools/inject/ build what the command needs
# beside itself at run time (preloaded objects) into $(B)/, and name it in TOOL_OBJECTS to be
# installed; programs that the command starts are in TOOL_PROGRAMS.

TOOL_SRC	:= $(sort $(wildcard tools/*.c tools/*/*.c tools/record/*/*.c tools/language/*/*.c))
TOOL_OBJ	:= $(TOOL_SRC:tools/%.c=$(B)/tools/%.o)
TOOL_OBJECTS	:=
TOOL_PROGRAMS	:=
TOOL_LIBS	= $(SYMBOL_LIBS) -lm
TOOL_CFLAGS	= $(CSTD) $(WARN) $(OPT) $(CPPFLAGS_COMMON) -pthread \
	-DSHSTK_VERSION='"$(VERSION)"' -DSHSTK_OBJDIR='"$(LIBDIR)/shstk"'

# Objects that are loaded into programs on arm64 are marked as ready for GCS: by the linker if it
# can, else after linking (tools/inject/property.S). $(1) is the prefix of the tools, $(2) the
# object.
GCS_NOTE := \4\0\0\0\20\0\0\0\5\0\0\0GNU\0\0\0\0\300\4\0\0\0\4\0\0\0\0\0\0\0
GCS_PLACE := -x assembler tools/inject/property.S -x none
ld_marks_gcs = $(findstring gcs=always,$(shell $(1)ld --help))
gcs_link = $(if $(ld_marks_gcs),-Wl$(comma)-z$(comma)gcs=always,$(GCS_PLACE))
gcs_mark = $(if $(ld_marks_gcs),,$(call write_gcs_note,$(1)objcopy,$(2)))
# $(1): objcopy, $(2): the object.
write_gcs_note = $(Q)printf '$(GCS_NOTE)' >$(2).note && \
	$(1) --update-section .note.gnu.property=$(2).note $(2) && rm $(2).note
# Marks an object for the machine that the build is for, unless its linker has marked it already.
ifeq ($(ARCH)$(GCS_MARK),arm64)
target_gcs_link = $(GCS_PLACE)
target_gcs_mark = $(call write_gcs_note,$(OBJCOPY),$@)
endif

include $(sort $(wildcard tools/*/build.mk tools/inject/*/build.mk))
include bpf/build.mk

$(B)/tools/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OWN_FLAGS) $(HARDENED) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

# The command is linked with the static library, because tools/rules uses private names of the
# library.
$(B)/shstk: $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(call link_program,-pthread $^ $(TOOL_LIBS))

# The command itself prints the table of its options.
$(B)/completion.table: $(B)/shstk
	$(call say,GEN,$@)$(EMULATOR) $(B)/shstk --completion-table >$@

$(B)/completion.bash: tools/completion.bash $(B)/completion.table
	$(call say,GEN,$@)sed -e '/^@TABLE@$$/{r $(B)/completion.table' -e 'd}' $< >$@

$(B)/completion.zsh $(B)/completion.fish: $(B)/completion.%: tools/completion.awk $(B)/completion.table
	$(call say,GEN,$@)awk -v shell=$* -f $< $(B)/completion.table >$@

COMPLETIONS := $(B)/completion.bash $(B)/completion.zsh $(B)/completion.fish

all: $(B)/shstk $(COMPLETIONS) $(TOOL_OBJECTS) $(TOOL_PROGRAMS)

# On a fresh machine, the packages are installed first: nothing can be compiled before.
demo:
	$(Q)if [ -x .ci/packages-install ]; then .ci/packages-install build demo; fi
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo $(B)

# The pictures of the README. The flame graph shows perl, whose program file has the names of most
# of its functions.
picture: all
	@mkdir -p Documentation/pictures
	$(Q)tools/demo --picture Documentation/pictures/perl.svg $(B)
	$(Q)$(B)/shstk record -q -o $(B)/picture.html -- perl tools/demo.pl 4
	$(Q)selftests/page/picture.py '$(B)/picture.html#q=regex' 1280x760 \
		Documentation/pictures/page.png --no-machine

.PHONY: picture
