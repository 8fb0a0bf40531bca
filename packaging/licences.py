# SPDX-License-Identifier: GPL-2.0-or-later
"""The licence of each file: its own SPDX line, else what REUSE.toml says.

That is the part of https://reuse.software/spec-3.3/ that this tree uses; reuse(1) of Debian 13
and later knows all of it, that of Debian 12 knows no REUSE.toml.
"""

import os
import re
import shutil
import subprocess
import tomllib

# In two pieces: this line names no licence.
TAG = re.compile(rb'SPDX-License-' + rb'Identifier:[ \t]*([\w.+-]+(?: WITH [\w.+-]+)?)')


def known_to_git(top):
    """The files that git has; None if there is no git or no repository. Whoever owns the tree:
    git itself refuses another user's, root's too."""
    if not os.path.exists(os.path.join(top, '.git')) or not shutil.which('git'):
        return None
    out = subprocess.run(['git', '-c', 'safe.directory=*', '-C', top, 'ls-files', '-z'], check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    return out.split('\0')[:-1]


def files(top):
    """The files of the tree: what git has, or all that is there if it cannot be asked."""
    names = known_to_git(top)
    if names is None:
        names = [os.path.relpath(os.path.join(folder, name), top)
                 for folder, _, found in os.walk(top) for name in found]
        names = [n for n in names if not n.startswith(('build/', '.git/')) and n != '.git' and
                 '__pycache__' not in n]
    return sorted(n for n in names if not n.startswith('LICENSES/') and
                  os.path.isfile(os.path.join(top, n)) and
                  not os.path.islink(os.path.join(top, n)))


def pattern(path):
    """A path of REUSE.toml as an expression: ** crosses folders, * does not."""
    parts = re.split(r'(\*\*|\*)', path)
    return re.compile(''.join({'**': '.*', '*': '[^/]*'}.get(p) or re.escape(p) for p in parts))


def annotations(top):
    """(paths, licence or None, holder) of each entry of REUSE.toml."""
    with open(os.path.join(top, 'REUSE.toml'), 'rb') as file:
        for entry in tomllib.load(file)['annotations']:
            paths = entry['path']
            yield ([pattern(p) for p in ([paths] if isinstance(paths, str) else paths)],
                   entry.get('SPDX-License-Identifier'), entry['SPDX-FileCopyrightText'])


def licences(top):
    """(path, licence or None, holder or None) of each file."""
    entries = list(annotations(top))
    for name in files(top):
        licence, holder = None, None
        for paths, said, whose in entries:      # the last one that fits
            if any(p.fullmatch(name) for p in paths):
                licence, holder = said, whose
        with open(os.path.join(top, name), 'rb') as file:
            own = TAG.search(file.read(4096))
        yield name, own[1].decode() if own else licence, holder


def names(licence):
    """The texts that a licence needs: GPL-2.0-only WITH Linux-syscall-note needs two."""
    return licence.split(' WITH ')
