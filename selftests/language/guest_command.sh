#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   guest_command.sh TEST FUNCTION,... [FILE...]
#
# Runs in a guest: these functions of a test of the command, with the guest's Python. The FILEs are arguments
# so that they are copied into the guest, where they all lie in this folder.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp selftests/broker selftests/language build/selftests/language
for file in *; do
	case $file in
	harness.py | pprof.py) cp "$file" selftests ;;
	lending.py) cp "$file" selftests/broker ;;
	*.py) cp "$file" selftests/language ;;
	truth | publish_word.so | effects) cp "$file" build/selftests/language ;;
	shstk | libshstk-*.so | shstk-*.bpf.o) cp "$file" build ;;
	esac
done
cp build/shstk-language.bpf.o build/selftests/language # beside truth

# Core files are to lie where the program works, and users are to need the broker, as they do elsewhere.
echo core >/proc/sys/kernel/core_pattern
echo 2 >/proc/sys/kernel/perf_event_paranoid
IFS=,
# shellcheck disable=SC2086	# there are several functions
EFFECTS=$PWD/build/selftests/language/effects ROUNDS=100 SECONDS=4 SAMPLES=300 python3 "selftests/language/$1.py" $2
status=$?
# As the guest's first process (selftests/guest/init.c) has set them.
echo /tmp/core >/proc/sys/kernel/core_pattern
echo -1 >/proc/sys/kernel/perf_event_paranoid
exit $status
