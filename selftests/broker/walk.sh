#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   walk.sh TEST [FILE...]
#
# Runs in a guest: walk_test, frames_test or native_frames_test with the verifier of the guest's kernel and its
# kernel.perf_event_paranoid. The FILEs are arguments so that they are copied into the guest, where they
# all lie in this folder.

export PATH=/usr/bin:/bin HOME=/
mkdir -p /tmp
chmod 755 / /tmp .
exec "./${1##*/}" ./shstk
