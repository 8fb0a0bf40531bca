#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs library_test with the command that was built, beside which its BPF programs are.

here=$(cd "$(dirname "$0")" && pwd)
exec "$here/library_test" "$here/../../shstk"
