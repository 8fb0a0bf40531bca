#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the native functions by which this program runs.

    PYTHONPATH=bindings/python LD_LIBRARY_PATH=build bindings/python/example.py
"""

import shstk


def inner():
    """The stack as it is here."""
    for frame in shstk.capture(names=True):
        print(frame, 'in', frame.module)


inner()
