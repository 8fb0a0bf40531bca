# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the command for arm64 in an emulator: a machine other than this one."""

import os
import shutil

from harness import BUILD, Skip, run

QEMU = shutil.which('qemu-aarch64-static') or shutil.which('qemu-aarch64')
ARM64_ROOT = os.path.join(os.environ.get('SHSTK_CACHE') or
                          os.path.expanduser('~/.cache/shstk'), 'root-arm64')
ARM64_SHSTK = os.path.join(BUILD, 'selftests', 'record', 'arm64', 'shstk')


def on_arm64(*args):
    """Runs the command for arm64."""
    # The emulator also checks by access(2) whether it may read the folder.
    if not QEMU or not os.path.exists(ARM64_SHSTK) or not os.access(
            os.path.join(ARM64_ROOT, 'lib', 'ld-linux-aarch64.so.1'), os.R_OK):
        raise Skip('no emulator, or no arm64 libraries')
    return run(QEMU, '-L', ARM64_ROOT, ARM64_SHSTK, *args)
