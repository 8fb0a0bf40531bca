# SPDX-License-Identifier: GPL-2.0-or-later
#
# Says which files are installed and where, for packages and for make install.
#
#   make uninstall  remove what make install put there: same PREFIX, DESTDIR and others
#   make sbom       write a list of all files with their licences (SPDX) into build/shstk.spdx
#   make abi        write the libraries' interfaces into packaging/abi/, for a release

BINDIR		?= $(PREFIX)/bin
INCLUDEDIR	?= $(PREFIX)/include
DATADIR		?= $(PREFIX)/share
MANDIR		?= $(DATADIR)/man
UNITDIR		?= $(PREFIX)/lib/systemd/system
SYSCONFDIR	?= /etc
BASHDIR		?= $(DATADIR)/bash-completion/completions
ZSHDIR		?= $(DATADIR)/zsh/site-functions
FISHDIR		?= $(DATADIR)/fish/vendor_completions.d
PKGCONFIGDIR	?= $(LIBDIR)/pkgconfig
CMAKEDIR	?= $(LIBDIR)/cmake/shstk

# An entry for each file, and an entry for one file that gets another name. $(1) is the mode, $(2)
# the files, $(3) the folder or the new path.
to = $(foreach f,$(2),$(1):$(f):$(3)/$(notdir $(f)))
to_file = $(1):$(2):$(3)
# An entry for a template, in which words such as @LIBDIR@ are replaced.
to_filled = fill:$(1):$(2)
# An entry for a configuration file, which is left as it is if it is there already. make uninstall
# removes it unless it was changed.
to_config = config:$(1):$(2)/$(notdir $(1))
# The three names of a shared library in $(B): the file, whose name has the version, and two links.
# $(1) is the library.
to_library = $(call to_file,644,$(B)/$(1),$(LIBDIR)/$(1).$(VERSION)) \
	link:$(1).$(VERSION):$(LIBDIR)/$(1).0 link:$(1).0:$(LIBDIR)/$(1)

# The list for install and uninstall. Its entries are MODE:FILE:WHERE; MODE may be fill, link or
# config.
INSTALLED = \
	$(call to,755,$(B)/shstk,$(BINDIR)) \
	$(call to,644,$(TOOL_OBJECTS),$(LIBDIR)/shstk) \
	$(call to,755,$(TOOL_PROGRAMS),$(LIBDIR)/shstk) \
	$(call to,644,$(sort $(wildcard libshstk/shstk*.h)) bindings/cpp/shstk.hpp bpf/shstk_stack.bpf.h,$(INCLUDEDIR)) \
	$(call to,644,$(B)/libshstk.a,$(LIBDIR)) \
	$(call to_library,libshstk.so) \
	$(call to_library,libshstk-symbolize.so) \
	$(call to_library,libshstk-go-symbolize.so) \
	$(call to_library,libshstk-crash.so) \
	$(call to_library,libshstk-bpf.so) \
	$(foreach n,libshstk libshstk-symbolize libshstk-crash libshstk-bpf,\
		$(call to_filled,packaging/$(n).pc.in,$(PKGCONFIGDIR)/$(n).pc)) \
	$(foreach n,shstk-config shstk-config-version,\
		$(call to_filled,packaging/$(n).cmake.in,$(CMAKEDIR)/$(n).cmake)) \
	$(call to_filled,tools/rules/shstkd.service,$(UNITDIR)/shstkd.service) \
	$(call to_filled,tools/record/shstkd-profile.service,$(UNITDIR)/shstkd-profile.service) \
	$(call to_config,tools/record/profile.conf,$(SYSCONFDIR)/shstk) \
	$(call to_filled,tools/broker/shstk-broker.service,$(UNITDIR)/shstk-broker.service) \
	$(call to,644,tools/broker/shstk-broker.socket,$(UNITDIR)) \
	$(call to_file,644,$(B)/completion.bash,$(BASHDIR)/shstk) \
	$(call to_file,644,$(B)/completion.zsh,$(ZSHDIR)/_shstk) \
	$(call to_file,644,$(B)/completion.fish,$(FISHDIR)/shstk.fish) \
	$(call to,644,$(filter %.1,$(MAN_PAGES)),$(MANDIR)/man1) \
	$(call to,644,$(filter %.3,$(MAN_PAGES)),$(MANDIR)/man3)
# Folders that only this project uses.
INSTALLED_FOLDERS = $(LIBDIR)/shstk $(CMAKEDIR) $(SYSCONFDIR)/shstk
INSTALL_WORDS = PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' \
	INCLUDEDIR='$(INCLUDEDIR)' SYSCONFDIR='$(SYSCONFDIR)' VERSION='$(VERSION)'

install: all man
	$(Q)$(INSTALL_WORDS) packaging/install '$(DESTDIR)' $(INSTALLED)

uninstall:
	$(Q)packaging/install --remove '$(DESTDIR)' $(INSTALLED) -- $(INSTALLED_FOLDERS)

sbom:
	@mkdir -p $(B)
	$(Q)packaging/sbom $(VERSION) >$(B)/shstk.spdx
	@echo $(B)/shstk.spdx

abi: all
	$(Q)packaging/abi/keep $(B)

.PHONY: uninstall sbom abi
