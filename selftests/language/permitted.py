# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether this machine permits to read the frames of interpreters while programs are recorded."""

from harness import Skip


def skip_unless_read(said):
    """Skips a test whose recording, which said that, could not read frames."""
    last = (said.strip().splitlines() or ['nothing is said'])[-1]
    if 'are not shown:' in said or 'not permitted' in said:
        raise Skip(last)
    if 'stacks copied' not in said:
        raise Skip('stacks are not copied here: ' + last)
