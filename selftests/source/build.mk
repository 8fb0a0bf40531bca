# SPDX-License-Identifier: GPL-2.0-or-later
#
# The sources as text: their format, and the documents.
#
#   make format     write every C and C++ source as .clang-format wants it
#   make check-format  say which are not

SOURCE_B	:= $(B)/selftests/source

$(SOURCE_B)/%_test: selftests/source/%_test
	@mkdir -p $(@D)
	$(Q)cp $< $@

format:
	$(Q)selftests/source/format_test --write

check-format:
	$(Q)selftests/source/format_test

CHECK	+= $(addprefix $(SOURCE_B)/,format_test documents_test)

.PHONY: format check-format
