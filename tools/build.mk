# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make picture    record the flame graph in the README again, into Documentation/pictures/
#
# The command `shstk`: every tools/*.c and tools/*/*.c is linked into it. What it
# needs beside itself at run time (preloaded objects) is built by the fragments in
# the folders of tools/inject/, into $(B)/, and named in TOOL_OBJECTS to be installed.

TOOL_SRC	:= $(wildcard tools/*.c tools/*/*.c)
TOOL_OBJ	:= $(TOOL_SRC:tools/%.c=$(B)/tools/%.o)
TOOL_OBJECTS	:=
TOOL_LIBS	= $(SYMBOL_LIBS) -lm
TOOL_CFLAGS	= $(CSTD) $(WARN) $(OPT) $(CPPFLAGS_COMMON) -pthread \
	-DSHSTK_VERSION='"$(VERSION)"' -DSHSTK_OBJDIR='"$(LIBDIR)/shstk"'

# On arm64, objects that are loaded into programs are marked as ready for GCS: by the
# linker if it can, else behind its back (tools/inject/property.S). $(1) prefix of the
# tools; $(2) the object.
GCS_NOTE := \4\0\0\0\20\0\0\0\5\0\0\0GNU\0\0\0\0\300\4\0\0\0\4\0\0\0\0\0\0\0
ld_marks_gcs = $(findstring gcs=always,$(shell $(1)ld --help))
gcs_link = $(if $(ld_marks_gcs),-Wl$(comma)-z$(comma)gcs=always,-x assembler \
	tools/inject/property.S -x none)
gcs_mark = $(if $(ld_marks_gcs),,$(Q)printf '$(GCS_NOTE)' >$(2).note && \
	$(1)objcopy --update-section .note.gnu.property=$(2).note $(2) && rm $(2).note)
# The same for this machine's.
own_link = $(if $(filter arm64,$(ARCH)),$(gcs_link))
own_mark = $(if $(filter arm64,$(ARCH)),$(call gcs_mark,,$@))

include $(wildcard tools/*/build.mk tools/inject/*/build.mk)

$(B)/tools/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(OWN_FLAGS) $(HARDENED) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

# With the private names of the library, for tools/rules.
$(B)/shstk: $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/lib/native/libshstk.a
	$(call say,LD,$@)$(call link_program,-pthread $^ $(TOOL_LIBS))

# The command itself knows its options.
$(B)/completion.bash: tools/completion.bash $(B)/shstk
	$(call say,GEN,$@)$(EMULATOR) $(B)/shstk --completion-table >$@.table && \
		sed -e '/^@TABLE@$$/{r $@.table' -e 'd}' $< >$@

all: $(B)/shstk $(B)/completion.bash $(TOOL_OBJECTS)

# On a fresh machine the packages come first: nothing is compiled before.
demo:
	$(Q)if [ -x .ci/packages-install ]; then .ci/packages-install build demo; fi
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo $(B)

# The README's flame graph: perl's, whose program file names most of its functions.
picture: all
	@mkdir -p Documentation/pictures
	$(Q)tools/demo --picture Documentation/pictures/perl.svg $(B)

.PHONY: picture

BINDIR		?= $(PREFIX)/bin
INCLUDEDIR	?= $(PREFIX)/include
MANDIR		?= $(PREFIX)/share/man
UNITDIR		?= $(PREFIX)/lib/systemd/system
BASHDIR		?= $(PREFIX)/share/bash-completion/completions

install: all man
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/shstk \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) \
		$(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(BASHDIR)
	install -m 755 $(B)/shstk $(DESTDIR)$(BINDIR)
	install -d $(DESTDIR)$(UNITDIR)
	sed 's,@BINDIR@,$(BINDIR),' tools/rules/shstkd.service >$(DESTDIR)$(UNITDIR)/shstkd.service
	sed 's,@BINDIR@,$(BINDIR),' tools/broker/shstk-broker.service \
		>$(DESTDIR)$(UNITDIR)/shstk-broker.service
	install -m 644 tools/broker/shstk-broker.socket $(DESTDIR)$(UNITDIR)
	install -m 644 $(B)/completion.bash $(DESTDIR)$(BASHDIR)/shstk
	$(if $(TOOL_OBJECTS),install -m 644 $(TOOL_OBJECTS) $(DESTDIR)$(LIBDIR)/shstk)
	install -m 644 libshstk/shstk.h libshstk/shstk_go.h \
		libshstk/shstk_go_symbolize.h libshstk/shstk_symbolize.h $(DESTDIR)$(INCLUDEDIR)
	install -m 644 $(B)/libshstk.a $(DESTDIR)$(LIBDIR)
	install -m 644 $(B)/libshstk.so $(DESTDIR)$(LIBDIR)/libshstk.so.$(VERSION)
	ln -sf libshstk.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libshstk.so.0
	ln -sf libshstk.so.0 $(DESTDIR)$(LIBDIR)/libshstk.so
	install -m 644 $(B)/libshstk-go-symbolize.so \
		$(DESTDIR)$(LIBDIR)/libshstk-go-symbolize.so.$(VERSION)
	ln -sf libshstk-go-symbolize.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libshstk-go-symbolize.so.0
	ln -sf libshstk-go-symbolize.so.0 $(DESTDIR)$(LIBDIR)/libshstk-go-symbolize.so
	install -m 644 $(B)/libshstk-symbolize.so \
		$(DESTDIR)$(LIBDIR)/libshstk-symbolize.so.$(VERSION)
	ln -sf libshstk-symbolize.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libshstk-symbolize.so.0
	ln -sf libshstk-symbolize.so.0 $(DESTDIR)$(LIBDIR)/libshstk-symbolize.so
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' \
		'includedir=$(INCLUDEDIR)' '' 'Name: libshstk-symbolize' \
		'Description: Names for stack traces of libshstk' 'Requires: libshstk' \
		'Version: $(VERSION)' 'Libs: -L$${libdir} -lshstk-symbolize' \
		'Cflags: -I$${includedir}' \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/libshstk-symbolize.pc
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' \
		'includedir=$(INCLUDEDIR)' '' 'Name: libshstk' \
		'Description: Stack traces from shadow stacks' \
		'Version: $(VERSION)' 'Libs: -L$${libdir} -lshstk' \
		'Libs.private: -pthread -ldl' 'Cflags: -I$${includedir}' \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/libshstk.pc
	install -d $(DESTDIR)$(MANDIR)/man3
	install -m 644 $(filter %.1,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(filter %.3,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man3
