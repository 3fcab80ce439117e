"""Makes everything that a release has, and publishes nothing:

    make release VERSION=0.1.0          # into dist/0.1.0/

The sources are those of the commit that is checked out. The same commit and Go version give the same bytes in any
folder. What is made is worked on in a folder of its own, and gets its name when it is complete.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import inventory  # noqa: E402
import pack  # noqa: E402

# Those that wheels are made for: python/build_wheel.py has the list, for the Makefile too.
TARGETS = ["/".join(found) for found in re.findall(r'^    \("(\w+)", "(\w+)"\): "', (ROOT / "python/build_wheel.py").read_text(encoding="utf-8"), re.M)]
MODULE = "github.com/dsload/dsload"
URL = f"https://{MODULE}"
SUMMARY = "Streaming, memory-capped dataset tokenizer and loader for training language models"
# Tools and data of others, each of one version. Later versions of nfpm need modules that not every proxy has.
NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0"
ROOTS = "golang.org/x/crypto/x509roots/fallback@v0.0.0-20261030153154-30a33513ff6d"
# Where the version is written. All must have the one that is released.
VERSIONS = {
    "go.mod": r"^\s*github\.com/dsload/dsload/tokenize v(\S+)$",
    "cmd/dsload/version.go": r'^const version = "(.+)"$',
    "python/dsload/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (\S+)$",
    "deploy/kubernetes/10-plan.yaml": r"image: dsload:(\S+)",
    "deploy/kubernetes/20-build.yaml": r"image: dsload:(\S+)",
    "deploy/kubernetes/30-merge.yaml": r"image: dsload:(\S+)",
    "deploy/kubernetes/40-train.yaml": r"image: dsload:(\S+)",
}
# Where packages put what completes commands: the places that Debian and Fedora both read, or the first of theirs.
COMPLETIONS = {
    "bash": "/usr/share/bash-completion/completions/dsload",
    "zsh": "/usr/share/zsh/vendor-completions/_dsload",
    "fish": "/usr/share/fish/vendor_completions.d/dsload.fish",
}
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def run(*command: object, cwd: pathlib.Path = ROOT, **env: str) -> str:
    """What a command prints. If it fails, what it said ends the release."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise SystemExit(f"release: {' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
    return done.stdout.strip()


def host() -> str:
    """The target that this machine is."""
    return "/".join(run("go", "env", "GOHOSTOS", "GOHOSTARCH").split())


def versions_of(root: pathlib.Path) -> dict[str, str]:
    """The version in each place that has one, "" where it is not found."""
    found = {}
    for name, pattern in VERSIONS.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        found[name] = match[1] if match else ""
    return found


def refuse_unless_ready(version: str, root: pathlib.Path, target: str = "release") -> None:
    """Ends with what to do where a target of make cannot be made of a commit."""
    if not SEMVER.fullmatch(version):
        raise SystemExit(f'release: VERSION is "{version}"; name a semantic version: make {target} VERSION=0.1.0')
    if sys.version_info < (3, 11):
        raise SystemExit(f"release: needs Python 3.11: make {target} PYTHON=python3.11")
    for tool, use in {"git": "apt-get install git", "go": "https://go.dev/dl"}.items():
        if not shutil.which(tool):
            raise SystemExit(f"release: {tool} is not on PATH; install it ({use})")
    if others := {name: found for name, found in versions_of(root).items() if found != version}:
        lines = "".join(f"\n  {name} has {found or 'none'}" for name, found in others.items())
        raise SystemExit(f"release: VERSION is {version}, but{lines}\nwrite {version} there and commit, or release the other")
    if changed := run("git", "status", "--porcelain", cwd=root):
        lines = "\n  ".join(changed.splitlines()[:10])
        raise SystemExit(f"release: a commit is released, and these files differ from it:\n  {lines}\ncommit or stash them")


def use_toolchain(root: pathlib.Path) -> None:
    """Builds with the release of Go that go.mod names, whichever is installed: equal bytes on every machine, and a standard library whose known
    vulnerabilities are mended."""
    named = re.search(r"^toolchain (\S+)$", (root / "go.mod").read_text(encoding="utf-8"), re.M)
    assert named, "go.mod names no toolchain"
    os.environ["GOTOOLCHAIN"] = named[1]
    run("go", "version", cwd=root)  # fetches it


class Release:
    def __init__(self, version: str, source: pathlib.Path, scratch: pathlib.Path, out: pathlib.Path) -> None:
        self.version, self.source, self.scratch, self.out = version, source, scratch, out
        self.time = int(run("git", "log", "-1", "--format=%ct", cwd=source))
        self.created = datetime.datetime.fromtimestamp(self.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.commit = run("git", "rev-parse", "HEAD", cwd=source)
        self.stem = f"dsload-{version}"
        sys.path.insert(0, str(source / "python"))
        self.wheels = importlib.import_module("build_wheel")
        self.programs: dict[str, pathlib.Path] = {}  # by target

    def make(self) -> None:
        use_toolchain(self.source)
        envs = [{"GOOS": t.split("/")[0], "GOARCH": t.split("/")[1], "GOAMD64": "v1", "GOARM64": "v8.0"} for t in TARGETS]
        modules = inventory.linked(["go"], self.source, [{**os.environ, **env} for env in envs])
        licenses = self.scratch / "THIRD-PARTY-LICENSES.txt"
        licenses.write_text(inventory.license_text(modules, MODULE), encoding="utf-8")
        for target, env in zip(TARGETS, envs, strict=True):
            print(f"release: {target}", file=sys.stderr)
            program = self.scratch / target.replace("/", "-")
            self.wheels.compile_program(program, GOFLAGS="", GOEXPERIMENT="", **env)
            self.programs[target] = program
            self.archive(target, licenses)
            self.wheels.wheel_of(self.out, program, tuple(target.split("/")), licenses)
        self.wheels.build_sdist(str(self.out))
        print("release: packages, image, SBOM", file=sys.stderr)
        self.linux_packages(licenses)
        self.image()
        self.formula()
        named = {target.replace("/", "-"): program for target, program in self.programs.items()}
        self.write(f"{self.stem}.spdx.json", inventory.sbom(["go"], named, modules, MODULE, self.version, self.commit, self.created).encode())
        self.write("SHA256SUMS", "".join(f"{digest(path)}  {path.name}\n" for path in sorted(self.out.iterdir())).encode())

    def write(self, name: str, data: bytes) -> None:
        (self.out / name).write_bytes(data)

    def archive(self, target: str, licenses: pathlib.Path) -> None:
        name, windows = f"{self.stem}-{target.replace('/', '-')}", target.startswith("windows")
        program = "dsload.exe" if windows else "dsload"
        entries = [pack.Entry(f"{name}/{program}", self.programs[target].read_bytes(), 0o755)]
        for path in (licenses, *(self.source / file for file in ("LICENSE", "README.md", "CHANGELOG.md"))):
            entries.append(pack.Entry(f"{name}/{path.name}", path.read_bytes()))
        if windows:
            self.write(f"{name}.zip", pack.zip_file(entries))
        else:
            self.write(f"{name}.tar.gz", pack.tar_gz(entries, self.time))

    def texts(self) -> dict[str, pathlib.Path]:
        """The manual pages and what completes commands in shells, by their places in a Linux system. This machine's program prints them."""
        program, folder = self.programs[host()], self.scratch / "man"
        run(program, "help", "--man", folder)
        found = {}
        for page in sorted(folder.iterdir()):
            packed = page.with_name(page.name + ".gz")
            packed.write_bytes(pack.gzip.compress(page.read_bytes(), mtime=0))
            found[f"/usr/share/man/man1/{packed.name}"] = packed
        for shell, place in COMPLETIONS.items():
            script = self.scratch / f"completion.{shell}"
            script.write_text(run(program, "completion", shell) + "\n", encoding="utf-8")
            found[place] = script
        return found

    def linux_packages(self, licenses: pathlib.Path) -> None:
        run("go", "install", NFPM, GOBIN=str(self.scratch), GOFLAGS="-trimpath", cwd=self.scratch)
        mode, texts = {"mode": 0o644, "mtime": self.created}, self.texts()
        for target in TARGETS[:2]:
            contents = [{"src": str(self.programs[target]), "dst": "/usr/bin/dsload", "file_info": {**mode, "mode": 0o755}}]
            for path in (self.source / "LICENSE", licenses):
                contents.append({"src": str(path), "dst": f"/usr/share/doc/dsload/{path.name}", "file_info": mode})
            contents += [{"src": str(path), "dst": place, "file_info": mode} for place, path in texts.items()]
            config = {"name": "dsload", "arch": target.split("/")[1], "platform": "linux", "version": self.version, "release": "1",
                      "section": "utils", "maintainer": f"The dsload authors <{URL}>", "description": SUMMARY, "homepage": URL,
                      "license": "Apache-2.0", "mtime": self.created, "rpm": {"buildhost": "localhost"},
                      "recommends": ["ca-certificates"], "contents": contents}
            path = self.scratch / "nfpm.json"
            path.write_text(json.dumps(config))
            for kind in ("deb", "rpm"):
                run(self.scratch / "nfpm", "package", "-f", path, "-p", kind, "-t", self.out, SOURCE_DATE_EPOCH=str(self.time))

    def image(self) -> None:
        folder = pathlib.Path(json.loads(run("go", "mod", "download", "-json", ROOTS, cwd=self.scratch))["Dir"])
        labels = {"org.opencontainers.image." + name: value for name, value in
                  {"title": "dsload", "version": self.version, "revision": self.commit, "source": URL, "licenses": "Apache-2.0"}.items()}
        programs = {t.split("/")[1]: self.programs[t].read_bytes() for t in TARGETS if t.startswith("linux")}
        certificates = pem((folder / "bundle/bundle.der").read_bytes())
        self.write(f"{self.stem}-oci.tar", pack.image(programs, certificates, labels, self.created, self.time))

    def formula(self) -> None:
        text = (HERE / "dsload.rb").read_text(encoding="utf-8").replace("VERSION", self.version).replace("SUMMARY", SUMMARY)
        for target in TARGETS[:4]:
            name = target.replace("/", "-")
            text = text.replace(f"SHA256-{name}", digest(self.out / f"{self.stem}-{name}.tar.gz"))
        self.write("dsload.rb", text.encode())


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pem(der: bytes) -> bytes:
    """Certificates one after another in DER, as PEM."""
    import ssl

    out, at = [], 0
    while at < len(der):
        if der[at : at + 2] != b"\x30\x82":
            raise AssertionError("not a certificate of 256 to 65535 bytes")
        end = at + 4 + int.from_bytes(der[at + 2 : at + 4], "big")
        out.append(ssl.DER_cert_to_PEM_cert(der[at:end]))
        at = end
    return "".join(out).encode()


def main(version: str, root: pathlib.Path = ROOT) -> None:
    refuse_unless_ready(version, root)
    if host() not in TARGETS:
        raise SystemExit(f"release: packages hold what the program prints here, and none is made for {host()}; make it on one of {', '.join(TARGETS)}")
    if (root / "dist" / version).exists():
        raise SystemExit(f"release: dist/{version} is there already; remove it to make it anew: rm -r dist/{version}")
    (root / "dist").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / "dist", prefix=".unfinished-") as folder:
        scratch = pathlib.Path(folder)
        source, out = scratch / "source", scratch / "out"
        run("git", "clone", "-q", "--shared", root, source)
        out.mkdir()
        Release(version, source, scratch, out).make()
        out.rename(root / "dist" / version)
    print(told(root / "dist" / version, version))


# Where each file would go, and the command that takes it there, in the folder of the release.
PLACES = (
    (r"\.whl$|^dsload-[\d.]+\.tar\.gz$", "PyPI, release page", "twine upload *.whl dsload-{version}.tar.gz"),
    (r"-oci\.tar$", "registry of images", "skopeo copy --all oci-archive:dsload-{version}-oci.tar docker://REGISTRY/dsload:{version}"),
    (r"\.rb$", "Homebrew tap", "cp dsload.rb TAP/Formula/ && git -C TAP commit -am 'dsload {version}' && git -C TAP push"),
    (r"\.deb$|\.rpm$", "release page, package repositories", ""),
    (r"", "release page", "gh release create v{version} --verify-tag *"),
)


def place_of(name: str) -> str:
    return next(place for pattern, place, _ in PLACES if re.search(pattern, name))


def told(out: pathlib.Path, version: str) -> str:
    """What was made, and where each file would go: make release sends nothing anywhere."""
    files = sorted(out.iterdir())
    lines = [f"{p.stat().st_size / 1e6:8.2f} MB  dist/{version}/{p.name}  -> {place_of(p.name)}" for p in files]
    lines += ["", f"Nothing is published. After make tag VERSION={version}, in dist/{version}:", ""]
    return "\n".join([*lines, *(f"  {place.split(',')[0]}: {command.format(version=version)}" for _, place, command in PLACES if command)])


def stoppable() -> None:
    """Lets SIGINT and SIGTERM end the release as an error does: what it was working on is removed."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(f"release: stopped by {signal.Signals(number).name}; nothing of it is left")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


if __name__ == "__main__":
    stoppable()
    main(sys.argv[1] if len(sys.argv) > 1 else "")
