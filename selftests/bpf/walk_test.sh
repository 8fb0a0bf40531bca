#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs walk.sh on this machine, if its kernel permits that.

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
for file in walk.sh cases.sh chains judge shstk; do
	ln -s "$here/$file" .
done
sh ./walk.sh python3 bash perl sqlite3 xz git
