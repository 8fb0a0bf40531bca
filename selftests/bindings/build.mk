# SPDX-License-Identifier: GPL-2.0-or-later
#
# bindings/: what the library gives to other languages, beside what it gives to C.

BINDINGS_TESTS := $(addprefix selftests/bindings/,cpp_test.py ctypes_test.py rust_test.py)

$(BINDINGS_TESTS): | all man

CHECK	+= $(BINDINGS_TESTS)
