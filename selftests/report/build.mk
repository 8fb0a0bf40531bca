# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk report` and `shstk diff`: their input is written by the driver of selftests/export, by go
# tool pprof, and by hand. Annotated functions are recorded by `shstk record`.

selftests/report/report_test.py: | $(EXPORT_B)/driver-native $(B)/shstk

selftests/report/annotate_test.py: | all

CHECK += selftests/report/report_test.py selftests/report/annotate_test.py
