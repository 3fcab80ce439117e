"""Makes the tags by which Go finds a release, and pushes nothing:

    make tag VERSION=0.1.0          # v0.1.0 and tokenize/v0.1.0

In a checkout go.mod takes tokenize from its folder. Go installs no program whose go.mod does that, so what is tagged is
a commit after the one that is checked out, on no branch, in which go.mod takes tokenize by its version.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import release  # noqa: E402

TOKENIZE = f"{release.MODULE}/tokenize"


def found_in(repository: pathlib.Path, scratch: pathlib.Path) -> dict[str, str]:
    """Settings with which Go finds our modules by the tags of a repository, as it does by those that are published, and keeps them in scratch. Those of
    others come from this machine's cache first."""
    cache, others = release.run("go", "env", "GOMODCACHE", "GOPROXY", cwd=scratch).splitlines()
    return {
        "GOMODCACHE": str(scratch / "modules"),
        "GOPROXY": f"file://{cache}/cache/download,{others}",
        "GONOPROXY": release.MODULE,
        "GONOSUMDB": release.MODULE,
        "GOVCS": f"{release.MODULE}:git",
        "GOFLAGS": "-trimpath -modcacherw",
        "GOWORK": "off",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository}.insteadOf",
        "GIT_CONFIG_VALUE_0": release.URL,
    }


def tag(version: str, root: pathlib.Path = release.ROOT) -> None:
    release.refuse_unless_ready(version, root, "tag")
    tags = [f"v{version}", f"tokenize/v{version}"]
    if there := release.run("git", "tag", "--list", *tags, cwd=root).split():
        raise SystemExit(f"tag: {' and '.join(there)} is there already; what is published under a version stays: release another, or, if it never left "
                         f"this machine: git tag -d {' '.join(there)}")
    values = release.run("git", "log", "-1", "--format=%cn%n%ce%n%cI", cwd=root).splitlines()
    by = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in zip(("NAME", "EMAIL", "DATE"), values, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        source = scratch / "source"
        release.run("git", "clone", "-q", "--shared", "--no-tags", root, source)
        release.run("git", "tag", tags[1], cwd=source)
        release.run("go", "mod", "edit", f"-dropreplace={TOKENIZE}", cwd=source)
        release.run("go", "mod", "download", TOKENIZE, cwd=source, **found_in(source, scratch))  # writes its sums
        release.run("git", "add", "go.mod", "go.sum", cwd=source)
        release.run("git", "commit", "-qm", f"dsload {version}, which takes tokenize by its version", cwd=source, **by)
        for name in tags:
            release.run("git", "tag", "--force", name, cwd=source)
        release.run("git", "fetch", "-q", source, *(f"refs/tags/{name}:refs/tags/{name}" for name in tags), cwd=root)


if __name__ == "__main__":
    release.stoppable()
    tag(sys.argv[1] if len(sys.argv) > 1 else "")
    print(f"tagged; publish with: git push origin v{sys.argv[1]} tokenize/v{sys.argv[1]}")
