"""Finds the program under test and the reference data."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


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
    for place in (os.environ.get("DSLOAD_SHARED"), ROOT.parent / "shared"):
        if place and (pathlib.Path(place) / "golden").is_dir():
            return pathlib.Path(place)
    pytest.skip("reference data missing: set DSLOAD_SHARED")
