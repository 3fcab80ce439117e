"""The files in deploy/: Slurm's scripts as they run, with stand-ins for its programs; the commands of the containers of
Kubernetes and Compose, on this machine's folders; health checks against a server."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a small decoder, and the tokenizer of 256 bytes that it has."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import models
    import tokenizers

    folder = tmp_path_factory.mktemp("models") / "gpt2"
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.train_from_iterator(
        [],
        tokenizers.trainers.BpeTrainer(
            vocab_size=257,
            special_tokens=["</s>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    models.gpt2(vocab=257, layers=1, width=16).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>").save_pretrained(folder)
    return folder


def on_path(**more: Any) -> dict[str, str]:
    """The environment, with this Python's programs on PATH, and this package."""
    paths = {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY / "python"),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    return {**os.environ, **paths, **{k: str(v) for k, v in more.items()}}


def trained(command: list[str]) -> str:
    """What a trainer printed that came to its end."""
    result = subprocess.run(command, env=on_path(), capture_output=True, text=True, timeout=runs.HANGS)
    assert result.returncode == 0 and "the model is in" in result.stdout, result.stdout + result.stderr
    return result.stdout


@contextlib.contextmanager
def feed(arguments: list[str], at: pathlib.Path) -> Iterator[None]:
    """A server for a test, which is healthy while it runs and not after it."""
    command = [binary(), *arguments, "--exit-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert str(at) in server.stdout.readline()
        assert dsload("health", at).strip()
        yield
    assert subprocess.run([binary(), "health", str(at)], capture_output=True).returncode == 6


SRUN = """#!/usr/bin/env bash
# srun for nodes that are all here: it passes SIGTERM on to its tasks.
shift  # --kill-on-bad-exit=1
trap 'kill -TERM "${tasks[@]}"' TERM
for ((node = 0; node < SLURM_JOB_NUM_NODES; node++)); do SLURM_NODEID=$node "$@" & tasks+=($!); done
code=0
for task in "${tasks[@]}"; do wait "$task" || code=$?; wait "$task" || code=$?; done
exit "$code"
"""
SCONTROL = """#!/bin/sh
if [ "$1" = show ]; then echo 127.0.0.1; else echo "$@" >> "$0.log"; fi
"""


@pytest.mark.trainers
def test_slurm_training_is_requeued_and_resumes(tmp_path: pathlib.Path, model: pathlib.Path) -> None:
    corpus, data, out, programs = tmp_path / "corpus.txt", tmp_path / "data", tmp_path / "run", tmp_path / "bin"
    dsload("build", write_lines(corpus, 200), "--tokenizer", model, "--max-length", 32, "--out", data)
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = on_path(MODEL=model, DATA=data, OUT=out, DSLOAD=binary(), SLURM_JOB_ID=31, SLURM_JOB_NUM_NODES=2, PORT=port)
    env.update(SLURM_JOB_NODELIST="here", PROCESSES="1", PATH=f"{programs}:{env['PATH']}")
    command = ["bash", str(DEPLOY / "slurm" / "train.sbatch"), "--batch-size=16", "--log-every=1"]

    def job(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*command, *more], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with job("--epochs=1000") as first:
        assert first.stdout is not None
        said = []
        for line in first.stdout:
            said.append(line)
            if line.startswith("step 3/"):
                first.terminate()
    assert first.returncode == 0 and "on 2 x cpu" in "".join(said), said
    assert (programs / "scontrol.log").read_text() == "requeue 31\n"
    step = int(re.findall(r"^interrupted after step (\d+)", "".join(said), re.M)[0])
    env["SLURM_JOB_NUM_NODES"] = "1"
    with job("--epochs=1000", f"--max-steps={step + 2}") as again:
        assert again.stdout is not None
        rest = again.stdout.read()
    assert again.returncode == 0 and f"resumed at step {step} " in rest and "on 1 x cpu" in rest, rest
    assert (out / "model" / "config.json").exists()


@pytest.mark.trainers
def test_kubernetes_jobs_run(tmp_path: pathlib.Path, model: pathlib.Path) -> None:
    """The arguments of the jobs make a dataset, with 3 partitions for 64, and folders of this machine for those of the
    volumes."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    containers = {}
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        for job in yaml.safe_load_all(path.read_text()):
            if job["kind"] == "Job":
                pod = job["spec"]["template"]["spec"]
                for container in [*pod.get("initContainers", []), *pod["containers"]]:
                    words = container.get("command", []) + container.get("args", [])
                    containers[words[0]] = (job["spec"], [_here(a, tmp_path) for a in words])
    assert list(containers) == ["plan", "build", "merge", "serve", "torchrun"]
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
    shutil.rmtree(tmp_path / "set")
    dsload("build", tmp_path / "corpus", "--tokenizer", model, "--max-length", 64, "--out", tmp_path / "set")
    shutil.copytree(model, tmp_path / "model")
    job, command = containers["torchrun"]
    assert f"--nnodes={job['completions']}" in command and job["completions"] == job["parallelism"]
    gpus = job["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert f"--nproc-per-node={gpus}" in command
    fewer = {"--nnodes=2": "--nnodes=1", f"--nproc-per-node={gpus}": "--nproc-per-node=1"}  # Slurm's test trains on two
    with feed(containers["serve"][1], tmp_path / "feed.sock"):
        command = [fewer.get(a, re.sub("=dsload-train-0.*:.*", "=127.0.0.1:0", a)) for a in command]
        assert "on 1 x cpu" in trained([*command, "--max-steps", "2"])
    assert (tmp_path / "run" / "model" / "config.json").exists()


def _here(argument: str, folder: pathlib.Path) -> str:
    """An argument of a container, with a folder of this machine for its volumes."""
    return re.sub(r"^/(data|run/dsload)/", f"{folder}/", argument)


@pytest.mark.trainers
def test_compose_services_run(tmp_path: pathlib.Path, model: pathlib.Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    here = [("/corpus", tmp_path / "corpus"), ("/data", tmp_path), ("/run/dsload", tmp_path), ("/out", tmp_path)]
    here.append(("/model", model))

    def command(name: str) -> list[str]:
        args = services[name]["command"]
        for there, folder in here:
            args = [str(folder) + a[len(there) :] if a == there or a.startswith(there + "/") else a for a in args]
        return [str(a) for a in args]

    (tmp_path / "corpus").mkdir()
    write_lines(tmp_path / "corpus" / "a.txt", 2000)
    dsload(*command("build"))
    with feed(command("feed"), tmp_path / "feed.sock"):
        said = trained([sys.executable, *command("trainer")[1:], "--max-steps", "2"])
    assert "evaluation: loss " in said and (tmp_path / "run" / "model" / "config.json").exists()
    example = (DEPLOY / "env.example").read_text()
    for name in services["trainer"]["environment"]:
        assert f"#{name}=\n" in example, name


LINTERS: list[tuple[list[str], list[str]]] = [
    (["shellcheck"], ["slurm/build.sbatch", "slurm/merge.sbatch", "slurm/submit.sh", "slurm/train.sbatch"]),
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
    result = subprocess.run(
        command, env={**os.environ, "CORPUS": "/corpus", "MODEL": "/model"}, capture_output=True, text=True
    )
    said = result.stdout + result.stderr
    if "failed downloading schema" in said:
        pytest.skip("kubeconform could not load its schemas")
    assert result.returncode == 0, said
