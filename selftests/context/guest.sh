#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   guest.sh [FILE...]
#
# Runs in a guest: trace contexts that the BPF walk reads, on the guest's architecture. The FILEs are
# arguments so that they are copied into the guest, where they all lie in this folder.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp selftests/context selftests/language build/selftests/context
cp harness.py pprof.py selftests
cp context_test.py selftests/context
cp permitted.py selftests/language
cp publish build/selftests/context
cp shstk shstk-walk.bpf.o build
# The command for arm64 makes only pprof's files.
SWITCHES=20000 NAPS=500 SUFFIX=.pb.gz exec python3 selftests/context/context_test.py walked off_cpu_walked
