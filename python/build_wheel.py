"""Builds the wheel: this package with the dsload program in it.

    python python/build_wheel.py [--out DIR]          # make wheel: into dist/

It is also the package's PEP 517 backend, so `pip install ./python` does the same. Needs Go; GOOS and GOARCH choose
another platform. The program is linked without C, so that one wheel serves every Linux of its architecture, whatever
its libc. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import stat
import subprocess
import tempfile
import zipfile

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent
PLATFORMS = {
    ("linux", "amd64"): "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
}
# The earliest time that a zip file can hold.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def _go(*args: str, **env: str) -> str:
    return subprocess.run(
        ["go", *args], cwd=REPOSITORY, env={**os.environ, **env}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def _platform() -> str:
    system, machine = _go("env", "GOOS", "GOARCH").split()
    if (system, machine) not in PLATFORMS:
        raise SystemExit(
            f"no wheel for {system}/{machine}; without the program the package still reads datasets in process"
        )
    return PLATFORMS[system, machine]


def _compile(target: pathlib.Path) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    flags = "-s -w" + (f" -X main.commit={commit.stdout.strip()}" if commit.returncode == 0 else "")
    _go("build", "-trimpath", "-ldflags", flags, "-o", str(target), "./cmd/dsload", CGO_ENABLED="0")


def _metadata(project: dict) -> str:  # type: ignore[type-arg]
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
    ]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {c}" for c in project["classifiers"]]
    lines += [f"Requires-Dist: {d}" for d in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {d}; extra == "{extra}"' for d in needs)]
    lines += ["Description-Content-Type: text/markdown", "", (HERE / project["readme"]).read_text(encoding="utf-8")]
    return "\n".join(lines)


class _Wheel:
    def __init__(self, directory: pathlib.Path, tag: str) -> None:
        self.project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        stem = f"{self.project['name']}-{self.project['version']}"
        self.info = f"{stem}.dist-info"
        self.tag = tag
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"{stem}-{tag}.whl"
        self._unfinished = self.path.with_suffix(".tmp")
        self._zip = zipfile.ZipFile(self._unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._record: list[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, ZIP_TIME)
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def finish(self) -> str:
        scripts = "".join(f"{name} = {target}\n" for name, target in self.project["scripts"].items())
        python, abi, platforms = self.tag.split("-")
        tags = "".join(f"Tag: {python}-{abi}-{p}\n" for p in platforms.split("."))
        pure = "true" if platforms == "any" else "false"
        self.add(f"{self.info}/METADATA", _metadata(self.project).encode())
        self.add(
            f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: dsload\nRoot-Is-Purelib: {pure}\n{tags}".encode()
        )
        self.add(f"{self.info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())
        self.add(f"{self.info}/licenses/LICENSE", (REPOSITORY / "LICENSE").read_bytes())
        record = f"{self.info}/RECORD"
        self._zip.writestr(zipfile.ZipInfo(record, ZIP_TIME), "\n".join([*self._record, f"{record},,", ""]))
        self._zip.close()
        self._unfinished.replace(self.path)
        return self.path.name


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """PEP 517: the platform wheel, package and program."""
    with tempfile.TemporaryDirectory() as tmp:
        program = pathlib.Path(tmp, "dsload")
        _compile(program)
        wheel = _Wheel(pathlib.Path(wheel_directory), f"py3-none-{_platform()}")
        wheel.add("dsload/_bin/dsload", program.read_bytes(), 0o755)
    for path in sorted((HERE / "dsload").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and "_bin" not in path.parts:
            wheel.add(path.relative_to(HERE).as_posix(), path.read_bytes())
    return wheel.finish()


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """PEP 660: a wheel that points to this folder; the program comes from DSLOAD_BINARY or PATH."""
    wheel = _Wheel(pathlib.Path(wheel_directory), "py3-none-any")
    wheel.add("dsload.pth", f"{HERE}\n".encode())
    return wheel.finish()


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise SystemExit("the program's Go sources lie outside of this folder: build the wheel from the repository instead")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(REPOSITORY / "dist"), help="folder for the wheel (default: dist)")
    directory = parser.parse_args().out
    print(pathlib.Path(directory, build_wheel(directory)))


if __name__ == "__main__":
    main()
