# SPDX-License-Identifier: GPL-2.0-or-later
#
# `shstk push`: what servers receive, and servers that misbehave, on this machine.

selftests/push/push_test.py: | $(B)/shstk $(TOOL_PROGRAMS)

CHECK += selftests/push/push_test.py
