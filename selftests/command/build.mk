# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests of the command line: options, help, exit statuses, what is written where, completion, and
# that the manual pages say the same.

COMMAND_B	:= $(B)/selftests/command

$(COMMAND_B)/target: selftests/command/target.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -pthread -o $@ $<

selftests/command/command_test.py: | $(COMMAND_B)/target all
selftests/command/width_test.py: | $(B)/selftests/record/long_names all

CHECK	+= selftests/command/command_test.py selftests/command/width_test.py
