# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of crashes share: the ways in which crasher.c crashes, and who may read another process."""

CAP_SYS_PTRACE = 19

# Which function of the crashing thread is innermost in the program, and what the report says.
WAYS = {
    'null': ('null', 'SIGSEGV: address 0x0 is not mapped'),
    'guard': ('guard', 'SIGSEGV: address 0x[0-9a-f]+ may not be used in this way'),
    'overflow': ('overflow', 'SIGSEGV: address 0x[0-9a-f]+ (is not mapped|may not be used.*)'),
    'jump': ('jump', 'SIGSEGV: address 0x10 is not mapped'),
    'divide': ('divide', 'SIGFPE: an integer was divided by zero'),
    'undefined': ('undefined', r'SIG(ILL|TRAP)\b.*'),
    'aborts': ('aborts', 'SIGABRT: by itself'),
    'handler': ('on_signal', 'SIGSEGV: address 0x0 is not mapped'),
    'truncated': ('truncated', 'SIGBUS: address 0x[0-9a-f]+ has no memory behind it, .*'),
    'child': ('child', 'SIGSEGV: address 0x0 is not mapped'),
    'first-ends': ('null', 'SIGSEGV: address 0x0 is not mapped'),
    'thread': ('null', 'SIGSEGV: address 0x0 is not mapped'),
    # In the C library, which was called with what is wrong.
    'length': ('length', 'SIGSEGV: address 0x10 is not mapped'),
    'copies': ('copies', 'SIGSEGV: address 0x[0-9a-f]+ is not mapped'),
    'prints': ('prints', 'SIGSEGV: address 0x10 is not mapped'),
    'asserts': ('asserts', 'SIGABRT: by itself'),
    'frees': ('frees', 'SIGABRT: by itself'),
    'quits': ('quits', 'SIGQUIT: by itself'),
    # Called by the C library.
    'sorts': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'ends': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'once': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'thread-ends': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    # Code that is none.
    'runs-data': ('call', 'SIGSEGV: address 0x[0-9a-f]+ may not be used in this way'),
    'runs-no-more': ('call', 'SIGSEGV: address 0x[0-9a-f]+ is not mapped'),
    'writes-code': ('writes_code', 'SIGSEGV: address 0x[0-9a-f]+ may not be used in this way'),
    # Stacks.
    'other-stack': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'nested': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'switches': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    'jumps-back': ('store', 'SIGSEGV: address 0x10 is not mapped'),
    # Another process.
    'forks': ('store', 'SIGSEGV: address 0x10 is not mapped'),
}

# Who called that, where it is not the function that the way is named after.
CALLERS = {
    'first-ends': 'crash_alone',
    'thread': 'crash_in_thread',
    'sorts': 'compare',
    'ends': 'at_end',
    'thread-ends': 'on_thread_end',
    'runs-data': 'runs_data',
    'runs-no-more': 'runs_no_more',
    'other-stack': 'on_other_stack',
    'nested': 'raises',
    'switches': 'coroutine',
    'jumps-back': 'jumps_back',
    'forks': 'forks',
}


def may_trace_all():
    """Whether this script has CAP_SYS_PTRACE."""
    with open('/proc/self/status', encoding='utf-8', errors='replace') as file:
        effective = next(line for line in file if line.startswith('CapEff:'))
    return bool(int(effective.split()[1], 16) >> CAP_SYS_PTRACE & 1)


def why_unreadable(privileged):
    """Why a process may not be read by another one of its user here, or None. Privileged is who has
    CAP_SYS_PTRACE."""
    try:
        with open('/proc/sys/kernel/yama/ptrace_scope', encoding='ascii') as file:
            scope = int(file.read())
    except OSError:
        return None
    # What is read here permits its reader, which is enough up to 1.
    if scope > 2 or (scope == 2 and not privileged):
        return f'nobody may read another process here: kernel.yama.ptrace_scope is {scope}'
    return None
