"""Finds the program under test and the reference data."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests_clients"))

from reference_data import find_shared  # noqa: E402 (next to this file, for every folder below it)


@pytest.fixture(scope="session")
def dsload() -> str:
    """Path of the binary: $DSLOAD, or one built here."""
    if path := os.environ.get("DSLOAD"):
        return path
    path = ROOT / "bin" / "dsload"
    subprocess.run(["go", "build", "-o", str(path), "./cmd/dsload"], cwd=ROOT, check=True)
    return str(path)


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The reference data; tests that need it skip where there is none."""
    if (folder := find_shared()) is None:
        pytest.skip("reference data missing: set DSLOAD_SHARED")
    return folder
