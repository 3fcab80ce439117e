"""Waiting for what other processes do, however slow the machine is."""

import time

# Past this, another process hangs. On a busy machine a process that does not hang may take a minute for a second's work.
HANGS = 300


def wait_until(what, seconds=HANGS):
    """Waits for a condition that another process brings about, and fails if it does not."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.02)
