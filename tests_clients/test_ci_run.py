"""Tests .ci/run with scripts instead of make and go, which only record their calls: what it runs where, what it lets pass, and what it
says of a failure."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The targets tools and test-alone run the scripts that the real Makefile gives them.
MAKE = """#!/bin/sh
echo "make $* HOME=$HOME shared=${DSLOAD_SHARED:-none} in $PWD" >>"$CALLS"
case "$*" in
"-s tools") exec .ci/tools ;;
test-alone) exec .ci/alone ;;
test) cat "$CALLS.whole"; exit "${WHOLE_STATUS:-0}" ;;
test*QUICK=1*) cat "$CALLS.alone"; exit "${ALONE_STATUS:-0}" ;;
esac
"""
GO = """#!/bin/sh
if [ "$1" = env ]; then echo "/go/$2"; else echo "go $* HOME=$HOME in $PWD" >>"$CALLS"; fi
"""
MODULE = (ROOT / "go.mod").read_text().split("\n", 1)[0].removeprefix("module ")


def go_test(name, action, *output, package="internal/pack"):
    """What `go test -json` prints of one test."""
    event = {"Package": f"{MODULE}/{package}", "Test": name}
    lines = [{**event, "Action": "output", "Output": line + "\n"} for line in output]
    return "".join(json.dumps(e) + "\n" for e in [*lines, {**event, "Action": action}])


def package(action, *output, package="internal/pack"):
    """What `go test -json` prints of a package."""
    event = {"Package": f"{MODULE}/{package}"}
    lines = [{**event, "Action": "output", "Output": line + "\n"} for line in output]
    return "".join(json.dumps(e) + "\n" for e in [*lines, {**event, "Action": action}])


PASSED = go_test("TestA", "pass", "=== RUN   TestA") + package("pass", "ok")


@pytest.fixture()
def ci(tmp_path):
    """Runs .ci/run of a clone, with or without reference data next to it; gives (exit status, output, calls)."""
    for program in ("git", "bash", "strace", "curl", "openssl", "node", "npm", "chromium", "qemu-aarch64"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", checkout / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "go.mod", "tests_clients/requirements.txt", "python/tests/install_torch.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "a clone"]):
        subprocess.run(["git", *command], cwd=checkout, check=True)
    (checkout / ".venv").mkdir()
    (checkout / ".venv/installed").touch()
    (tmp_path / "bin").mkdir()
    for name, script in (("make", MAKE), ("go", GO)):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(shared=False, whole=PASSED, alone=PASSED, **more):
        if shared:
            (tmp_path / "shared").mkdir(exist_ok=True)
        (tmp_path / "calls.whole").write_text(whole)
        (tmp_path / "calls.alone").write_text(alone)
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
    assert status == 0 and output.splitlines()[-1] == "go: 1 passed, 0 failed, 0 skipped", output
    checkout, shared = tmp_path / "checkout", tmp_path / "shared"
    tools, lint, alone, built, tested, whole = calls
    for call, target in (
        (tools, "-s tools"), (lint, "-j2 -Otarget lint gate test-arm64"), (alone, "test-alone"),
        (whole, "test"),
    ):
        assert call == f"make {target} HOME={tmp_path} shared={shared} in {checkout}"
    home, place = built.split(" HOME=")[1].split(" in ")
    assert built.startswith("go run ./cmd/dsload build --max-examples 30000 ")
    assert tested.startswith("make test QUICK=1 ") and tested.endswith(f" HOME={home} shared=none in {place}")
    assert not place.startswith(str(tmp_path)) and not pathlib.Path(home).exists(), "the clone lies elsewhere, and is removed"


def skipped(reason):
    return go_test("TestInjected", "skip", "=== RUN   TestInjected", f"    x_test.go:4: {reason}", "--- SKIP: TestInjected (0s)")


@pytest.mark.parametrize(("shared", "env"), [
    (False, {"WHOLE_STATUS": "2"}),
    (False, {"ALONE_STATUS": "2"}),
    (False, {"whole": skipped("strace, which makes the faults, is not installed")}),
    (True, {"whole": skipped("no shared reference data a: set DSLOAD_SHARED")}),
    (False, {"whole": "SKIPPED [1] tests_clients/x.py:3: node is not installed\n"}),
    (False, {"whole": "SKIPPED [1] tests_clients/x.py:3: apache-arrow cannot be installed: no network\n"}),
    (False, {"whole": "SKIPPED [1] python/tests/x.py:3: could not import 'pytorch_lightning'\n"}),
    (False, {"alone": "SKIPPED [1] tests_clients/x.py:3: curl is not installed\n"}),
    (True, {"whole": "SKIPPED [1] python/tests/x.py:3: the reference corpora are not there (DSLOAD_SHARED)\n"}),
])
def test_what_fails(ci, shared, env):
    status, output, _ = ci(shared=shared, **env)
    assert status != 0 and "\nfailed: " in output or "_STATUS" in str(env) and status != 0


@pytest.mark.parametrize("env", [
    {"alone": "SKIPPED [1] python/tests/x.py:3: the reference corpora are not there (DSLOAD_SHARED)\n"},
    {"whole": "SKIPPED [1] python/tests/x.py:3: no CUDA device\n"},
    {"whole": skipped("the program is built without the race detector").replace("TestInjected", "TestSharedRealData")},
])
def test_what_passes(ci, env):
    assert ci(shared=True, **env)[0] == 0


PYTEST = """cd python && DSLOAD=/somewhere/bin/dsload /somewhere/.venv/bin/python -m pytest -q
..F                                                                      [100%]
=================================== FAILURES ===================================
_____________________________ TestOrder.test_rows[2] _____________________________
    def test_rows(n):
>       assert 1 == n
E       assert 1 == 2
=========================== short test summary info ============================
FAILED tests/test_order.py::TestOrder::test_rows[2] - assert 1 == 2
1 failed, 2 passed in 0.1s
make: *** [Makefile:60: test-python] Error 1
"""
GO_FAILED = (
    PASSED
    + "CGO_ENABLED=1 go test -race -short -timeout 40m -json ./internal/pack ./shard\n"
    + go_test("TestFits/a_b", "fail", "=== RUN   TestFits/a_b", "    fit_test.go:9: seed 7: got 3, want 4", "--- FAIL: TestFits/a_b (0.0s)")
    + go_test("TestFits", "fail", "=== RUN   TestFits", "--- FAIL: TestFits (0.0s)")
    + package("fail", "FAIL")
    + package("fail", "panic: test timed out after 40m0s", package="shard")
    + f"go test -timeout 40m -json {MODULE}/...\n"
    + go_test("TestFits", "pass")
    + package("pass", package="shard")
)
FUZZ_FAILED = PASSED + "./shard FuzzManifest\n    manifest_test.go:7: panic\nmake: *** [Makefile:50: fuzz] Error 1\n"


@pytest.mark.parametrize(("printed", "said"), [
    (GO_FAILED, [
        "FAILED ./internal/pack TestFits/a_b\n        fit_test.go:9: seed 7: got 3, want 4\n",
        f"  alone: go test -race -short {MODULE}/internal/pack -run '^TestFits$/^a_b$'\n",
        f"FAILED ./shard\n    panic: test timed out after 40m0s\n  alone: go test -race -short {MODULE}/shard\n",
        "\nfailed: ./internal/pack TestFits/a_b, ./shard\n",
    ]),
    (PYTEST, [
        "FAILED python/tests/test_order.py::TestOrder::test_rows[2]\n",
        "    E       assert 1 == 2\n",
        "  alone: cd python && DSLOAD=",
        "/somewhere/.venv/bin/python -m pytest 'tests/test_order.py::TestOrder::test_rows[2]'\n",
        "\nfailed: python/tests/test_order.py::TestOrder::test_rows[2]\n",
    ]),
    (FUZZ_FAILED, ["go: 1 passed, 1 failed", "    ./shard FuzzManifest\n        manifest_test.go:7: panic\n", "\nfailed: make\n"]),
])
def test_failures_explain_themselves(ci, printed, said):
    status, output, _ = ci(whole=printed, WHOLE_STATUS="2")
    assert status != 0
    for words in said:
        assert words in output
