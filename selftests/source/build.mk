# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the sources as text: their format, the order of their folders, the makefiles, and the
# documents.
#
#   make format     write every C and C++ source as .clang-format wants it
#   make check-format  name the sources whose format is another one

format:
	$(Q)selftests/source/format_test.sh --write

check-format:
	$(Q)selftests/source/format_test.sh

CHECK	+= selftests/source/format_test.sh selftests/source/documents_test.py \
	selftests/source/folders_test.py selftests/source/makefiles_test.py

.PHONY: format check-format
