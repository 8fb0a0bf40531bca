# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk report` and `shstk diff`: their input is written by the driver of selftests/export, by go
# tool pprof, and by hand.

selftests/report/report_test.py: | $(EXPORT_B)/driver-native $(B)/shstk

CHECK += selftests/report/report_test.py
