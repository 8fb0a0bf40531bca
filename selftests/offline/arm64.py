# SPDX-License-Identifier: GPL-2.0-or-later
"""The command for arm64, run by an emulator: another machine than this one."""

import os
import shutil

from harness import BUILD, Skip, run

QEMU = shutil.which('qemu-aarch64-static') or shutil.which('qemu-aarch64')
ARM64_ROOT = os.path.join(os.environ.get('SHSTK_CACHE') or
                          os.path.expanduser('~/.cache/shstk'), 'root-arm64')
ARM64_SHSTK = os.path.join(BUILD, 'selftests', 'record', 'arm64', 'shstk')


def on_arm64(*args):
    """Run the command for arm64."""
    # The emulator, too, asks by access(2) whether it may look there.
    if not QEMU or not os.path.exists(ARM64_SHSTK) or not os.access(
            os.path.join(ARM64_ROOT, 'lib', 'ld-linux-aarch64.so.1'), os.R_OK):
        raise Skip('no emulator, or no arm64 libraries')
    return run(QEMU, '-L', ARM64_ROOT, ARM64_SHSTK, *args)
