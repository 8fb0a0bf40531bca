# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways in which crasher.c crashes."""

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
    'thread': ('null', 'SIGSEGV: address 0x0 is not mapped'),
}
