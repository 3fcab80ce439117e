"""Finds the reference data, skips tests whose programs are missing, and runs builds."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def find_shared():
    """The folder of the reference data: $DSLOAD_SHARED if it is set, else ../shared; None if there is none."""
    folder = pathlib.Path(os.environ.get("DSLOAD_SHARED") or ROOT.parent / "shared")
    return folder if (folder / "golden").is_dir() else None


def need(program):
    """Skips a test if the program is missing. CI installs it, and fails if a test was skipped for lack of it."""
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def build(dsload, out, *args):
    """Runs `dsload build`. If it fails, the test fails with its message."""
    done = subprocess.run([dsload, "build", *map(str, args), "--out", str(out), "--progress", "none"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out
