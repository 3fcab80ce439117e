"""The refusals of make release, and archives whose bytes depend on nothing else. make release-check makes whole ones."""

from __future__ import annotations

import email
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import check
import inventory
import pack
import release
import tag

VERSION = release.versions_of(release.ROOT)["cmd/dsload/version.go"]


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with the files that have the version."""
    for name in release.VERSIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((release.ROOT / name).read_bytes())
    (tmp_path / ".gitignore").write_text("/dist/\n")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_targets_are_those_of_wheels() -> None:
    wheels = runpy.run_path(str(release.ROOT / "python/build_wheel.py"))
    assert release.TARGETS == ["/".join(platform) for platform in wheels["PLATFORMS"]]
    assert release.TARGETS[:4] == [f"{system}/{machine}" for system in ("linux", "darwin") for machine in ("amd64", "arm64")], "packages and the formula take these"
    made = subprocess.run(["make", "-s", "-n", "vet-targets"], cwd=release.ROOT, check=True, capture_output=True, text=True).stdout
    assert " ".join(release.TARGETS) in made


def test_versions_agree() -> None:
    assert set(release.versions_of(release.ROOT).values()) == {VERSION}


def test_the_check_of_wheels_follows_readme() -> None:
    """make release-check is not part of make test: README must not change unnoticed under it."""
    commands, loop = check.first_lines()
    assert commands.startswith("dsload build corpus/") and "--out data" in commands and 'Loader("data"' in loop


@pytest.mark.parametrize("version", ["", "1", "v0.1.0", "0.1", "0.1.0 ", "01.0.0", "0.1.0\n", "latest"])
def test_no_version(checkout: pathlib.Path, version: str) -> None:
    with pytest.raises(SystemExit, match=r"make release VERSION=0\.1\.0"):
        release.main(version, checkout)
    assert not (checkout / "dist").exists()


def test_another_version(checkout: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match=r"cmd/dsload/version.go has .*(?s:.)*write 9\.9\.9 there and commit"):
        release.main("9.9.9", checkout)
    assert not (checkout / "dist").exists()


def test_changed_files(checkout: pathlib.Path) -> None:
    (checkout / "new.txt").write_text("new")
    with pytest.raises(SystemExit, match=r"new\.txt\ncommit or stash them"):
        release.main(VERSION, checkout)
    assert not (checkout / "dist").exists()


def test_missing_tool(checkout: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    with pytest.raises(SystemExit, match="git is not on PATH; install it"):
        release.main(VERSION, checkout)
    assert not (checkout / "dist").exists()


def test_made_already(checkout: pathlib.Path) -> None:
    kept = checkout / "dist" / VERSION / "kept"
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(SystemExit, match=f"rm -r dist/{VERSION}"):
        release.main(VERSION, checkout)
    assert kept.exists()


def test_failure_leaves_nothing(checkout: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repository has no python/build_wheel.py, which is missed after the work has begun. Other tests may have put this one's on the path."""
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not pathlib.Path(folder, "build_wheel.py").exists()])
    monkeypatch.delitem(sys.modules, "build_wheel", raising=False)
    with pytest.raises(ModuleNotFoundError):
        release.main(VERSION, checkout)
    assert list((checkout / "dist").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_nothing(checkout: pathlib.Path, number: signal.Signals) -> None:
    code = f"""
import pathlib, sys, time
sys.path.insert(0, {str(release.HERE)!r})
import release
release.Release = lambda *_: print("at work", flush=True) or time.sleep(600)
release.stoppable()
release.main({VERSION!r}, pathlib.Path({str(checkout)!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=release.HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "at work\n"
    assert [p.name.split("-")[0] for p in (checkout / "dist").iterdir()] == [".unfinished"]
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 1 and said == f"release: stopped by {number.name}; nothing of it is left\n"
    assert not list((checkout / "dist").iterdir())


@pytest.fixture
def two_modules(checkout: pathlib.Path) -> pathlib.Path:
    """A repository with a program whose go.mod takes tokenize from its folder."""
    own, nested = release.MODULE, tag.TOKENIZE
    files = {
        "go.mod": f"module {own}\n\ngo 1.26\n\nrequire (\n\t{nested} v{VERSION}\n)\n\nreplace {nested} => ./tokenize\n",
        "cmd/dsload/main.go": f'package main\n\nimport "{nested}"\n\nfunc main() {{ print(tokenize.Name, version) }}\n',
        "tokenize/go.mod": f"module {nested}\n\ngo 1.26\n",
        "tokenize/name.go": 'package tokenize\n\nconst Name = "tokenize "\n',
        "LICENSE": "Go puts it into tokenize's archive too, whose sum it is part of.\n",
    }
    for name, text in files.items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
    (checkout / "cmd/dsload/version.go").write_text(f'package main\n\nconst version = "{VERSION}"\n')
    subprocess.run(["git", "add", "-A"], cwd=checkout, check=True)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "modules"], cwd=checkout, check=True)
    return checkout


def test_tags_can_be_installed(two_modules: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    head = release.run("git", "rev-parse", "HEAD", cwd=two_modules)
    tag.tag(VERSION, two_modules)
    assert release.run("git", "rev-parse", "HEAD", f"v{VERSION}^", f"tokenize/v{VERSION}^", cwd=two_modules).split() == [head] * 3
    assert release.run("git", "status", "--porcelain", cwd=two_modules) == ""
    scratch = tmp_path_factory.mktemp("scratch")
    env = tag.found_in(two_modules, scratch)
    release.run("go", "install", f"{release.MODULE}/cmd/dsload@v{VERSION}", cwd=scratch, GOBIN=str(scratch), **env)
    release.run("git", "clone", "-q", "--branch", f"v{VERSION}", two_modules, scratch / "clone", cwd=scratch)
    release.run("go", "build", "-mod=readonly", "-o", "program", "./cmd/dsload", cwd=scratch / "clone", **env)
    for program in (scratch / "dsload", scratch / "clone/program"):
        assert subprocess.run([program], check=True, capture_output=True, text=True).stderr == f"tokenize {VERSION}"
    with pytest.raises(SystemExit, match=f"git tag -d tokenize/v{VERSION} v{VERSION}"):
        tag.tag(VERSION, two_modules)


def test_no_tags_of_another_version(two_modules: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match=r"make tag VERSION=0\.1\.0"):
        tag.tag("v1", two_modules)
    with pytest.raises(SystemExit, match=r"go\.mod has .*(?s:.)*write 9\.9\.9 there and commit"):
        tag.tag("9.9.9", two_modules)
    assert release.run("git", "tag", cwd=two_modules) == ""


def test_every_file_has_a_place(tmp_path: pathlib.Path) -> None:
    """Of each kind that Release writes, and no command names a file that is not there."""
    made = {
        f"dsload-{VERSION}-py3-none-any.whl": "PyPI",
        f"dsload-{VERSION}.tar.gz": "PyPI",
        f"dsload-{VERSION}-linux-amd64.tar.gz": "release page",
        f"dsload-{VERSION}-windows-amd64.zip": "release page",
        f"dsload_{VERSION}-1_amd64.deb": "package repositories",
        f"dsload-{VERSION}-oci.tar": "registry of images",
        "dsload.rb": "Homebrew tap",
        "SHA256SUMS": "release page",
    }
    for name in made:
        (tmp_path / name).write_bytes(b"x" * 20_000)
    said = release.told(tmp_path, VERSION)
    for name, place in made.items():
        assert re.search(rf"^ +0\.02 MB  dist/{VERSION}/{re.escape(name)}  -> .*{place}", said, re.M), name
    for word in re.findall(r"\S*dsload[-.]\S+", said.partition("Nothing is published")[2]):
        assert word.rpartition(":")[2] in made or "REGISTRY" in word, word


def test_wheels_say_all_that_an_index_shows() -> None:
    wheels = runpy.run_path(str(release.ROOT / "python/build_wheel.py"))
    found = email.message_from_string(wheels["_metadata"](["LICENSE"]))
    urls = dict(v.split(", ") for v in found.get_all("Project-URL"))
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    for path in (u.partition("/blob/main/")[2] for u in urls.values() if "/blob/" in u):
        assert (release.ROOT / path).exists(), path
    assert found["Author"] and found["Keywords"] and found["License-Expression"] == "Apache-2.0"
    kinds = {c.partition(" ::")[0] for c in found.get_all("Classifier")}
    assert {"Development Status", "Intended Audience", "Topic", "Programming Language"} <= kinds and "License" not in kinds
    text = found.get_payload()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links and not [u for u in links if not u.startswith(("https://", "#"))] and "<!-- not run" not in text
    for path in (u.partition("/blob/main/")[2].partition("#")[0] for u in links if "/blob/main/" in u):
        assert (release.ROOT / path).exists(), path


def test_archives_are_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [pack.Entry("d/dsload", b"program" * 1000, 0o755), pack.Entry("d/LICENSE", b"text")]
    makers = (
        lambda: pack.tar_gz(entries, 1_700_000_000),
        lambda: pack.zip_file(entries),
        lambda: pack.image({"amd64": b"1", "arm64": b"2"}, b"certificates", {"a": "b"}, "2026-01-01T00:00:00Z", 1_700_000_000),
    )
    first = [make() for make in makers]
    later = time.time() + 1e6
    monkeypatch.setattr(time, "time", lambda: later)
    assert [make() for make in makers] == first


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("Redistribution and use in source and binary forms ...\nNeither the name of", "BSD-3-Clause"),
        ("Redistribution and use in source and binary forms, with or without", "BSD-2-Clause"),
        ("GNU GENERAL PUBLIC LICENSE", ""),
    ],
)
def test_licenses(text: str, kind: str) -> None:
    assert inventory.Module("m", "v1", {"LICENSE": text}).spdx == kind
