#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that nothing in the broker's unit gives it a /proc of its own, as systemd.exec(5) says of these
# directives. It compares files in /proc with those that users have open, and in another /proc all are
# other files: nobody would be lent anything. make check-systemd tries the unit itself.

cd "$(dirname "$0")/../.." || exit 1
unit=tools/broker/shstk-broker.service
other='ProtectProc|ProcSubset|ProtectKernelTunables|ProtectControlGroups|MountAPIVFS'
other="$other|PrivatePIDs|PrivateUsers|DelegateNamespaces|RootDirectory|RootImage|RootEphemeral"

echo TAP version 13
echo 1..1
if grep -q '^\[Service\]' "$unit" && ! grep -E "^($other)=" "$unit" | sed 's/^/# /' | grep .; then
	echo "ok 1 the broker's unit keeps the /proc that users have"
else
	echo "not ok 1 the broker's unit keeps the /proc that users have"
	exit 1
fi
