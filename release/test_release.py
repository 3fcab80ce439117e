"""The refusals of make release, and archives whose bytes depend on nothing else. make release-check makes whole ones."""

from __future__ import annotations

import pathlib
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
