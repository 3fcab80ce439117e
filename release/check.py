"""Makes a release twice, in two folders, and tries what is in it: make release-check. Takes minutes.

python release/check.py [PYTHON...]     # the wheel and the sdist are installed for each; default: the one that runs this
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import release
import tag

VERSION = release.versions_of(release.ROOT)["cmd/dsload/version.go"]
TWINE = "twine==7.0.0"
# What README's first loop trains, without PyTorch.
GIVEN = """
from types import SimpleNamespace
steps = 0
def model(input_ids, attention_mask, labels):
    assert input_ids.shape == attention_mask.shape == labels.shape
    def backward():
        global steps
        steps += 1
    return SimpleNamespace(loss=SimpleNamespace(backward=backward))
optimizer = SimpleNamespace(step=lambda: None, zero_grad=lambda: None)
"""
IMPORTER = """package main

import (
	"fmt"

	"github.com/dsload/dsload/tokenize/builtin"
)

func main() {
	tok, err := builtin.Open("gpt2")
	if err != nil {
		panic(err)
	}
	fmt.Print(tok.Decode(tok.Encode("Hello, world")))
}
"""


def said(*command: object, cwd: pathlib.Path, **env: str) -> str:
    return release.run(*command, cwd=cwd, **env)


def check(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"release-check: {what}")
    print(f"ok: {what}", flush=True)


def made(folder: pathlib.Path) -> pathlib.Path:
    """A release of the commit, made in a clone in a folder."""
    said("git", "clone", "-q", "--shared", release.ROOT, folder, cwd=release.ROOT)
    said(sys.executable, "release/release.py", VERSION, cwd=folder)
    check(not [p for p in (folder / "dist").iterdir() if p.name != VERSION], "nothing half made is left in dist")
    return folder / "dist" / VERSION


def names_itself(program: pathlib.Path, folder: pathlib.Path, what: str) -> None:
    check(said(program, "version", cwd=folder).startswith(f"dsload {VERSION} ("), f"{what} runs, and is version {VERSION}")


def check_archives(out: pathlib.Path, scratch: pathlib.Path) -> pathlib.Path:
    """Checks sums, inventories and texts; returns this machine's program."""
    sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
    check({p.name: release.digest(p) for p in out.iterdir() if p.name != "SHA256SUMS"} == sums, "SHA256SUMS is right")
    for path in [*out.glob("*-amd64.*"), *out.glob("*-arm64.*")]:
        shutil.unpack_archive(path, scratch / "archives", **({} if path.suffix == ".zip" else {"filter": "data"}))
    programs = [*(scratch / "archives").glob("*/dsload"), *(scratch / "archives").glob("*/dsload.exe")]
    check(len(programs) == len(release.TARGETS), "every target has an archive with the program")
    sbom = json.loads((out / f"dsload-{VERSION}.spdx.json").read_text())
    digests = {sum["checksumValue"] for file in sbom["files"] for sum in file["checksums"]}
    check({release.digest(p) for p in programs} <= digests, "the SBOM lists every program")
    home = str(pathlib.Path.home()).encode()
    leaks = [p.parent.name for p in programs if any(s in p.read_bytes() for s in (str(scratch).encode(), home + b"/"))]
    check(not leaks, "no program names a folder of this machine")
    formula = (out / "dsload.rb").read_text()
    check(set(re.findall(r'sha256 "(\w+)"', formula)) == {sums[p.name] for p in out.glob("*64.tar.gz")}, "the formula has the sums")
    system, machine = said("go", "env", "GOHOSTOS", "GOHOSTARCH", cwd=scratch).split()
    program = scratch / f"archives/dsload-{VERSION}-{system}-{machine}/dsload"
    names_itself(program, scratch, "the archived program")
    return program


def check_image(out: pathlib.Path, program: pathlib.Path) -> None:
    """Reads the image as a registry does: every blob by its digest."""
    with tarfile.open(out / f"dsload-{VERSION}-oci.tar") as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    blob = {f"sha256:{hashlib.sha256(data).hexdigest()}": data for name, data in files.items() if name.startswith("blobs/")}
    check(all(f"blobs/{d.replace(':', '/')}" in files for d in blob), "every blob of the image has its digest as its name")
    used = set()
    for m in json.loads(files["index.json"])["manifests"]:
        manifest = json.loads(blob[m["digest"]])
        layers = [release.pack.gzip.decompress(blob[layer["digest"]]) for layer in manifest["layers"]]
        config = json.loads(blob[manifest["config"]["digest"]])
        check([f"sha256:{hashlib.sha256(x).hexdigest()}" for x in layers] == config["rootfs"]["diff_ids"]
              and all(len(blob[d["digest"]]) == d["size"] for d in (m, manifest["config"], *manifest["layers"])),
              f"the {m['platform']['architecture']} image's layers are those of its configuration")
        used |= {m["digest"], manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}
        if program.parent.name.endswith("linux-" + config["architecture"]):
            check(program.read_bytes() in layers[1], "the image has the archived program")
    check(used == set(blob), "no blob of the image is unused")


def check_packages(out: pathlib.Path, program: pathlib.Path, scratch: pathlib.Path) -> None:
    machine = program.parent.name.rpartition("-")[2]
    kinds = {"deb": ("dpkg-deb", f"*_{machine}.deb", "dpkg-deb -x"),
             "rpm": ("rpm2cpio", f"*.{ {'amd64': 'x86_64', 'arm64': 'aarch64'}[machine] }.rpm", "unpack() { rpm2cpio $1 | (cd $2 && cpio -id --quiet --no-absolute-filenames); }; unpack")}
    for kind, (tool, pattern, unpack) in kinds.items():
        if not shutil.which(tool) or (kind == "rpm" and not shutil.which("cpio")):
            print(f"skipped: the {kind}, since {tool} or cpio is not installed")
            continue
        (scratch / kind).mkdir()
        said("bash", "-c", f"{unpack} {next(out.glob(pattern))} {scratch / kind}", cwd=scratch)
        check((scratch / kind / "usr/bin/dsload").read_bytes() == program.read_bytes(), f"the {kind} has the archived program")
        page = release.pack.gzip.decompress((scratch / kind / "usr/share/man/man1/dsload-build.1.gz").read_bytes())
        check(b".SH SYNOPSIS" in page and all("__complete" in (scratch / kind / place[1:]).read_text() for place in release.COMPLETIONS.values()),
              f"the {kind} has manual pages and completions")


def first_lines() -> tuple[str, str]:
    """README's first commands on text of one's own, and its first loop."""
    own = (release.ROOT / "README.md").read_text().partition("## Your own text")[2]
    build, loop = re.search(r"```sh\n((?:dsload .*\n)+)```", own), re.search(r"```python\n(import dsload\n(?s:.)*?)```", own)
    assert build and loop, "README no longer has its first commands and its first loop"
    return build[1], loop[1]


def check_python(python: str, out: pathlib.Path, program: pathlib.Path, scratch: pathlib.Path) -> None:
    """Installs the wheel into an empty environment and runs README's first lines of Python; builds the sdist."""
    venv = scratch / "venv" / pathlib.Path(python).parent.parent.name
    said(python, "-m", "venv", venv, cwd=scratch)
    pip = [venv / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    said(*pip, "--find-links", out, f"dsload=={VERSION}", "--only-binary", "dsload", cwd=scratch)
    names_itself(venv / "bin/dsload", scratch, f"the wheel's program under {python}")
    build, loop = first_lines()
    (venv / "corpus").mkdir()
    (venv / "corpus/a.txt").write_text("One line of text.\nAnother one.\n" * 100)
    env = {"PATH": f"{venv}/bin:{os.environ['PATH']}", "HOME": str(venv), "XDG_CACHE_HOME": str(venv / "cache")}
    said("bash", "-ec", build, cwd=venv, **env)
    (venv / "readme.py").write_text(GIVEN + loop + f"assert dsload.__version__ == {VERSION!r} and steps == -(-200 // 32), steps\n")
    said("python", "-W", "error::ResourceWarning", "readme.py", cwd=venv, **env)
    print("ok: README's lines run")
    said(venv / "bin/python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", venv / "built", out / f"dsload-{VERSION}.tar.gz", cwd=scratch)
    with zipfile.ZipFile(next((venv / "built").iterdir())) as wheel:
        check(wheel.read("dsload/_bin/dsload") == program.read_bytes(), "the sdist builds the same program")


def check_big_endian(scratch: pathlib.Path) -> None:
    """Starts the program of a big-endian machine: it refuses, before anything in it has failed there."""
    if not shutil.which("qemu-s390x"):
        print("skipped: a big-endian program, since qemu-s390x is not installed")
        return
    flags = [os.environ["TYPESONLY"]] if "TYPESONLY" in os.environ else []
    said("go", "build", *flags, "-o", scratch / "s390x", "./cmd/dsload", cwd=release.ROOT, GOOS="linux", GOARCH="s390x", CGO_ENABLED="0")
    started = subprocess.run(["qemu-s390x", scratch / "s390x", "version"], capture_output=True, text=True)
    check(started.returncode != 0 and "use a little-endian machine" in started.stderr, "a big-endian machine is refused")


def check_go_install(scratch: pathlib.Path) -> None:
    """Installs the program, and imports tokenize alone, by their versions, from a repository with the tags."""
    source, outside = scratch / "tagged", scratch / "outside"
    said("git", "clone", "-q", "--shared", "--no-tags", release.ROOT, source, cwd=scratch)
    tag.tag(VERSION, source)
    env = tag.found_in(source, scratch)
    said("go", "install", f"{release.MODULE}/cmd/dsload@v{VERSION}", cwd=scratch, GOBIN=str(scratch / "bin"), **env)
    names_itself(scratch / "bin/dsload", scratch, "the program of go install")
    outside.mkdir()
    (outside / "main.go").write_text(IMPORTER)
    said("go", "mod", "init", "example.com/outside", cwd=outside, **env)
    said("go", "get", f"{tag.TOKENIZE}@v{VERSION}", cwd=outside, **env)
    said("go", "mod", "tidy", cwd=outside, **env)
    check(said("go", "run", ".", cwd=outside, **env) == "Hello, world", "a program that imports tokenize runs")
    modules = said("go", "list", "-m", "all", cwd=outside, **env).splitlines()
    check(len(modules) <= 10 and f"{release.MODULE} v{VERSION}" not in modules, f"it gets {len(modules)} modules, and not the one around tokenize")


def main(pythons: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        out, again = made(scratch / "a"), made(scratch / "another/folder")
        sums = [{p.name: release.digest(p) for p in place.iterdir()} for place in (out, again)]
        differing = sorted(name for name in sums[0] | sums[1] if sums[0].get(name) != sums[1].get(name))
        check(not differing, f"two folders give the same {len(sums[0])} files" + "".join(f"; {name} differs" for name in differing))
        program = check_archives(out, scratch)
        check_image(out, program)
        check_packages(out, program, scratch)
        said(sys.executable, "-m", "venv", scratch / "twine", cwd=scratch)
        said(scratch / "twine/bin/python", "-m", "pip", "install", "-q", TWINE, cwd=scratch)
        twine = said(scratch / "twine/bin/twine", "check", "--strict", *out.glob("*.whl"), out / f"dsload-{VERSION}.tar.gz", cwd=scratch)
        check(twine.count("PASSED") == len(release.TARGETS) + 1, "twine accepts the wheels and the sdist")
        check_go_install(scratch)
        check_big_endian(scratch)
        for python in pythons:
            check_python(python, out, program, scratch)


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
