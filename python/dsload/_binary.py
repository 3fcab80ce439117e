"""Finds the dsload program: named by DSLOAD_BINARY, in this package (from the wheel), or on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Optional

from .errors import DsloadError

_NAME = "dsload.exe" if os.name == "nt" else "dsload"
_PACKAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", _NAME)


def find_binary() -> Optional[str]:
    """The program's path, or None if there is none for this platform."""
    named = os.environ.get("DSLOAD_BINARY")
    if named:
        return named
    if os.access(_PACKAGED, os.X_OK):
        return _PACKAGED
    return shutil.which("dsload")


def required_binary(what: str) -> str:
    """The program's path. Raises DsloadError, which names what needs the program, if there is none."""
    binary = find_binary()
    if binary is not None and shutil.which(binary) is None:
        raise DsloadError(f"{what} needs the dsload program, and DSLOAD_BINARY names {binary}, which is no program")
    if binary is None:
        raise DsloadError(
            f"{what} needs the dsload program, and there is none: "
            "install the platform wheel, put dsload on PATH, or name it in DSLOAD_BINARY"
        )
    return binary


def main() -> None:
    """The console script `dsload`. It replaces itself with the program, which then receives signals and sets the exit
    code."""
    path = _PACKAGED if os.access(_PACKAGED, os.X_OK) else os.environ.get("DSLOAD_BINARY")
    if not path:
        sys.exit(
            "dsload: this package was installed without the dsload program; install the platform wheel, or name it in "
            "DSLOAD_BINARY"
        )
    os.environ["DSLOAD_PYTHON"] = sys.executable  # doctor asks this package where others do not have it
    if os.name == "nt":  # where execv does not wait for the program
        sys.exit(subprocess.call([path, *sys.argv[1:]]))
    os.execv(path, [path, *sys.argv[1:]])
