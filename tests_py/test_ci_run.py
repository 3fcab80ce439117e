"""Tests .ci/run with scripts instead of make and go, which only record their calls: what it runs where, and what it lets pass."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

MAKE = """#!/bin/sh
echo "make $* HOME=$HOME shared=${DSLOAD_SHARED:-none} in $PWD" >>"$CALLS"
case "$*" in
test) echo "--- PASS: TestA (0.1s)"; printf '%b\\n' "$WHOLE"; exit "${WHOLE_STATUS:-0}" ;;
test*QUICK=1*) printf '%b\\n' "$ALONE"; exit "${ALONE_STATUS:-0}" ;;
esac
"""
GO = """#!/bin/sh
if [ "$1" = env ]; then echo "/go/$2"; else echo "go $* HOME=$HOME in $PWD" >>"$CALLS"; fi
"""


@pytest.fixture()
def ci(tmp_path):
    """Runs .ci/run of a clone, with or without reference data beside it; gives (exit status, output, calls)."""
    for program in ("git", "bash", "strace", "curl", "openssl", "node", "npm", "chromium"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    for name in (".ci/run", "README.md"):
        shutil.copy(ROOT / name, checkout / name)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "a clone"]):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    (tmp_path / "bin").mkdir()
    for name, script in (("make", MAKE), ("go", GO)):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(shared=False, **more):
        if shared:
            (tmp_path / "shared").mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items() if k not in ("DSLOAD_SHARED", "PYTEST_ADDOPTS", "GOTESTFLAGS")}
        env.update(PATH=f"{tmp_path / 'bin'}:{env['PATH']}", CALLS=str(tmp_path / "calls"), CI="true", HOME=str(tmp_path), **more)
        done = subprocess.run(["bash", ".ci/run"], cwd=checkout, env=env, capture_output=True, text=True)
        calls = (tmp_path / "calls").read_text().splitlines()
        installed = [call for call in calls if call.startswith("go install ")]
        assert len(installed) == sum(shutil.which(name) is None for name in ("versitygw", "fake-gcs-server")), calls
        return done.returncode, done.stdout + done.stderr, [call for call in calls if call not in installed]

    return run


def test_readmes_commands_run_twice(ci, tmp_path):
    status, output, calls = ci(shared=True)
    assert status == 0 and output.splitlines()[-1] == "go: 1 passed, 0 failed", output
    checkout, shared = tmp_path / "checkout", tmp_path / "shared"
    assert calls[:2] == [f"make {target} HOME={tmp_path} shared={shared} in {checkout}" for target in ("lint", "test")]
    built, tested = calls[2:]
    home, place = built.split(" HOME=")[1].split(" in ")
    assert built.startswith("go run ./cmd/dsload build --max-examples 30000 ")
    assert tested.startswith("make test QUICK=1 ") and tested.endswith(f" HOME={home} shared=none in {place}")
    assert not place.startswith(str(tmp_path)) and not pathlib.Path(home).exists(), "the clone lies elsewhere, and is removed"


@pytest.mark.parametrize(("shared", "env"), [
    (False, {"WHOLE_STATUS": "2"}),
    (False, {"ALONE_STATUS": "2"}),
    (False, {"WHOLE": "--- SKIP: TestInjected (0s)\\n    x_test.go:4: strace, which makes the faults, is not installed"}),
    (False, {"WHOLE": "=== RUN   TestInjected\\n    x_test.go:4: strace, which makes the faults, is not installed\\n--- SKIP: TestInjected (0s)"}),
    (True, {"WHOLE": "    x_test.go:4: no shared reference data a: set DSLOAD_SHARED\\n--- PASS: TestA (0s)\\n    --- SKIP: TestA/a (0s)"}),
    (False, {"WHOLE": "SKIPPED [1] tests_py/x.py:3: node is not installed"}),
    (False, {"WHOLE": "SKIPPED [1] tests_py/x.py:3: apache-arrow cannot be installed: no network"}),
    (False, {"WHOLE": "SKIPPED [1] python/tests/x.py:3: could not import 'pytorch_lightning'"}),
    (False, {"ALONE": "SKIPPED [1] tests_py/x.py:3: curl is not installed"}),
    (True, {"WHOLE": "SKIPPED [1] python/tests/x.py:3: the reference corpora are not there (DSLOAD_SHARED)"}),
])  # fmt: skip
def test_what_fails(ci, shared, env):
    status, output, _ = ci(shared=shared, **env)
    assert status != 0 and "0 failed" not in output


@pytest.mark.parametrize("env", [
    {"ALONE": "SKIPPED [1] python/tests/x.py:3: the reference corpora are not there (DSLOAD_SHARED)"},
    {"WHOLE": "SKIPPED [1] python/tests/x.py:3: no CUDA device"},
])  # fmt: skip
def test_what_passes(ci, env):
    assert ci(shared=True, **env)[0] == 0
