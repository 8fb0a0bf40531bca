# SPDX-License-Identifier: GPL-2.0-or-later
"""A program whose children work for a short time each.

    forks.py CHILDREN SECONDS
"""
import os
import sys
import time

CHILDREN, SECONDS = int(sys.argv[1]), float(sys.argv[2])


def in_child():
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        sum(i * i % 7 for i in range(300))


def make_child():
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    os.waitpid(pid, 0)


for _ in range(CHILDREN):
    make_child()
