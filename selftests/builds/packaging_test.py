#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What packages are made from: install and uninstall, how other build systems find the
libraries, completions, manual pages, licences, interfaces, the files of Debian's packages.
Prints KTAP. `make check-packages` makes the packages themselves.
"""

import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, 'packaging')         # tests run at the top of the tree
from harness import BUILD, LIMIT, TMP, Skip, check, equal, main, test    # noqa: E402
import licences                                                     # noqa: E402

LIBRARIES = ('libshstk', 'libshstk-symbolize', 'libshstk-go-symbolize', 'libshstk-crash',
             'libshstk-bpf')
MAPS = {'libshstk0': 'libshstk/libshstk.map',
        'libshstk-symbolize0': 'libshstk/symbolize/libshstk-symbolize.map',
        'libshstk-go-symbolize0': 'libshstk/go/symbolize/libshstk-go-symbolize.map',
        'libshstk-crash0': 'libshstk/crash/libshstk-crash.map',
        'libshstk-bpf0': 'libshstk/bpf/libshstk-bpf.map'}


def need(*commands):
    """Skip the test where a command is missing."""
    for command in commands:
        if not shutil.which(command):
            raise Skip(f'no {command} here')


def clean_environment(**more):
    """The environment without what make put there."""
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith('MAKE') and k not in ('MFLAGS', 'GNUMAKEFLAGS')}
    return {**kept, **more}


def run(*command, ok=True, env=None, cwd=None):
    """Run a command; both its outputs as one text."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT, check=False, cwd=cwd,
                          env=env or clean_environment())
    check(not ok or done.returncode == 0, f'{" ".join(command)}: {done.returncode}\n{done.stdout}')
    return done.stdout


def content(name):
    """What a file holds."""
    with open(name, encoding='utf-8') as file:
        return file.read()


def make(target, destdir, *words):
    """make install or uninstall; what is built must not be built again in another way."""
    run('make', '-s', target, f'B={os.path.relpath(BUILD)}', f'DESTDIR={destdir}', *words)


def installed(destdir):
    """Paths of the files and links below a folder."""
    return {'/' + os.path.relpath(os.path.join(folder, name), destdir)
            for folder, _, names in os.walk(destdir) for name in names}


def root():
    """A folder with all that is installed, made once."""
    folder = os.path.join(TMP, 'root')
    if not os.path.exists(folder):
        make('install', folder, 'PREFIX=/usr')
    return folder


# --- install ---

@test
def uninstall_leaves_nothing():
    """make uninstall removes all that make install put there, and nothing else"""
    folder = os.path.join(TMP, 'un')
    make('install', folder, 'PREFIX=/opt/one')
    put = installed(folder)
    check(len(put) > 40, f'{put}')
    foreign = f'{folder}/opt/one/lib/shstk/foreign'
    with open(foreign, 'w', encoding='utf-8'):
        pass
    make('uninstall', folder, 'PREFIX=/opt/one')
    left = installed(folder)
    check(left == {'/opt/one/lib/shstk/foreign'}, f'left: {left}')
    os.unlink(foreign)
    make('uninstall', folder, 'PREFIX=/opt/one')
    check(not os.path.exists(f'{folder}/opt/one/lib/shstk'), 'an empty folder is left')


@test
def configuration_stays():
    """make install leaves a configuration file as it is, make uninstall one that was changed"""
    folder, name = os.path.join(TMP, 'conf'), '/etc/shstk/profile.conf'
    make('install', folder)
    changed = content(folder + name) + '# changed\n'
    with open(folder + name, 'w', encoding='utf-8') as file:
        file.write(changed)
    make('install', folder)
    check(content(folder + name) == changed, 'make install has changed it')
    make('uninstall', folder)
    left = installed(folder)
    check(left == {name} and content(folder + name) == changed, f'left: {left}')


@test
def installed_files_have_modes():
    """files that are installed may be read by all and written by their owner only"""
    for path in installed(root()):
        full = root() + path
        if not os.path.islink(full):
            mode = os.stat(full).st_mode & 0o7777
            # shstk-push is a program that only the command starts.
            program = '/bin/' in path or os.path.basename(path) == 'shstk-push'
            check(mode == (0o755 if program else 0o644), f'{path}: {mode:o}')


@test
def linked_program_is_marked():
    """shstk check: a program that is linked with libshstk is not kept from shadow stacks by it"""
    need('gcc')
    program = os.path.join(TMP, 'linked')
    run('gcc', '-o', program, '-DWITHOUT_NAMES', f'-I{root()}/usr/include',
        'packaging/consumer/consumer.c', f'-L{root()}/usr/lib', '-lshstk',
        f'-Wl,-rpath,{root()}/usr/lib')
    out = run(f'{root()}/usr/bin/shstk', 'check', '--json', '--all', '--no-packages', program,
              ok=False)
    objects = {os.path.basename(o['path']): o['marked']
               for o in json.loads(out)[0]['objects']}
    ours = [name for name in objects if name.startswith('libshstk.so')]
    check(len(ours) == 1, f'{objects}')
    if os.uname().machine == 'riscv64':
        raise Skip('compilers do not mark code of riscv64 yet')
    check(objects[ours[0]], f'not marked: {objects}')


def wanted_marks(name):
    """What readelf has to say of an object that is installed: how it is ready for shadow stacks."""
    machine = os.uname().machine
    if machine == 'x86_64' and name != 'libshstk-start.so':     # for C libraries that see no marks
        return ['SHSTK'] if name == 'shstk' else ['IBT', 'SHSTK']   # start files lack IBT's
    if machine == 'aarch64' and 'gcs=always' in run('ld', '--help'):
        return ['GCS']
    return []


def check_hardened(path):
    """Fail unless an object is read-only once it is bound, and stacks and code are what they are."""
    name = os.path.basename(path).split('.so')[0] + '.so' * ('.so' in path)
    out = run('readelf', '-hldnW', path)
    facts = {'what is bound can be written': 'GNU_RELRO' in out,
             'bound lazily': re.search(r'BIND_NOW|Flags:.*\bNOW\b', out),
             'the stack is executable': re.search(r'GNU_STACK .* RW ', out),
             'segments are written and run': not re.search(r'LOAD .* RWE ', out),
             'text is relocated': '(TEXTREL)' not in out,
             'a path is searched for libraries': not re.search(r'\((RPATH|RUNPATH)\)', out),
             'its place is fixed': re.search(r'Type: +DYN ', out)}
    for mark in wanted_marks(name):
        facts[f'no mark {mark}'] = re.search(rf'feature:.*\b{mark}\b', out)
    if name in ('shstk', 'libshstk-symbolize.so', 'libshstk-go-symbolize.so'):
        facts['no stack protector'] = '__stack_chk_fail' in run('readelf', '--dyn-syms', '-W', path)
    wrong = [fact for fact, holds in facts.items() if not holds]
    check(not wrong, f'{name}: {", ".join(wrong)}')


@test
def objects_are_hardened():
    """the command and all libraries: bound at the start, then read-only, marked for shadow stacks"""
    need('readelf')
    objects = [path for path in installed(root())
               if path == '/usr/bin/shstk' or re.search(r'\.so(\.\d+)*$', path)]
    check(len(objects) >= 8, f'{objects}')
    for path in objects:
        check_hardened(root() + path)


@test
def commands_are_fortified():
    """what is no capture is fortified by default, and not where the compiler optimises nothing"""
    for flags, wanted in ('-O2 -g', True), ('-g -O1', True), ('-O0', False), ('-g', False):
        out = run('make', '-n', 'V=1', f'CFLAGS={flags}', 'CPPFLAGS=', 'CC=gcc', f'B={TMP}/none',
                  f'{TMP}/none/shstk')
        lines = [line for line in out.splitlines() if ' -c ' in line and 'tools/shstk.c' in line]
        check(len(lines) == 1, f'{lines}')
        check(('-D_FORTIFY_SOURCE=' in lines[0]) == wanted, f'{flags}: {lines[0]}')


@test
def folders_leave_no_trace():
    """an object is the same, bit by bit, in whatever folder the tree lies"""
    need('gcc')
    objects = []
    for name in 'one', 'another/with/a/longer/name':
        folder = os.path.join(TMP, 'folders', name)
        for part in 'libshstk', 'uapi', 'packaging':
            shutil.copytree(part, f'{folder}/{part}')
        shutil.copy('Makefile', folder)
        run('make', 'CC=gcc', 'build/lib/native/cursor.o', cwd=folder,
            env=clean_environment(CCACHE_DISABLE='1'))
        with open(f'{folder}/build/lib/native/cursor.o', 'rb') as file:
            objects.append(file.read())
    check(b'cursor.c' in objects[0], 'no debug information')
    check(objects[0] == objects[1], 'they differ')


@test
def other_machines_are_refused():
    """make refuses compilers for other machines by name, before anything is built"""
    compiler = os.path.join(TMP, 'cc')
    for machine in 'i686-linux-gnu', 'powerpc64le-linux-gnu':
        with open(compiler, 'w', encoding='ascii') as file:
            file.write(f'#!/bin/sh\necho {machine}\n')
        os.chmod(compiler, 0o755)
        out = run('make', f'CC={compiler}', f'B={TMP}/none', 'all', ok=False)
        check(f'makes programs for {machine.split("-")[0]}' in out, out)
        check(not os.path.exists(f'{TMP}/none'), 'something was built')


@test
def short_pointers_are_refused():
    """make refuses a compiler or flags that make programs with pointers of 32 bits"""
    compiler = os.path.join(TMP, 'cc32')
    with open(compiler, 'w', encoding='ascii') as file:
        file.write('#!/bin/sh\ncase " $* " in\n*" -dumpmachine "*) echo x86_64-linux-gnu;;\n'
                   '*" -m32 "*) echo 4;;\n*) echo 8;;\nesac\n')
    os.chmod(compiler, 0o755)
    for words in ([f'CC={compiler} -m32'], [f'CC={compiler}', 'CFLAGS=-O2 -m32']):
        out = run('make', *words, f'B={TMP}/none', '-n', 'all', ok=False)
        check('pointers of 32 bits' in out, out)


# --- build systems ---

def consumer(name):
    """A copy of the program that uses the libraries."""
    folder = os.path.join(TMP, name)
    shutil.copytree('packaging/consumer', folder)
    return folder


def reports_its_crash(program, env):
    """Check that a program that crashes reports that with the command that was built. On a busy
    machine the command may be too late, and then there are addresses."""
    done = subprocess.run(['sh', '-c', 'ulimit -c 0; exec "$@"', 'sh', program, f'{BUILD}/shstk'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env,
                          timeout=LIMIT, check=False)
    reported = 'careless' in done.stderr or 'shstk-crash: signal 11' in done.stderr
    check(done.returncode == -signal.SIGSEGV and reported,
          f'{program}: {done.returncode}\n{done.stderr}')


def library_environment():
    """How what is installed in a folder of its own is found."""
    return clean_environment(
        LD_LIBRARY_PATH=f'{root()}/usr/lib', CMAKE_PREFIX_PATH=f'{root()}/usr',
        PKG_CONFIG_PATH=f'{root()}/usr/lib/pkgconfig', PKG_CONFIG_SYSROOT_DIR=root(),
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS='1', PKG_CONFIG_ALLOW_SYSTEM_LIBS='1')


def has_tables_made(program, env):
    """Check that a program with libshstk-bpf runs, and says what is missing."""
    check('/nonexistent: No such file' in run(program, '/nonexistent', ok=False, env=env), program)


@test
def cmake_finds_it():
    """CMake: find_package(shstk) gives targets, with which programs build and run"""
    need('cmake', 'gcc')
    folder, env = consumer('cmake'), library_environment()
    run('cmake', '-S', folder, '-B', f'{folder}/out', env=env)
    run('cmake', '--build', f'{folder}/out', env=env)
    check('main' in run(f'{folder}/out/consumer', env=env).splitlines(), 'main is no name')
    run(f'{folder}/out/consumer-static')
    has_tables_made(f'{folder}/out/bpf', env)
    reports_its_crash(f'{folder}/out/crash', env)


@test
def cmake_refuses_other_versions():
    """CMake: another minor version, and a component that is not there, are not found"""
    need('cmake', 'gcc')
    for asked in 'shstk 0.2 REQUIRED', 'shstk 1.0 REQUIRED', 'shstk REQUIRED COMPONENTS none':
        folder = tempfile.mkdtemp(dir=TMP)
        with open(f'{folder}/CMakeLists.txt', 'w', encoding='utf-8') as file:
            file.write('cmake_minimum_required(VERSION 3.18)\nproject(none C)\n'
                       f'find_package({asked})\nmessage(STATUS "it was found")\n')
        out = run('cmake', '-S', folder, '-B', f'{folder}/out', ok=False,
                  env=library_environment())
        check('it was found' not in out and 'shstk' in out, f'{asked}: {out}')


@test
def meson_finds_it():
    """Meson: dependency('libshstk-symbolize'), with which a program builds and runs"""
    need('meson', 'ninja', 'gcc', 'pkg-config')
    folder, env = consumer('meson'), library_environment()
    run('meson', 'setup', f'{folder}/out', folder, env=env)
    run('ninja', '-C', f'{folder}/out', env=env)
    check('main' in run(f'{folder}/out/consumer', env=env).splitlines(), 'main is no name')
    has_tables_made(f'{folder}/out/bpf', env)
    reports_its_crash(f'{folder}/out/crash', env)


# --- completion ---

def options():
    """{command: {option}} of the option tables."""
    found = {}
    for line in run(f'{BUILD}/shstk', '--completion-table').splitlines():
        command, long, short, _ = line.split(' ', 3)
        found.setdefault(command, set()).update({long, short} - {'-'})
    return found


@test
def zsh_has_every_option():
    """zsh: the completion is for _arguments, with every option of every command"""
    need('zsh')
    # _arguments by another one, which prints what it is called with.
    script = ('_arguments() { print -rl -- "$@"; state=argument; }; _describe() { : }\n'
              'words=("$2"); function compdef { }; . "$1"')
    for command, wanted in options().items():
        if command in ('shstk', 'help', 'version'):
            continue
        out = run('zsh', '-f', '-c', script, 'zsh', f'{BUILD}/completion.zsh', command)
        got = set(re.findall(r'^\*(--?[\w-]+?)[=+]?\[', out, re.M))
        check(got == wanted, f'{command}: {got ^ wanted}')


@test
def zsh_completes():
    """zsh: a key completes a command, an option, and a word behind it"""
    need('zsh')
    home = tempfile.mkdtemp(dir=TMP)
    shutil.copy(f'{BUILD}/completion.zsh', f'{home}/_shstk')
    with open(f'{home}/.zshrc', 'w', encoding='utf-8') as file:
        file.write(f'PS1=; fpath=({home} $fpath); autoload -Uz compinit\n'
                   f'compinit -u -d {home}/dump\nfunction shstk {{ print "got: $*" }}\n'
                   'print ready\n')
    try:
        pid, fd = pty.fork()
    except OSError as error:
        raise Skip(f'no terminal: {error}') from error
    if pid == 0:
        os.execvpe('zsh', ['zsh', '-i'], clean_environment(
            ZDOTDIR=home, HOME=home, TERM='dumb'))
    try:
        wait_for(fd, 'ready')
        for typed, wanted in (('shstk stat\t\n', 'got: status'),
                              ('shstk trace --each\t\n', 'got: trace --each-thread'),
                              ('shstk record --via ag\t\n', 'got: record --via agent')):
            os.write(fd, typed.encode())
            wait_for(fd, wanted)
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def wait_for(fd, text):
    """Read from a terminal until a text was seen."""
    seen, end = '', time.monotonic() + LIMIT
    while text not in seen:
        check(time.monotonic() < end, f'{text!r} does not come: {seen!r}')
        if select.select([fd], [], [], 1)[0]:
            try:
                seen += os.read(fd, 4096).decode(errors='replace')
            except OSError as error:
                raise AssertionError(f'{text!r} does not come: {seen!r}') from error


def fish_offers(line):
    """What fish offers for a line."""
    home = os.path.join(TMP, 'fish')
    os.makedirs(home, exist_ok=True)
    # Its words about the machine, as of folders that it may not have, are no offers.
    done = subprocess.run(
        ['fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]',
         f'{BUILD}/completion.fish', line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False,
        env=clean_environment(HOME=home, TERM='dumb'))
    check(done.returncode == 0, f'fish: {done.returncode} {done.stderr}')
    return {row.split('\t')[0] for row in done.stdout.splitlines()}


@test
def fish_completes():
    """fish: commands, every option of every command, and words behind options"""
    need('fish')
    table = options()
    check(set(table) - {'shstk'} <= fish_offers('shstk '), 'commands')
    for command, wanted in table.items():
        if command in ('shstk', 'help', 'version'):
            continue
        got = fish_offers(f'shstk {command} --')
        long = {o for o in wanted if o.startswith('--')}
        check({o.rstrip('=') for o in got} == long, f'{command}: {got ^ long}')
    check(fish_offers('shstk record --via ag') == {'agent'}, '--via')
    check('bash' in fish_offers('shstk record bas'), 'a command')
    check('list' in fish_offers('shstk rules l'), 'an operand')


# --- documents ---

def pages():
    """The manual pages."""
    found = glob.glob(f'{root()}/usr/share/man/man*/*')
    check(len(found) > 10, f'{found}')
    return sorted(found)


@test
def pages_are_clean():
    """manual pages: mandoc -T lint finds nothing to warn of"""
    need('mandoc')
    for page in pages():
        out = run('mandoc', '-T', 'lint', '-W', 'warning', page, ok=False)
        # The clock of this machine may be behind that of the one where the version was made.
        said = [line for line in out.splitlines() if 'date in the future' not in line]
        check(not said, '\n'.join(said))


@test
def pages_are_shown():
    """manual pages: man --warnings has none, and each has its date and version"""
    need('man', 'groff')
    version = re.search(r'^VERSION\s*:= (\S+)', content('Makefile'), re.M)[1]
    for page in pages():
        done = subprocess.run(
            ['man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', page], check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=LIMIT, env=clean_environment(LC_ALL='C.UTF-8', MANWIDTH='80',
                                                 MAN_DISABLE_SECCOMP='1'))
        # A column of a table may be too narrow to be filled evenly: no version of troff is content
        # with all of them, and nothing is wrong with the page.
        narrow = r"(can't break|cannot adjust) line(; (under|over)set by \d+n)?$"
        said = [line for line in done.stderr.splitlines() if not re.search(narrow, line)]
        check(done.returncode == 0 and not said, f'{page}: {said}')
        check(re.search(rf'^\.TH \S+ "?\d"? "\d{{4}}-\d\d-\d\d" "shstk {version}"',
                        content(page), re.M), f'{page}: no date and version')


# --- licences ---

@test
def every_file_is_licensed():
    """each file names its licence or REUSE.toml does; the texts are there, and no others"""
    used = set()
    for name, licence, holder in licences.licences('.'):
        check(licence and holder, f'{name}: licence {licence}, holder {holder}')
        used.update(licences.names(licence))
    texts = {name[:-len('.txt')] for name in os.listdir('LICENSES')}
    check(used == texts, f'licences {used}, texts {texts}')


@test
def bill_has_every_file():
    """the SBOM: every file with its sum and licence, the same text each time"""
    one, two = (run('packaging/sbom', '1.2.3') for _ in range(2))
    check(one == two, 'two differ')
    bill = json.loads(one)
    check(bill['spdxVersion'] == 'SPDX-2.3', 'version')
    names = [entry['fileName'][2:] for entry in bill['files']]
    check(names == licences.files('.'), 'files')
    identities = [e['SPDXID'] for e in bill['files'] + bill['packages']]
    check(len(set(identities)) == len(identities), 'an identity stands twice')
    check('libdw-dev' in [p['name'] for p in bill['packages']], 'no dependency')


# --- interfaces ---

@test
def interfaces_are_kept():
    """the libraries' interfaces grew only since they were kept (packaging/abi)"""
    need('abidiff')
    machine = os.uname().machine
    if not os.path.isdir(f'packaging/abi/{machine}'):
        raise Skip(f'no interface was kept for {machine}')
    headers = os.path.join(TMP, 'headers')
    os.mkdir(headers)
    for header in glob.glob('libshstk/shstk*.h'):
        shutil.copy(header, headers)
    for name in LIBRARIES:
        run('abidiff', '--no-added-syms', '--exported-interfaces-only',
            '--suppressions', 'packaging/abi/grows.suppr', '--headers-dir2', headers,
            f'packaging/abi/{machine}/{name}.abi', f'{BUILD}/{name}.so')


def map_symbols(name):
    """What a version script exports."""
    return set(re.findall(r'^\t(shstk_\w+);', content(name), re.M))


@test
def symbols_files_are_whole():
    """debian/*.symbols have what the libraries export"""
    for package, name in MAPS.items():
        got = set(re.findall(r'^ (shstk_\w+)@', content(f'debian/{package}.symbols'), re.M))
        check(got == map_symbols(name), f'{package}: {got ^ map_symbols(name)}')


# --- Debian's packages ---

def package_of(path, patterns):
    """The packages that take an installed file; * is part of one name."""
    return [package for package, pattern in patterns
            if re.fullmatch(re.escape(pattern).replace(r'\*', '[^/]*') + '(/.*)?', path)]


def check_packages(folder, patterns):
    """Fail unless each file of a folder is in one package."""
    for path in sorted(installed(folder)):
        got = package_of(path, patterns)
        check(len(got) == 1, f'{path} is in {got}')


@test
def packages_take_every_file():
    """debian/*.install: each installed file is in one package"""
    folder = os.path.join(TMP, 'debian')
    make('install', folder, 'PREFIX=/usr', 'LIBDIR=/usr/lib/any',
         'ZSHDIR=/usr/share/zsh/vendor-completions')
    patterns = [(os.path.basename(name)[:-len('.install')], '/' + line)
                for name in glob.glob('debian/*.install') for line in content(name).split()]
    check_packages(folder, patterns)


# The folders that Fedora's macros stand for.
RPM_FOLDERS = {'_bindir': '/usr/bin', '_libdir': '/usr/lib64', '_includedir': '/usr/include',
               '_datadir': '/usr/share', '_mandir': '/usr/share/man', '_sysconfdir': '/etc',
               '_unitdir': '/usr/lib/systemd/system'}


def rpm_patterns():
    """[(package, path)] of the spec file's sections %files, but for folders alone and documents."""
    spec = content('packaging/shstk.spec')
    for package, lines in re.findall(r'^%files ?(?:-n )?(.*)\n((?:(?!%files|%changelog).*\n)*)', spec, re.M):
        for line in re.sub(r'^(%dir|%doc|%license) .*', '', lines, flags=re.M).split('\n'):
            path = re.sub(r'%{(\w+)}', lambda macro: RPM_FOLDERS.get(macro[1], macro[0]),
                          line.removeprefix('%config(noreplace) '))
            if path:
                yield package, path


@test
def rpms_take_every_file():
    """shstk.spec: each installed file is in one RPM"""
    folder = os.path.join(TMP, 'rpm')
    make('install', folder, 'PREFIX=/usr', 'LIBDIR=/usr/lib64')
    check_packages(folder, list(rpm_patterns()))


# Reads dkms.conf as DKMS 3.0.10 does for kernel $1 and machine $2: for `dkms autoinstall` by variables
# that are empty and hide those of the caller, then by these. Prints whether it builds by itself.
READ_DKMS = '''
read_conf() { local kernelver=$1 arch=$2; (. kmod/dkms.conf && echo "${AUTOINSTALL:-no}"); }
automatic() { local kernelver=$1 arch=$2; read_conf '' ''; }
automatic "$@" && read_conf "$@"
'''


@test
def other_kernels_are_left_alone():
    """dkms.conf: nothing is built by itself for kernels that the modules are not for"""
    need('bash')
    for kernel, machine, wanted in (
            ('6.1.0-50-amd64', 'x86_64', 'no'), ('6.12.9-none', 'x86_64', 'yes'),
            ('6.12.9-none', 'aarch64', 'no'), ('6.13.1-none', 'aarch64', 'yes'),
            ('7.2.1-none', 'x86_64', 'yes'), ('', '', 'yes')):
        got = run('bash', '-c', READ_DKMS, 'bash', kernel, machine).split()
        check(got == [wanted] * 2, f'{kernel} {machine}: {got}, not {wanted}')


@test
def descriptions_fit():
    """debian/control: lines of descriptions have at most 80 characters, as lintian wants"""
    long = [line for line in content('debian/control').split('\n')
            if line.startswith(' ') and len(line) > 80]
    check(not long, f'{long}')


@test
def versions_are_the_same():
    """Makefile, debian/changelog, the RPM's spec and CHANGELOG.md are of one version"""
    version = re.search(r'^VERSION\s*:= (\S+)', content('Makefile'), re.M)[1]
    debian = re.match(r'shstk \(([^)]+)\)', content('debian/changelog'))[1]
    rpm = re.search(r'^Version:\s*(\S+)', content('packaging/shstk.spec'), re.M)[1]
    changes = re.search(r'^## (\d\S*?),?\s', content('CHANGELOG.md'), re.M)[1]
    check(version == debian == rpm == changes, f'{version}, {debian}, {rpm}, {changes}')


@test
def wrong_words_are_refused():
    """packages: a test, a suite or a commit that is not known ends it before anything is built"""
    need('bash')
    nothing = clean_environment(SHSTK_CACHE=f'{TMP}/cache', SHSTK_MIRROR='http://127.0.0.1:1')
    for words, wanted in ((['--only', 'builds,nothing', 'trixie'], 'nothing: no such test'),
                          (['nowhere'], 'nowhere: no such suite'),
                          (['--from', 'never', 'trixie'], 'never: no such commit')):
        done = subprocess.run(['selftests/builds/packages', *words], capture_output=True, text=True,
                              env=nothing, timeout=LIMIT, check=False)
        check(done.returncode == 1 and wanted in done.stderr and not done.stdout,
              f'{words}: {done.returncode}, {done.stdout}{done.stderr}')


LOCKED = ('top=. && . selftests/guest/common.sh && . selftests/builds/common.sh && '
          'locked suite sh -c "$1"')


def wait_until(holds):
    """Wait until a function returns true."""
    end = time.monotonic() + LIMIT
    while not holds():
        check(time.monotonic() < end, 'waited for nothing')
        time.sleep(0.01)


def is_waited_for(file):
    """Whether a process waits for the lock of a file."""
    inode = f':{os.stat(file).st_ino} '
    return any('->' in line and inode in line for line in content('/proc/locks').splitlines())


@test
def runs_share_the_cache():
    """a run waits while another one changes a folder of the cache"""
    need('bash', 'flock', 'git')
    with tempfile.TemporaryDirectory(dir=TMP) as cache:
        said, go = f'{cache}/said', f'{cache}/go'
        os.mkfifo(go)

        def start(commands):
            """Run commands with the lock of a folder."""
            return subprocess.Popen(['bash', '-c', LOCKED, 'bash', commands],
                                    env=clean_environment(SHSTK_CACHE=cache))
        first = start(f'echo begins >>{said}; read line <{go}; echo ends >>{said}')
        wait_until(lambda: os.path.exists(said) and content(said) == 'begins\n')
        second = start(f'echo follows >>{said}')
        wait_until(lambda: second.poll() is not None or is_waited_for(f'{cache}/builds/suite.lock'))
        with open(go, 'w', encoding='ascii') as file:
            file.write('\n')
        check(first.wait(LIMIT) == 0 and second.wait(LIMIT) == 0, 'an error')
        check(content(said) == 'begins\nends\nfollows\n', content(said))


# Makes a folder in which a run was ended while packages were installed: dpkg has to go on with these first.
INTERRUPTED = """
    top=. log=$SHSTK_CACHE/log
    . selftests/guest/common.sh
    . selftests/builds/common.sh
    inside() { case "$*" in
        *"dpkg --configure -a"*) rm -f "$SHSTK_CACHE/interrupted";;
        *packages-install*) [ ! -e "$SHSTK_CACHE/interrupted" ];;
    esac; }
    make_folder suite
"""


@test
def interrupted_folders_are_finished():
    """a folder in which a run was ended while packages were installed is used again"""
    need('bash')
    with tempfile.TemporaryDirectory(dir=TMP) as cache:
        os.makedirs(f'{cache}/builds/suite')
        for name in 'interrupted', 'builds/suite.base':
            with open(f'{cache}/{name}', 'w', encoding='ascii'):
                pass
        ended = subprocess.run(['bash', '-c', INTERRUPTED], capture_output=True, text=True, timeout=LIMIT,
                               env=clean_environment(SHSTK_CACHE=cache), check=False)
        equal(ended.returncode, 0, f'{ended.stdout}{ended.stderr}')
        check(os.path.exists(f'{cache}/builds/suite.made'), 'not made')


@test
def failed_tests_are_counted():
    """run: of tests that failed, the counts and the points are printed, not make's own words"""
    need('bash')
    function = re.search(r'^tests_pass\(\)\n.*?^}\n', content('selftests/builds/run'), re.M | re.S)[0]
    ended = subprocess.run(['bash', '-c', """
        inside() { printf '%s\\n' 'FAIL a: 1 passed' '     not ok a fact' '2 programs in 3 s' \\
            '1 passed, 1 failed, 0 skipped' 'make: *** Error 1'; return 2; }
        short= SHORT=40 jobs=1 log=$1
        """ + function + 'tests_pass suite', 'bash', f'{TMP}/run.log'],
                           capture_output=True, text=True, timeout=LIMIT, check=False)
    equal(ended.stdout, '# the quick half of the tests: 2 programs in 3 s 1 passed, 1 failed, 0 skipped\n'
          '#      not ok a fact\n', 'printed')
    equal(ended.returncode, 2, 'status')


@test
def a_build_that_cannot_vary_is_seen():
    """packages: what a second build does not vary is named, and one that cannot run fails"""
    need('bash')
    function = re.search(r'^vary_is_so\(\)\n.*?^}\n', content('selftests/builds/packages'), re.M | re.S)[0]
    for vary, status, said in ((':', 0, ''), ('echo "no folder" >&2; return 2', 1, '# no folder\n'),
                               ('return 2', 1, ''), ('shift; CAPTURED=here HOME=/nonexistent/other "$@"', 1,
                                                     '# environment is not varied: here\n')):
        ended = subprocess.run(['bash', '-c', f'set -u -o pipefail\nvary() {{ {vary}; }}\n{function}'
                                'vary_is_so suite'], capture_output=True, text=True, timeout=LIMIT,
                               env=clean_environment(USER='another'), check=False)
        check(ended.returncode == status and said in ended.stdout and not ended.stderr,
              f'{vary}: {ended.returncode}, {ended.stdout}{ended.stderr}')
        check(bool(said) == bool(ended.stdout) and 'home is' not in ended.stdout, ended.stdout)


if __name__ == '__main__':
    sys.exit(main())
