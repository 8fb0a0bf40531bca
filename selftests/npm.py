# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs from npm that tests use, each in one version, kept in the cache. No test needs them: where
there is neither network nor cache, the test is skipped."""

import os
import shutil
import subprocess
import tempfile

from harness import Skip

CACHE = os.environ.get('SHSTK_CACHE', os.path.expanduser('~/.cache/shstk'))
LIMIT = 60      # seconds that getting a package may take


def npm_package(name, version):
    """Returns the folder of a package, which is got from npm unless it is in the cache."""
    home = os.path.join(CACHE, 'npm', f'{name}-{version}')
    folder = os.path.join(home, 'package')
    if os.path.isdir(folder):
        return folder
    if not shutil.which('npm'):
        raise Skip(f'no {folder}, and no npm to get it')
    os.makedirs(os.path.dirname(home), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(home)) as new:
        os.mkdir(f'{new}/it')
        try:
            subprocess.run(['npm', 'pack', '--silent', '--fetch-retries=0', f'{name}@{version}'],
                           cwd=new, timeout=LIMIT, check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.run(['sh', '-c', 'tar xzf ./*.tgz -C it'], cwd=new, timeout=LIMIT, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise Skip(f'{name} cannot be got from npm here: {error}') from error
        try:
            os.rename(f'{new}/it', home)
        except OSError:
            # Another test was faster.
            if not os.path.isdir(folder):
                raise
    return folder
