"""The environments of the peers: bin/bench-venv and, for what cannot live beside the rest, bin/bench-venv-next. Nothing is installed anywhere else."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "bench/requirements"
LIGHT_TORCH = [str(ROOT / "python/tests/install_torch.py"), "--torch-only"]


def python_of(name: str) -> str:
    return str(ROOT / "bin" / ("bench-venv" if name == "main" else f"bench-venv-{name}") / "bin/python")


def prepare(name: str) -> tuple[str, dict[str, str]]:
    """Makes an environment, where it is not there yet. Gives its Python, and for each package that could not be installed why."""
    python, wanted = python_of(name), REQUIREMENTS / f"{name}.txt"
    mark = pathlib.Path(python).parents[1] / "installed"
    if mark.exists() and mark.read_text() == wanted.read_text():
        return python, {}
    print(f"installing the peers of {wanted.relative_to(ROOT)}", file=sys.stderr)
    shutil.rmtree(mark.parent, ignore_errors=True)
    said(sys.executable, "-m", "venv", str(mark.parent))
    if failed := said(python, "-m", "pip", "install", "-q", "uv"):
        raise SystemExit(f"bench: uv, which installs the peers, cannot be installed: {failed}")
    install = [python, "-m", "uv", "pip", "install", "-q", "--python", python, "--override", str(REQUIREMENTS / "overrides.txt")]
    missing = {}
    if said(*install, "-r", str(wanted)):  # one that cannot be installed does not take the others with it
        for line in wanted.read_text().split():
            if failed := said(*install, line):
                missing[line.split("=")[0].split("[")[0]] = failed
    if name == "main" and (failed := said(python, *LIGHT_TORCH) or said(*install[:-2], "--no-deps", "torchvision", "torchdata")):
        missing["torch"] = failed
    if not missing:
        mark.write_text(wanted.read_text())
    return python, missing


def pins() -> dict[str, str]:
    """The version of each peer."""
    found = {}
    for name in ("next", "main"):
        pairs = [line.split("==") for line in (REQUIREMENTS / f"{name}.txt").read_text().split() if "==" in line]
        found |= {package.split("[")[0] + (" 1.0" if name == "next" else ""): version for package, version in pairs}
    return found


def said(*command: str) -> str:
    """The last line of what a command that failed said, "" if it did not fail."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (lines or ["failed"])[-1][:200]
