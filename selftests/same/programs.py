# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that same_test compares.

A script is bash, run in an empty folder. Its output and the files that it leaves there are compared
if they are the same in each plain run. So a script that draws its numbers from a seed tests more
than one that does not.
"""

import collections
import fnmatch
import glob
import os
import shutil
import subprocess

# A program. short: it is part of the short form. needs: programs or files; if one is missing, the
# case is skipped. packages: Debian's packages that have them. typed: the program runs on a
# terminal, and these keys are typed. unless: a command; if it succeeds, the case is skipped for
# that reason. differs: {mode: reason} for modes in which the result cannot be the same; each such
# reason is in the table of shstk-record(1).
Case = collections.namedtuple('Case', 'name script short needs packages typed unless reason differs')


def case(name, script, short=False, needs=(), packages=(), typed=(), unless='', reason='',
         differs=None):
    return Case(name, script, short, needs, packages, typed, unless, reason, differs or {})


NOT_ROOT = '[ "$(id -u)" != 0 ]'
SIGNALS = r'''
perl -e '
use POSIX; my %n; my $seen = "";
$SIG{$_} = sub { $n{$_[0]}++ } for qw(USR1 USR2 HUP TERM ALRM CHLD WINCH);
for my $i (1 .. 50) { kill $_, $$ for qw(USR1 USR2 HUP TERM WINCH) }
my $pid = fork; if (!$pid) { kill "USR1", getppid; exit 7 }
1 while waitpid($pid, 0) < 0; $seen .= ($? >> 8) . " ";
$pid = fork; if (!$pid) { $SIG{TERM} = "DEFAULT"; kill "TERM", $$; sleep 9 }
1 while waitpid($pid, 0) < 0; $seen .= ($? & 127) . "\n";
print join(" ", map { "$_=$n{$_}" } grep { $_ ne "CHLD" } sort keys %n), "\n", $seen;
kill "KILL", $$ if @ARGV;
'
'''
PYTHON = r'''
/usr/bin/python3 -c '
import os, queue, random, subprocess, sys, threading, zlib
random.seed(4)
done = queue.Queue()
def work(n):
    data = bytes(random.Random(n).randrange(256) for _ in range(20000))
    done.put((n, zlib.crc32(zlib.compress(data, 9))))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(done.queue))
print(subprocess.run(["sh", "-c", "echo child; exit 5"], capture_output=True))
r, w = os.pipe()
if not os.fork():
    os.write(w, b"from the child"); os._exit(0)
print(os.read(r, 100)); print(os.wait()[1])
with open("left", "w") as f: f.write("x" * 10000)
sys.exit(3)
'
'''
SQLITE = r'''
sqlite3 base.db "create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
insert into t select i, hex(i * 7919 % 10007) from n;
create index ib on t(b); delete from t where a % 7 = 3; vacuum;
select count(*), sum(a), min(b), max(b) from t; select b, count(*) from t group by b
order by 2 desc, 1 limit 5; pragma integrity_check;"
'''
GIT = r'''
export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main r && cd r && git config pack.threads 1 || exit
for i in $(seq 8); do seq $i 400 >f$((i % 3)); git add .; git commit -qm "c$i"; done
git checkout -q -b side HEAD~3 && seq 9 >g && git add . && git commit -qm s && git merge -q main -m m
git log --oneline --graph; git gc -q 2>/dev/null; git fsck --strict; git status --short
'''
PIPES = r'''
seq 60000 | sort -R --random-source=<(yes) | sort -n | tail -1
seq 20000 | xargs -n 2000 echo | wc -c; (exit 9) | cat; echo ${PIPESTATUS[0]}
tar cf - -C /usr/share/misc . 2>/dev/null | gzip -n | gunzip | tar tf - | wc -l
trap 'echo term' TERM; kill -TERM $$; sleep 0.2 & wait; sh -c 'kill -SEGV $$'; echo $?
ulimit -c 0; sh -c 'kill -62 $$'; echo $?; timeout 0.3 sleep 60; echo $?
'''
TRACERS = r'''
strace -f -o /dev/null -e trace=openat sh -c 'ls / >/dev/null; exit 6'; echo $?
gdb -q -batch -nx -ex 'break exit' -ex run -ex 'p 6*7' -ex kill --args /bin/true 2>&1 |
grep -o '^\$1 = 42'
'''
# Its last processes may still write into that folder for a moment.
CHROMIUM = ('for i in 1 2; do {} --no-sandbox --disable-gpu '
            '--user-data-dir="$PWD/u" --dump-dom "data:text/html,<p id=p>a</p><script>'
            'p.innerText=[1,2,3].map(x=>x*x).join()</script>" 2>/dev/null; echo $?; done; '
            'until rm -rf u 2>/dev/null; do sleep 0.1; done')
SHORT = [
    case('pipes and traps of bash', PIPES, True),
    case('signals of perl', SIGNALS, True, ['perl']),
    case('perl that kills itself', SIGNALS.replace("\n'\n", "\n' kill\n"), True, ['perl']),
    case('threads and children of python', PYTHON, True, ['/usr/bin/python3']),
    case('sqlite3', SQLITE, True, ['sqlite3'], ['sqlite3']),
    case('git', GIT, True, ['git'], ['git']),
    case('strace and gdb', TRACERS, True, ['strace', 'gdb'], ['strace', 'gdb']),
    case('node', "node -e 'setTimeout(() => console.log(require(\"crypto\").createHash(\"sha256\")"
         ".update(\"x\".repeat(1e6)).digest(\"hex\")), 50)'", True, ['node'], ['nodejs']),
    case('chromium without a window', CHROMIUM.format('chromium-headless-shell'), True,
         ['chromium-headless-shell'], ['chromium-headless-shell']),
]

REDIS = r'''
redis-server --unixsocket "$PWD/s" --port 0 --save '' --daemonize yes --dir . >/dev/null
for i in $(seq 100); do redis-cli -s s ping >/dev/null 2>&1 && break; sleep 0.1; done
redis-benchmark -s s -n 5000 -q -t set,get,lpush,mset >/dev/null; echo $?
redis-cli -s s set a 5; redis-cli -s s incrby a 7; redis-cli -s s eval 'return {1,2,{3}}' 0
redis-cli -s s shutdown nosave; rm -f s; sleep 1
'''
NGINX = r'''
mkdir l; seq 1000 >index.html
printf 'worker_processes 2; pid %s/pid; error_log %s/l/e; events {} http { access_log off;
 client_body_temp_path l; proxy_temp_path l; fastcgi_temp_path l; uwsgi_temp_path l; scgi_temp_path l;
 server { listen unix:%s/s; root %s; } }' "$PWD" "$PWD" "$PWD" "$PWD" >conf
chmod -R a+rx . ..; nginx -c "$PWD/conf" -e l/e -p .; for i in $(seq 50); do [ -S s ] && break; sleep 0.1; done
for i in $(seq 20); do curl -s --unix-socket s http://x/index.html | md5sum; done | sort | uniq -c
nginx -c "$PWD/conf" -p . -e l/e -s reload; sleep 0.3; nginx -c "$PWD/conf" -p . -e l/e -s quit
for i in $(seq 50); do [ -e pid ] || break; sleep 0.1; done; rm -rf l s
'''
POSTGRES = r'''
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); chmod 777 . ; chmod a+x ..
as() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PWD" "$@"; }
as "$bin/initdb" -D d -A trust >/dev/null 2>&1; echo $?
as "$bin/pg_ctl" -D d -w -l log -o "-k $PWD -h ''" start >/dev/null; echo $?
as "$bin/psql" -h "$PWD" -qAt postgres -c "create table t as select i, md5(i::text) m from
 generate_series(1, 20000) i; select count(*), max(m) from t; select sum(i) from t where m like 'a%'"
as "$bin/pgbench" -h "$PWD" -q -i postgres 2>/dev/null; as "$bin/pgbench" -h "$PWD" -c 4 -t 50 postgres 2>/dev/null |
grep processed; as "$bin/pg_ctl" -D d -w -m fast stop >/dev/null; echo $?; rm -rf d log
'''
JAVA = r'''
cat >A.java <<'X'
public class A { public static void main(String[] a) throws Exception {
 Thread[] t = new Thread[4]; long[] s = new long[4];
 for (int i = 0; i < 4; i++) { int n = i; t[i] = new Thread(() -> { java.util.Random r =
  new java.util.Random(n); for (int k = 0; k < 2000000; k++) s[n] += r.nextInt(9); byte[][] b =
  new byte[200][]; for (int k = 0; k < 20000; k++) b[k % 200] = new byte[1000]; }); t[i].start(); }
 for (int i = 0; i < 4; i++) { t[i].join(); System.out.println(s[i]); }
 try { String x = null; x.length(); } catch (NullPointerException e) { System.out.println("npe"); }
 System.exit(4); } }
X
java A.java
'''
FIREFOX = ('mkdir p; firefox-esr --headless --profile p --screenshot "$PWD/a.png" '
           '"data:text/html,<p>a" >/dev/null 2>&1; echo $?; ls a.png; rm -rf p a.png')
FFMPEG = ('ffmpeg -v error -f lavfi -i testsrc=size=160x120:rate=10:duration=3 -threads 2 '
          '-c:v mpeg4 -f avi -flags +bitexact -fflags +bitexact a.avi; md5sum a.avi')
TMUX = r'''
tmux -L same -f /dev/null new-session -d -x 80 -y 24 'echo in tmux; sleep 60'; sleep 1
tmux -L same split-window 'echo below; sleep 60'; sleep 1; tmux -L same list-panes -F '#P #{pane_width}'
tmux -L same capture-pane -p -t 0 | head -1; tmux -L same kill-server; sleep 0.5
'''
GCC = r'''
printf '#include <stdio.h>\nint main(void){printf("%%d\\n", 6*7);return 3;}\n' >a.c
gcc -O2 -g a.c -o a && ./a; echo $?; make -s -f - <<<$'all: b\nb: a.c\n\tgcc a.c -o b' && ./b; echo $?
'''
TSAN = r'''
printf '#include <pthread.h>\n#include <stdio.h>\nint x;pthread_mutex_t m;void*f(void*a){for(int i=0;i<1000;i++)
{pthread_mutex_lock(&m);x++;pthread_mutex_unlock(&m);}return a;}int main(void){pthread_t t[4];
for(int i=0;i<4;i++)pthread_create(&t[i],0,f,0);for(int i=0;i<4;i++)pthread_join(t[i],0);printf("%%d\\n",x);}' >a.c
for s in thread address undefined; do clang -fsanitize=$s -g a.c -o a -pthread && ./a; echo $?; done
'''
# What bash's and perl's own tests are about, for machines without their sources.
BASH_BUILTINS = r'''
trap 'echo usr1 $((n++))' USR1; for i in 1 2 3; do kill -USR1 $$; done; echo $n
trap 'echo exit $?' EXIT; trap 'echo err' ERR; false; trap - ERR; trap 'echo chld' CHLD
(sleep 0.1; exit 3) & wait $!; echo $?; trap - CHLD; wait -n 2>/dev/null; echo $?
coproc C { while read -r l; do echo "got $l"; done; }; echo a >&${C[1]}; read -r x <&${C[0]}; echo $x
eval "exec ${C[1]}>&-"; wait; mapfile -t a < <(seq 5); echo ${a[@]}; read -t 0.2 -r y < <(sleep 5); echo $?
echo "here" | { read -r v; echo $v; } ; cat <<<"string"; diff <(seq 9) <(seq 8); echo ${PIPESTATUS[@]}
set -m; sleep 30 & jobs -l | grep -c Running; kill %1; wait %1; echo $?; set +m; ulimit -n 64; ulimit -n
printf '%s\n' {1..2000} | while read -r i; do ((i % 1000)) || echo $i; done; exec 7<>f; echo in >&7; cat f
timeout 5 bash -c 'kill -STOP $$' & p=$!; sleep 0.3
kill -CONT $p 2>/dev/null; pkill -CONT -P $p; wait $p; echo $?
time -p true 2>/dev/null; bash -c 'kill -9 $$'; echo $?; exit 7
'''
PERL_BUILTINS = r'''
perl -we '
use strict; use POSIX qw(:sys_wait_h :signal_h); use IO::Select; use Socket;
use Time::HiRes qw(ualarm sleep);
$| = 1; my ($hits, $n) = (0, 0);
local $SIG{ALRM} = sub { $hits++ }; ualarm(20000, 20000); while ($hits < 5) { $n++ } ualarm(0); print "hits\n";
eval { local $SIG{ALRM} = sub { die "late\n" }; ualarm(100000); sleep(9); }; print $@;
socketpair(my $in, my $to, AF_UNIX, SOCK_STREAM, PF_UNSPEC); my $pid = fork;
if (!$pid) { close $in; print $to $_ x 20000, "\n" for 1 .. 9; exit 0 } close $to; my $sum = 0;
my $s = IO::Select->new($in);
while ($s->can_read) { my $got = sysread $in, my $buf, 65536; last unless $got; $sum += $got }
waitpid $pid, 0; print "$sum $?\n"; my $out = qx(sh -c "echo sub; exit 5"); print $out, $? >> 8, "\n";
open my $p, "-|", "seq", 30000 or die; my $l; $l = $_ while <$p>; close $p; print $l;
my $set = POSIX::SigSet->new(SIGUSR1); sigprocmask(SIG_BLOCK, $set); my $u = 0; $SIG{USR1} = sub { $u++ };
kill USR1 => $$; print "held $u\n"; sigprocmask(SIG_UNBLOCK, $set); print "let in $u\n";
my %h = map { $_ => $_ ** 2 } 1 .. 20000; my $t = 0;
$t += $h{$_} for sort { $a <=> $b } keys %h; print "$t\n";
print join(",", map { sprintf "%03b", $_ } grep { /[246]/ } 1 .. 9), "\n";
my $r = "ab" x 20000; print length($r =~ s/a(?=b)/xyz/gr), "\n";
$SIG{CHLD} = sub { 1 while waitpid(-1, WNOHANG) > 0 };
for (1 .. 20) { fork or exit } sleep 0.2; print "reaped\n"; exec "sh", "-c", "exit 6";
'
'''

LONG = [
    case('bash: builtins, traps and jobs', BASH_BUILTINS),
    case('perl: signals, pipes and sockets', PERL_BUILTINS, False, ['perl']),
    case('redis and its benchmark', REDIS, False, ['redis-server', 'redis-benchmark'], ['redis-server']),
    case('nginx', NGINX, False, ['nginx', 'curl'], ['nginx-light', 'curl']),
    case('postgres and pgbench', POSTGRES, False, ['/usr/lib/postgresql'],
         ['postgresql', 'postgresql-contrib'], (), NOT_ROOT, 'it starts a server as another user'),
    case('java', JAVA, False, ['java', 'javac'], ['default-jdk-headless']),
    case('chromium', CHROMIUM.format('chromium --headless=new'), False, ['chromium'], ['chromium']),
    case('firefox', FIREFOX, False, ['firefox-esr'], ['firefox-esr']),
    case('ffmpeg', FFMPEG, False, ['ffmpeg'], ['ffmpeg']),
    case('tmux', TMUX, False, ['tmux'], ['tmux']),
    case('vim on a terminal', "vim -u NONE -N a.txt", False, ['vim'], ['vim'],
         ('ihello there\n', '\x1b', ':%s/there/world/\r', ':r !echo from a child\r', ':wq\r')),
    case('bash on a terminal', 'bash --norc -i', False, (), (),
         ("PS1='$ '\r", 'sleep 30\r', '\x1a', 'jobs\r', 'fg\r', '\x03', 'echo $?\r', 'exit 5\r')),
    case('sudo', 'sudo -n id -u; sudo -n sh -c "exit 7"; echo $?', False, ['sudo'], ['sudo'], (),
         NOT_ROOT, 'it asks for a password'),
    case('su', 'su nobody -s /bin/sh -c "id -un; exit 4"; echo $?', False, ['su'], (), (),
         NOT_ROOT, 'it asks for a password'),
    case('bwrap', 'bwrap --ro-bind / / --proc /proc --unshare-pid --dev /dev sh -c "echo in; exit 3"; '
         'echo $?', False, ['bwrap'], ['bubblewrap'], (), '! bwrap --ro-bind / / true',
         'no namespaces may be made here'),
    case('bwrap with nothing but /usr', 'bwrap --ro-bind /usr /usr --symlink usr/lib64 /lib64 '
         '--symlink usr/lib /lib --symlink usr/bin /bin sh -c "ls / | wc -l; exit 3"; echo $?', False,
         ['bwrap'], ['bubblewrap'], (), '! bwrap --ro-bind / / true',
         'no namespaces may be made here'),
    case('systemd-run', 'systemd-run --wait --pipe -q sh -c "echo in; exit 3"; echo $?', False,
         ['systemd-run'], ['systemd'], (), '! systemctl is-system-running --wait',
         'systemd does not run here'),
    case('valgrind', 'valgrind -q --error-exitcode=9 sh -c "ls / >/dev/null; exit 3"; echo $?', False,
         ['valgrind'], ['valgrind']),
    case('gcc and make', GCC, False, ['gcc', 'make'], ['gcc', 'make']),
    case('sanitizers of clang', TSAN, False, ['clang'], ['clang']),
]

PYTHON_MODULES = ('signal subprocess threading os socket asyncio faulthandler ctypes mmap resource '
                  'thread fork1 wait3 wait4 posix select selectors epoll poll pty multiprocessing_fork '
                  'multiprocessing_forkserver multiprocessing_spawn concurrent_futures queue eintr').split()


def python_name():
    """Return how Debian calls the version of Python that is installed: python3.11."""
    return os.path.basename(os.path.realpath('/usr/bin/python3'))


# Tests that are not run, by pattern: those that connect to the host of a virtual machine (vsock), which hang on
# some; and one in which processes have to reach a barrier within half a second of another that sleeps.
PYTHON_NOT_RUN = '*VSOCK*', '*Barrier.test_default_timeout'


def python_modules(folder):
    """Return the modules, and those in a package instead of it: what one test's luck keeps from being compared
    is then not the whole package."""
    for name in PYTHON_MODULES:
        inside = sorted(glob.glob(os.path.join(folder, f'test_{name}', 'test_*.py')))
        yield from (f'test_{name}.{os.path.basename(path)[:-3]}' for path in inside)
        if not inside:
            yield f'test_{name}'


def python_tests():
    """Return Python's own tests, one case for each module."""
    name = python_name()
    ignored = ' '.join(f'-i "{pattern}"' for pattern in PYTHON_NOT_RUN)
    return [case(f'python: {m}',
                 f'/usr/bin/python3 -m test -q -W {ignored} {m} >log 2>&1; s=$?; '
                 'grep -oE "^(Tests result: [A-Z]+|test_[a-z0-9_.]+ (failed|crashed)|(FAIL|ERROR): .*'
                 '|[A-Za-z.]+(Error|Exception): .*)" log; rm -f log; exit $s',
                 False, ['/usr/bin/python3', f'/usr/lib/{name}/test/test_signal.py'],
                 [f'lib{name}-testsuite'])
            for m in python_modules(f'/usr/lib/{name}/test')]


def stress_tests():
    """Return stress-ng's stressors, each for a second; those that end well are compared."""
    if not shutil.which('stress-ng'):
        return [case('stress-ng', 'true', False, ['stress-ng'], ['stress-ng'])]
    names = subprocess.run(['stress-ng', '--stressors'], capture_output=True, text=True,
                           check=False).stdout.split()
    return [case(f'stress-ng: {name}',
                 f'stress-ng --{name} 1 --timeout 2 --oom-avoid --temp-path . >log 2>&1; s=$?; '
                 'grep -oE "terminated by signal|caught SIG[A-Z]+" log | sort -u; rm -rf log tmp*; exit $s',
                 False, ['stress-ng'], ['stress-ng']) for name in names]


# Where selftests/same/sources puts the sources of packages.
SOURCES = os.environ.get('SAME_SOURCES') or os.path.join(
    os.environ.get('SHSTK_CACHE') or os.path.expanduser('~/.cache/shstk'), 'same')

# name: pattern of the tests, and a script that runs one of them with the program that is installed;
# {0} stands for the folder of the source, {1} for the test. Tests of bash print what they are about. One of
# perl prints how many seconds passed, from one second of the clock to another, which may be one more.
SOURCE_TESTS = {
    'bash': ('tests/run-*',
             'export BASH_TSTOUT="$PWD/seen" THIS_SH=/bin/bash TMPDIR="$PWD"; '
             'cd {0}/tests && PATH=$PWD:$PATH sh {1} 2>&1; echo $?'),
    'perl': ('t/*/*.t', 'cd {0}/t && timeout 300 ./perl {1} 2>&1 | grep -av "^# diff="; '
                        'echo ${{PIPESTATUS[0]}}'),
    'git': ('t/t[0-9]*.sh',
            'export GIT_TEST_INSTALLED=/usr/bin TEST_OUTPUT_DIRECTORY="$PWD"; '
            'cd {0}/t && timeout 300 sh {1} 2>&1; echo $?; rm -rf "$TEST_OUTPUT_DIRECTORY"/*'),
}


# {test: {mode: why it cannot be the same there}}
SOURCE_DIFFERS = {
    'run-read': dict.fromkeys(('agent', 'wall', 'heap'), 'it has timeouts of 0.1 ms'),
    'run-nameref': dict.fromkeys(('agent', 'wall', 'heap'),
                                 'it asks for a coprocess, which may have ended by then'),
}


# Not run: all tests at once; and those that read the source of perl as text, which take long and run
# nothing that others do not.
NOT_RUN = ('run-all', 'run-minimal', 'porting/*')


def source_tests():
    """Return one case for each of the tests that are in the sources of bash, perl and git only."""
    cases = []
    for name, (pattern, script) in SOURCE_TESTS.items():
        top = os.path.join(SOURCES, name)
        inside = pattern.split('/', maxsplit=1)[0]
        found = sorted(os.path.relpath(path, os.path.join(top, inside))
                       for path in glob.glob(os.path.join(top, pattern)))
        cases += [case(f'{name} source: {path}', script.format(top, path),
                       differs=SOURCE_DIFFERS.get(path))
                  for path in found if not any(fnmatch.fnmatch(path, p) for p in NOT_RUN)]
        if not found:
            cases.append(case(f'{name} source', 'true', False, [top]))
    return cases


def all_cases(long):
    """Return all cases, or those of the short form."""
    if not long:
        return SHORT
    return SHORT + LONG + python_tests() + stress_tests() + source_tests()
