#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   guest.sh [FILE...]
#
# Runs in a guest, where the files only have to be there: Python's functions in stacks, under the
# verifier of that kernel, with the Python that is there.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp
exec python3 ./python_test.py 500 /usr/bin/python3
