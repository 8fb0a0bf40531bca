# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs from npm that tests use, each in one version whose bytes are known, kept in the cache. No
test needs them: where there is neither network nor cache, the test is skipped."""

import base64
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile

from harness import Skip

CACHE = os.environ.get('SHSTK_CACHE', os.path.expanduser('~/.cache/shstk'))
LIMIT = 60      # seconds that getting a package may take
REFUSED = {}    # why one can't be got here: no case waits for the network a second time


def is_it(path, integrity):
    """Whether a file is the one that npm calls by this hash: "sha512-" and base64."""
    with open(path, 'rb') as file:
        found = hashlib.sha512(file.read()).digest()
    return integrity == 'sha512-' + base64.b64encode(found).decode()


def get(name, version, integrity, new, home):
    """Gets a package into the folder @new, and moves it to @home."""
    quiet = {'cwd': new, 'timeout': LIMIT, 'check': True, 'stdin': subprocess.DEVNULL,
             'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    subprocess.run(['npm', 'pack', '--silent', '--fetch-retries=0', f'{name}@{version}'], **quiet)
    archive, = glob.glob(f'{new}/*.tgz') or ['']
    if not archive or not is_it(archive, integrity):
        raise OSError(f'what came is not version {version} as it is known here')
    os.mkdir(f'{new}/it')
    subprocess.run(['tar', 'xzf', archive, '-C', 'it'], **quiet)
    os.rename(f'{new}/it', home)


def npm_package(name, version, integrity):
    """Returns the folder of a package, which is got from npm unless it is in the cache. What "npm view
    NAME@VERSION dist.integrity" prints tells that it is the same as ever."""
    home = os.path.join(CACHE, 'npm', f'{name}-{version}')
    folder = os.path.join(home, 'package')
    if os.path.isdir(folder):
        return folder
    if home in REFUSED:
        raise Skip(REFUSED[home])
    if not shutil.which('npm'):
        raise Skip(f'no {folder}, and no npm to get it')
    try:
        os.makedirs(os.path.dirname(home), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(home)) as new:
            get(name, version, integrity, new, home)
    except (OSError, subprocess.SubprocessError) as error:
        # Another test may have been faster.
        if not os.path.isdir(folder):
            REFUSED[home] = f'{name} cannot be got from npm here: {error}'
            raise Skip(REFUSED[home]) from error
    return folder
