"""Waiting for what other processes do."""

import time


def wait_until(what, seconds=20.0):
    """Waits for a condition that another process brings about, and fails if it does not."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.02)
