# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the manual pages: every Documentation/NAME.N.rst becomes $(B)/man/NAME.N.
#
#   make man        build the manual pages

RST2MAN		?= rst2man
MAN_PAGES	:= $(patsubst Documentation/%.rst,$(B)/man/%,$(sort $(wildcard Documentation/*.[1-8].rst)))

# Adds what rst2man leaves out: the date, the version, and names of fonts that all readers know.
# Pictures, which only other readers can show, are left out.
$(B)/man/%: Documentation/%.rst Documentation/man.sed Makefile
	@mkdir -p $(@D)
	$(call say,MAN,$@)sed '/^\.\. image::/,/^$$/d' $< | $(RST2MAN) --strict - $@.raw && \
		sed -f Documentation/man.sed -e 's/@DATE@/$(VERSION_DATE)/; s/@VERSION@/$(VERSION)/' \
		$@.raw >$@ && rm $@.raw

man: $(MAN_PAGES)

.PHONY: man
