"""The files in deploy/: the Slurm array as it runs, with the variables of a task; health checks and the example trainer
against a server."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest
import runs

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = REPOSITORY / "deploy"

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not DEPLOY.is_dir(), reason="the deploy files are not next to the package"),
]


def binary() -> str:
    from dsload._binary import find_binary

    return str(find_binary())


def write_lines(path: pathlib.Path, lines: int) -> pathlib.Path:
    with open(path, "w") as f:
        f.writelines(f"{i} " + "words of a line " * (i % 13) + "\n" for i in range(lines))
    return path


def dsload(*args: Any) -> str:
    result = subprocess.run([binary(), *map(str, args)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def task(script: str, number: int, count: int, **env: Any) -> subprocess.CompletedProcess[str]:
    """Runs a script as Slurm runs task `number` of an array."""
    slurm = {
        "SLURM_ARRAY_TASK_ID": number,
        "SLURM_ARRAY_TASK_MIN": 0,
        "SLURM_ARRAY_TASK_COUNT": count,
        "SLURM_CPUS_PER_TASK": 1,
        "DSLOAD": binary(),
    }
    variables = {**os.environ, **{k: str(v) for k, v in {**slurm, **env}.items()}}
    return subprocess.run(["bash", str(DEPLOY / "slurm" / script)], env=variables, capture_output=True, text=True)


def test_slurm_array(tmp_path: pathlib.Path) -> None:
    corpus, plan, out = write_lines(tmp_path / "corpus.txt", 4000), tmp_path / "plan.json", tmp_path / "out"
    dsload("plan", "--partitions", 5, "--out", plan, "--max-length", 64, "--progress", "none", corpus)
    paths = {"PLAN": plan, "OUT": out}
    assert task("build.sbatch", 0, 2, **paths).returncode == 0
    early = task("merge.sbatch", 0, 1, **paths)
    assert early.returncode == 1 and "2 of 5 parts are not built: 1, 3" in early.stderr
    for number in (1, 0, 1):  # submitted again as it is
        again = task("build.sbatch", number, 2, **paths)
        assert again.returncode == 0, again.stderr
    assert task("merge.sbatch", 0, 1, **paths).returncode == 0
    assert task("merge.sbatch", 0, 1, **paths).returncode == 0
    dsload("verify", out)
    dsload("build", corpus, "--out", tmp_path / "whole", "--max-length", 64, "--progress", "none")
    counts = [
        json.loads((folder / "manifest.json").read_text())["splits"][0]["tokens"]
        for folder in (out, tmp_path / "whole")
    ]
    assert counts[0] == counts[1]


def test_slurm_stops_at_a_checkpoint(tmp_path: pathlib.Path) -> None:
    corpus, plan, out = write_lines(tmp_path / "corpus.txt", 150_000), tmp_path / "plan.json", tmp_path / "out"
    dsload("plan", "--partitions", 1, "--out", plan, "--progress", "none", corpus)
    env = {**os.environ, "PLAN": str(plan), "OUT": str(out), "DSLOAD": binary(), "SLURM_ARRAY_TASK_ID": "0"}
    job = subprocess.Popen(["bash", str(DEPLOY / "slurm" / "build.sbatch")], env=env, stderr=subprocess.PIPE, text=True)
    try:
        while job.poll() is None and not list(out.glob("train-p00000-*.arrow*")):
            time.sleep(0.01)
        job.terminate()
        _, said = job.communicate(timeout=runs.HANGS)
    finally:
        job.kill()
    # It may have been done a moment before.
    assert job.returncode == 0 or (job.returncode == 5 and "submit the job again" in said), said
    assert task("build.sbatch", 0, 1, PLAN=plan, OUT=out).returncode == 0
    dsload("merge", out)
    dsload("verify", out)


def test_slurm_names_a_partition_that_fails(tmp_path: pathlib.Path) -> None:
    corpus, plan = write_lines(tmp_path / "corpus.txt", 100), tmp_path / "plan.json"
    dsload("plan", "--partitions", 2, "--out", plan, "--progress", "none", corpus)
    write_lines(corpus, 101)
    result = task("build.sbatch", 0, 1, PLAN=plan, OUT=tmp_path / "out")
    assert result.returncode == 1 and "partition 1/2 failed with exit code 3" in result.stderr


def test_slurm_submit_says_what_it_uses(tmp_path: pathlib.Path) -> None:
    corpus, out, scheduler = write_lines(tmp_path / "a corpus.txt", 100), tmp_path / "out of it", tmp_path / "bin"
    scheduler.mkdir()
    (scheduler / "sbatch").write_text('#!/bin/sh\necho "$@" >> "$0.log"\necho 7\n')
    (scheduler / "sbatch").chmod(0o755)
    env = {**os.environ, "DSLOAD": binary(), "PATH": f"{scheduler}:{os.environ['PATH']}"}
    said = []
    for _ in range(2):
        result = subprocess.run(
            ["bash", str(DEPLOY / "slurm" / "submit.sh"), "3", str(out), str(corpus)],
            env=env,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        said.append(result.stderr)
    assert "using the plan" not in said[0] and f"using the plan in {out}.plan.json" in said[1]
    assert (scheduler / "sbatch.log").read_text().count("--dependency=afterok:7") == 2
    missing = task("build.sbatch", 0, 1, PLAN=tmp_path / "none.json", OUT=out)
    assert missing.returncode == 2 and "there is no plan" in missing.stderr


def test_health_and_trainer(tmp_path: pathlib.Path) -> None:
    corpus, out, socket = write_lines(tmp_path / "corpus.txt", 300), tmp_path / "out", tmp_path / "s"
    dsload("build", corpus, "--out", out, "--progress", "none")
    with subprocess.Popen(
        [binary(), "serve", str(out), "--socket", str(socket), "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert str(socket) in server.stdout.readline()
        assert dsload("health", socket).strip()
        env = {**os.environ, "DSLOAD_SOCKET": str(socket), "PYTHONPATH": str(REPOSITORY / "python")}
        trainer = subprocess.run(
            [sys.executable, str(DEPLOY / "trainer.py")], env=env, capture_output=True, text=True, timeout=runs.HANGS
        )
        assert trainer.returncode == 0 and " steps, " in trainer.stdout, trainer.stderr
    assert subprocess.run([binary(), "health", str(socket)], capture_output=True).returncode == 6


def test_kubernetes_jobs_run(tmp_path: pathlib.Path) -> None:
    """The arguments of the jobs make a dataset, with 3 partitions for 64, and folders of this machine for those of the
    volumes."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    containers = {}
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for job in yaml.safe_load_all(path.read_text()):
            if job["kind"] == "Job":
                (container,) = job["spec"]["template"]["spec"]["containers"]
                containers[container["args"][0]] = (
                    job["spec"],
                    [a.replace("/data/", f"{tmp_path}/") for a in container["args"]],
                )
    assert list(containers) == ["plan", "build", "merge"]
    (tmp_path / "corpus").mkdir()
    write_lines(tmp_path / "corpus" / "a.txt", 500)
    args = containers["plan"][1]
    count = args[args.index("--partitions") + 1]
    assert containers["build"][0]["completions"] == int(count), "a task for each partition"
    dsload(*("3" if a == count else a for a in args))
    for i in range(3):
        dsload(*(a.replace(f"$(JOB_COMPLETION_INDEX)/{count}", f"{i}/3") for a in containers["build"][1]))
    dsload(*containers["merge"][1])
    dsload("verify", tmp_path / "set")


def test_compose_services_run(tmp_path: pathlib.Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    here = [("/corpus", tmp_path / "corpus"), ("/data", tmp_path), ("/run/dsload", tmp_path)]

    def command(name: str) -> list[str]:
        args = services[name]["command"]
        for there, folder in here:
            args = [str(folder) + a[len(there) :] if a == there or a.startswith(there + "/") else a for a in args]
        return [str(a) for a in args]

    (tmp_path / "corpus").mkdir()
    write_lines(tmp_path / "corpus" / "a.txt", 500)
    dsload(*command("build"))
    with subprocess.Popen(
        [binary(), *command("feed"), "--exit-with-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert "feed.sock" in server.stdout.readline()
        env = {**os.environ, "DSLOAD_SOCKET": str(tmp_path / "feed.sock"), "PYTHONPATH": str(REPOSITORY / "python")}
        trainer = subprocess.run(
            [sys.executable, str(DEPLOY / "trainer.py")], env=env, capture_output=True, text=True, timeout=runs.HANGS
        )
        assert trainer.returncode == 0 and " steps, " in trainer.stdout, trainer.stderr


LINTERS: list[tuple[list[str], list[str]]] = [
    (["shellcheck"], ["slurm/build.sbatch", "slurm/merge.sbatch", "slurm/submit.sh"]),
    (["hadolint"], ["Dockerfile", "trainer.Dockerfile"]),
    (["kubeconform", "-strict"], ["kubernetes"]),
    (["docker", "compose", "-f"], ["compose.yaml"]),
]


@pytest.mark.parametrize(("linter", "files"), LINTERS, ids=[linter[0] for linter, _ in LINTERS])
def test_linted(linter: list[str], files: list[str]) -> None:
    program = shutil.which(linter[0])
    if program is None:
        pytest.skip(f"{linter[0]} is not installed")
    command = [program, *linter[1:], *(str(DEPLOY / name) for name in files)]
    if linter[0] == "docker":
        if subprocess.run([program, "compose", "version"], capture_output=True).returncode != 0:
            pytest.skip("docker has no compose")
        command += ["config", "--quiet"]
    result = subprocess.run(command, env={**os.environ, "CORPUS": "/corpus"}, capture_output=True, text=True)
    said = result.stdout + result.stderr
    if "failed downloading schema" in said:
        pytest.skip("kubeconform could not load its schemas")
    assert result.returncode == 0, said
