#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is written for people: every document builds without a warning, another one
names it, and the files of the tree that it names are there, as are the programs of the tree that
build files run. Prints KTAP.
"""

import glob
import io
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TOP, check, main, test  # noqa: E402

try:
    from docutils.core import publish_string
except ImportError:
    publish_string = None

# What is looked at of names in ``...`` or `...`: paths from the top of the tree.
PATH = re.compile(r'`((?:kmod|uapi|libshstk|bindings|tools|selftests|Documentation|LICENSES|\.ci)'
                  r'/[\w./-]+)`')
LINK = re.compile(r'\]\(([^)#:]+)\)')      # Markdown's, within the tree
# A program of the tree that a recipe of make begins with.
RUN = re.compile(r'^\t-?\$\(Q\)((?:\.ci|tools|selftests|packaging)/[\w./-]+)(?=\s)', re.M)
MANUAL = re.compile(r'\.[1-8]\.rst$')
PICTURE = re.compile(r'^\.\. image::.*?^$', re.M | re.S)    # left out of manual pages, as make does


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def builds(names, publish):
    """Each page as HTML, those of the manual as such pages too."""
    for page in names:
        for writer in ['html'] + ['manpage'] * bool(MANUAL.search(page)):
            said = io.StringIO()
            settings = {'halt_level': 1, 'report_level': 1, 'warning_stream': said,
                        'traceback': True}
            text = read(page)
            if writer == 'manpage':
                text = PICTURE.sub('', text)
            try:
                publish(text, source_path=page, writer_name=writer,
                        settings_overrides=settings)
            except Exception as error:          # pylint: disable=broad-except
                yield f'{page}, as {writer}: {said.getvalue().strip() or error}'


def unnamed(names):
    """Documents that one has to know of. Manual pages are found by man."""
    texts = {page: read(page) for page in names + glob.glob('*.md')}
    for page in names:
        name = os.path.basename(page)
        if MANUAL.search(page):
            continue
        if not any(re.search(r'(?<![\w-])' + re.escape(name), text)
                   for other, text in texts.items() if other != page):
            yield f'{page}: no other document names it'


def unlisted(names):
    """Documents, manual pages too, that the list of all of them lacks."""
    text = read('Documentation/index.rst')
    for page in names:
        name = os.path.basename(page)
        if name != 'index.rst' and f'<{name}>`' not in text:
            yield f'{page}: not in Documentation/index.rst'


def dangling(names):
    for page in names + sorted(glob.glob('*.md')):
        text = read(page)
        for path in sorted(set(PATH.findall(text) + LINK.findall(text))):
            if not os.path.exists(path):
                yield f'{page}: {path} is not there'


def build_files():
    """The files that make reads."""
    found = glob.glob('**/*.mk', recursive=True)
    return ['Makefile'] + sorted(path for path in found if not path.startswith('build/'))


def not_programs(names):
    """Programs that recipes run and that are not there, or are no programs."""
    for page in names:
        for path in sorted(set(RUN.findall(read(page)))):
            if not os.path.isfile(path) or not os.access(path, os.X_OK):
                yield f'{page}: {path} is not a program'


def none(found):
    """Fail the test with each line of what was found."""
    lines = list(found)
    check(not lines, '\n'.join(lines))


def pages():
    return sorted(glob.glob('Documentation/*.rst'))


@test
def documents_build():
    """every document builds without a warning"""
    none(builds(pages(), publish_string))


@test
def documents_are_named():
    """every document is named by another one"""
    none(unnamed(pages()))


@test
def documents_are_listed():
    """every document is in the index"""
    none(unlisted(pages()))


@test
def files_are_there():
    """files that documents name are there"""
    none(dangling(pages()))


@test
def recipes_run_programs():
    """what recipes of make run of this tree are programs"""
    check(any(RUN.findall(read(page)) for page in build_files()), 'no recipe runs a program')
    none(not_programs(build_files()))


if __name__ == '__main__':
    os.chdir(TOP)
    sys.exit(main(lambda: None if publish_string else
                  "no docutils: Debian's package python3-docutils"))
