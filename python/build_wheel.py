"""Builds the wheel: this package with the dsload program in it.

    python python/build_wheel.py [--out DIR]          # make wheel: into dist/

It is also the package's PEP 517 backend, so `pip install ./python` does the same, and `pip install` of the sdist.
Needs Go; GOOS and GOARCH choose another platform. The program is linked without C, so that one wheel serves every Linux
of its architecture, whatever its libc. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import os
import pathlib
import posixpath
import re
import stat
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

HERE = pathlib.Path(__file__).resolve().parent
# The Go module: around this folder in a checkout, inside it in an sdist.
SDIST_MODULE = HERE / "go"
REPOSITORY = SDIST_MODULE if SDIST_MODULE.exists() else HERE.parent
COMMIT = REPOSITORY / "COMMIT"  # only in an sdist
PLATFORMS = {
    ("linux", "amd64"): "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "amd64"): "win_amd64",
}
# What of the Go module is not needed to build the program.
NOT_IN_SDIST = re.compile(r"_test\.go$|(^|/)testdata/|^(bench|deploy|docs|python|release|tests_clients|\.ci|\.github)/")
# The earliest time that a zip file can hold.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def _output(*command: str, **env: str) -> str:
    return subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **env}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def _platform() -> tuple[str, str]:
    system, machine = _output("go", "env", "GOOS", "GOARCH").split()
    if (system, machine) not in PLATFORMS:
        raise SystemExit(
            f"no wheel for {system}/{machine}; without the program the package still reads datasets in process"
        )
    return system, machine


def commit() -> str:
    """The commit of the sources, "" if nothing names it."""
    if COMMIT.exists():
        return COMMIT.read_text(encoding="utf-8").strip()
    if REPOSITORY == SDIST_MODULE:
        return ""  # a repository around the unpacked sdist is not ours
    try:
        return _output("git", "rev-parse", "--short=12", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return ""


def compile_program(target: pathlib.Path, **env: str) -> None:
    """Writes the stripped static program. env chooses GOOS and GOARCH."""
    flags = "-s -w" + (f" -X main.commit={commit()}" if commit() else "")
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(target), "./cmd/dsload"]
    _output(*command, CGO_ENABLED="0", **env)


def project() -> dict:  # type: ignore[type-arg]
    """The project of pyproject.toml, with the version that the package itself has."""
    table = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = re.search(r'^__version__ = "(.+)"$', (HERE / "dsload/__init__.py").read_text(encoding="utf-8"), re.M)
    assert own, "dsload/__init__.py has no __version__"
    return {**table, "version": own[1]}


def _metadata(licenses: Sequence[str]) -> str:
    p = project()
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {p['name']}",
        f"Version: {p['version']}",
        f"Summary: {p['description']}",
        f"Author: {', '.join(author['name'] for author in p['authors'])}",
        f"License-Expression: {p['license']}",
        *(f"License-File: {name}" for name in licenses),
        *(f"Project-URL: {name}, {url}" for name, url in p["urls"].items()),
        f"Keywords: {','.join(p['keywords'])}",
        f"Requires-Python: {p['requires-python']}",
        *(f"Classifier: {c}" for c in p["classifiers"]),
        *(f"Requires-Dist: {d}" for d in p["dependencies"]),
    ]
    for extra, needs in p["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {d}; extra == "{extra}"' for d in needs)]
    lines += ["Description-Content-Type: text/markdown", "", _description(p)]
    return "\n".join(lines)


def _description(p: dict) -> str:  # type: ignore[type-arg]
    """The README as an index shows it, where its links to files of the checkout would lead nowhere."""
    base = f"{p['urls']['Source']}/blob/main/"

    def absolute(match: re.Match[str]) -> str:
        return f"]({base}{posixpath.normpath(posixpath.join('python', match[1]))}"

    text = (HERE / p["readme"]).read_text(encoding="utf-8")
    text = re.sub(r"^<!-- (?:not run|given|file|each alone).* -->\n", "", text, flags=re.M)  # marks for the tests
    return re.sub(r"\]\((?!#|[a-z]+:)([^)#\s]*)", absolute, text)


def _sources() -> list[tuple[str, bytes]]:
    """The files of the package, without the program."""
    files = sorted(p for p in (HERE / "dsload").rglob("*") if p.is_file())
    return [
        (p.relative_to(HERE).as_posix(), p.read_bytes())
        for p in files
        if "__pycache__" not in p.parts and "_bin" not in p.parts
    ]


class _Wheel:
    def __init__(self, directory: pathlib.Path, tag: str) -> None:
        self.project = project()
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

    def finish(self, *licenses: pathlib.Path) -> str:
        licenses = (REPOSITORY / "LICENSE", *licenses)
        scripts = "".join(f"{name} = {target}\n" for name, target in self.project["scripts"].items())
        python, abi, platforms = self.tag.split("-")
        tags = "".join(f"Tag: {python}-{abi}-{p}\n" for p in platforms.split("."))
        pure = "true" if platforms == "any" else "false"
        self.add(f"{self.info}/METADATA", _metadata([path.name for path in licenses]).encode())
        self.add(
            f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: dsload\nRoot-Is-Purelib: {pure}\n{tags}".encode()
        )
        self.add(f"{self.info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())
        for path in licenses:
            self.add(f"{self.info}/licenses/{path.name}", path.read_bytes())
        record = f"{self.info}/RECORD"
        self._zip.writestr(zipfile.ZipInfo(record, ZIP_TIME), "\n".join([*self._record, f"{record},,", ""]))
        self._zip.close()
        self._unfinished.replace(self.path)
        return self.path.name


def wheel_of(directory: pathlib.Path, program: pathlib.Path, platform: tuple[str, str], *licenses: pathlib.Path) -> str:
    """The wheel with an existing program, and licences besides the project's own. Returns its file's name."""
    wheel = _Wheel(directory, f"py3-none-{PLATFORMS[platform]}")
    wheel.add("dsload/_bin/dsload" + (".exe" if platform[0] == "windows" else ""), program.read_bytes(), 0o755)
    for name, data in _sources():
        wheel.add(name, data)
    return wheel.finish(*licenses)


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """PEP 517: the platform wheel, package and program."""
    platform = _platform()
    with tempfile.TemporaryDirectory() as tmp:
        program = pathlib.Path(tmp, "dsload")
        compile_program(program)
        return wheel_of(pathlib.Path(wheel_directory), program, platform)


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """PEP 660: a wheel that points to this folder; the program comes from DSLOAD_BINARY or PATH."""
    wheel = _Wheel(pathlib.Path(wheel_directory), "py3-none-any")
    wheel.add("dsload.pth", f"{HERE}\n".encode())
    return wheel.finish()


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """PEP 517: this folder, and in `go` what of the Go module its program is built from. Needs a checkout."""
    if REPOSITORY == SDIST_MODULE:
        raise SystemExit("this is an sdist already; another one is built from a checkout")
    p = project()
    stem = f"{p['name']}-{p['version']}"
    files = [(name, (HERE / name).read_bytes()) for name in ("pyproject.toml", "build_wheel.py", p["readme"])]
    files += [("LICENSE", (REPOSITORY / "LICENSE").read_bytes()), ("PKG-INFO", _metadata(["LICENSE"]).encode())]
    files += _sources()
    files.append(("go/COMMIT", f"{commit()}\n".encode()))
    tracked = [name for name in _output("git", "ls-files").splitlines() if not NOT_IN_SDIST.search(name)]
    files += [(f"go/{name}", (REPOSITORY / name).read_bytes()) for name in tracked]
    path = pathlib.Path(sdist_directory, f"{stem}.tar.gz")
    unfinished = path.with_suffix(".tmp")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in sorted(files):
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    unfinished.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    unfinished.replace(path)
    return path.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(REPOSITORY / "dist"), help="folder for the wheel (default: dist)")
    directory = parser.parse_args().out
    print(pathlib.Path(directory, build_wheel(directory)))


if __name__ == "__main__":
    main()
