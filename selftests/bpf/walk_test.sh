#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   walk_test.sh [many=SAMPLES [sums=FOLDER]]
#
# Runs walk.sh on this machine, if its kernel permits that.

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
for file in walk.sh cases.sh chains judge shstk throw input.i shstk-walk.bpf.o; do
	[ ! -e "$here/$file" ] || ln -s "$here/$file" .
done
case ${1-} in
many=*) sh ./walk.sh "$@" bash python3 sqlite3 perl gcc openssl git tar xz c++ node;;
*) sh ./walk.sh python3 bash perl sqlite3 xz git;;
esac
