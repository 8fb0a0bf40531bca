#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Has a program of each architecture dump itself, and unwinds the dumps here.

here=$(dirname "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

arm64=
"$here/dump" >"$dir/native"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
if [ -n "$qemu" ]; then
	arm64=$dir/arm64
	"$qemu" "$here/arm64/dump-static" >"$arm64"
	# The emulator shows the maps of its program, but not always with the file's name.
	grep -aq "^map" "$arm64" || { echo "no maps in the dump"; exit 1; }
fi
"$here/dump_test" native="$dir/native" arm64="$arm64"
