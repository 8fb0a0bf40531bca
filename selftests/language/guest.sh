#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   guest.sh [FILE...]
#
# Runs in a guest: tests Python's functions in stacks with the guest's Python, and the BPF program
# with the verifier of the guest's kernel. The FILEs are arguments so that they are copied into the
# guest, where they all lie in this folder.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp selftests/language build/selftests/language
cp harness.py selftests
cp python_test.py truth_runs.py judge.py program.py selftests/language
cp truth shstk-language.bpf.o build/selftests/language
SAMPLES=500 exec python3 selftests/language/python_test.py
