#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   guest.sh [FILE...]
#
# Runs in a guest: tests Python's functions in stacks with the guest's Python, and the BPF program
# with the verifier of the guest's kernel. The FILEs are arguments so that they are copied into the
# guest.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp
exec python3 ./python_test.py 500 /usr/bin/python3
