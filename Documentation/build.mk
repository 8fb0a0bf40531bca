# SPDX-License-Identifier: GPL-2.0-or-later
#
# Manual pages: every Documentation/NAME.N.rst becomes $(B)/man/NAME.N.
#
#   make man        build the manual pages

RST2MAN		?= rst2man
MAN_PAGES	:= $(patsubst Documentation/%.rst,$(B)/man/%,$(wildcard Documentation/*.[1-8].rst))

$(B)/man/%: Documentation/%.rst
	@mkdir -p $(@D)
	$(call say,MAN,$@)$(RST2MAN) --strict $< $@

man: $(MAN_PAGES)

.PHONY: man
