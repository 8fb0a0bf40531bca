# SPDX-License-Identifier: GPL-2.0-or-later
#
# The command `shstk`: every tools/*.c is linked into it. What it needs beside
# itself at run time (preloaded objects) is built by the fragments in the
# subfolders, into $(B)/, and named in TOOL_OBJECTS to be installed.

TOOL_SRC	:= $(wildcard tools/*.c)
TOOL_OBJ	:= $(TOOL_SRC:tools/%.c=$(B)/tools/%.o)
TOOL_OBJECTS	:=
TOOL_LIBS	= $(SYMBOL_LIBS)
TOOL_CFLAGS	:= $(CSTD) $(WARN) $(OPT) $(CPPFLAGS_COMMON) -pthread \
	-DSHSTK_VERSION='"$(VERSION)"' -DSHSTK_OBJDIR='"$(LIBDIR)/shstk"'

include $(wildcard tools/*/build.mk)

$(B)/tools/%.o: tools/%.c tools/build.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/shstk: $(TOOL_OBJ) $(B)/libshstk-symbol.a $(B)/libshstk.a
	$(call say,LD,$@)$(CC) $(OPT) -pthread -o $@ $^ $(TOOL_LIBS)

all: $(B)/shstk $(TOOL_OBJECTS)

# On a fresh machine the packages come first: nothing is compiled before.
demo:
	$(Q)if [ -x .ci/packages-install ]; then .ci/packages-install build demo; fi
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo $(B)

BINDIR		?= $(PREFIX)/bin
INCLUDEDIR	?= $(PREFIX)/include
MANDIR		?= $(PREFIX)/share/man

install: all man
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/shstk \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) \
		$(DESTDIR)$(MANDIR)/man1
	install -m 755 $(B)/shstk $(DESTDIR)$(BINDIR)
	$(if $(TOOL_OBJECTS),install -m 644 $(TOOL_OBJECTS) $(DESTDIR)$(LIBDIR)/shstk)
	install -m 644 libshstk/shstk.h $(DESTDIR)$(INCLUDEDIR)
	install -m 644 $(B)/libshstk.a $(DESTDIR)$(LIBDIR)
	install -m 644 $(B)/libshstk.so $(DESTDIR)$(LIBDIR)/libshstk.so.$(VERSION)
	ln -sf libshstk.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libshstk.so.0
	ln -sf libshstk.so.0 $(DESTDIR)$(LIBDIR)/libshstk.so
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' \
		'includedir=$(INCLUDEDIR)' '' 'Name: libshstk' \
		'Description: Stack traces from shadow stacks' \
		'Version: $(VERSION)' 'Libs: -L$${libdir} -lshstk' \
		'Libs.private: -pthread -ldl' 'Cflags: -I$${includedir}' \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/libshstk.pc
	install -d $(DESTDIR)$(MANDIR)/man3
	install -m 644 $(filter %.1,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(filter %.3,$(MAN_PAGES)) $(DESTDIR)$(MANDIR)/man3
