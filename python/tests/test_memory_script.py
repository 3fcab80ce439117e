"""python -m dsload.memory.record: scripts that know nothing of it."""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import subprocess
import sys
from typing import Any

import pytest
import runs

from dsload.memory import analyze

pytestmark = [pytest.mark.torch]
HERE = pathlib.Path(__file__).resolve().parent

PLAIN = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50))
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(torch.randint(0, 50, (int(sys.argv[2]), 12)), batch_size=4)
model(torch.zeros((1, 3), dtype=torch.long))
for ids in data:
    loss = nn.functional.cross_entropy(model(ids).view(-1, 50), ids.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.zeros((2, 5), dtype=torch.long))
assert __name__ == "__main__" and sys.argv[0].endswith("train.py"), sys.argv
print("done", *sys.argv[1:])
raise SystemExit(7)
"""

NO_MEMORY = """
import torch
model = torch.nn.Linear(4, 4)
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
for step in range(5):
    loss = model(torch.ones(6, 4)).sum()
    if step == 3:
        loss = Bad.apply(loss)
    loss.backward()
"""


def record(tmp_path: Any, script: str, *args: str, options: tuple[str, ...] = (), **env: str) -> Any:
    """python -m dsload.memory.record, in a process that has imported torch already, which takes longer than the
    scripts."""
    (tmp_path / "train.py").write_text(script)
    code = runs.apart(_record, tmp_path, [*options, "train.py", *args], env)
    return subprocess.CompletedProcess(args, code, (tmp_path / "stdout").read_text(), (tmp_path / "stderr").read_text())


def _record(folder: pathlib.Path, arguments: list[str], env: dict[str, str]) -> None:
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), number)
    os.environ.update(env)
    sys.argv[1:] = arguments
    runpy.run_module("dsload.memory.record", run_name="__main__", alter_sys=True)


def lines(path: Any) -> list[dict[str, Any]]:
    return [json.loads(x) for x in path.read_text().splitlines()]


@pytest.mark.server
def test_a_script_that_was_not_written_for_it(tmp_path: Any) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    command = [sys.executable, "-m", "dsload.memory.record", "train.py", "--rows", "20", "--token=verysecret"]
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 7 and done.stdout == "done --rows 20 --token=verysecret\n", done.stderr
    assert "9 steps in memory.jsonl" in done.stderr and "dsload doctor memory.jsonl" in done.stderr
    got = lines(tmp_path / "memory.jsonl")
    assert (
        got[0]["type"] == "start"
        and got[0]["parameters"] == 50 * 8 + 8 * 50 + 50
        and got[-1] == {**got[-1], "type": "end", "steps": 9}
    )
    assert "verysecret" not in json.dumps(got)
    phases = [(x["step"], x["phase"]) for x in got if x["type"] == "snapshot"]
    train = [(s, p) for s in range(2, 7) for p in ("load", "forward", "backward", "optimizer")]
    # The first call warms up; the loader's end is a load without a batch; the three calls of the evaluation are a step
    # each.
    assert phases == [(1, "forward"), *train, (7, "load"), (7, "forward"), (8, "forward"), (9, "forward")]
    assert {(x["batch"]["rows"], x["batch"]["length"]) for x in got if x.get("phase") == "backward"} == {(4, 12)}
    assert analyze(tmp_path / "memory.jsonl").steps == 9


def test_the_record_lies_where_it_was_started(tmp_path: Any) -> None:
    (tmp_path / "other").mkdir()
    script = NO_MEMORY.replace("import torch\n", "import os, torch\nos.chdir('other')\n", 1)
    done = record(tmp_path, script, options=("--out", "m.jsonl"))
    assert "4 steps in m.jsonl; the report of the error is m.jsonl.oom-1.txt" in done.stderr
    assert {p.name for p in tmp_path.glob("**/m.jsonl*")} == {"m.jsonl", "m.jsonl.oom-1.txt"}
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.server
def test_running_out_of_memory_is_reported_where_it_happened(tmp_path: Any) -> None:
    done = record(tmp_path, NO_MEMORY, options=("--out", "m.jsonl"))
    assert done.returncode == 1 and "OutOfMemoryError" in done.stderr and "m.jsonl.oom-1.txt" in done.stderr
    failures = [x for x in lines(tmp_path / "m.jsonl") if x["type"] == "oom"]
    assert [(x["step"], x["phase"], x["batch"]) for x in failures] == [(4, "backward", {"rows": 6})]
    assert analyze(tmp_path / "m.jsonl").where == "backward"


def test_each_process_of_a_run_has_its_record(tmp_path: Any) -> None:
    assert record(tmp_path, PLAIN, "--rows", "4", RANK="1", WORLD_SIZE="2").returncode == 7
    assert not (tmp_path / "memory.jsonl").exists() and len(lines(tmp_path / "memory.rank1.jsonl")) > 4


@pytest.mark.server
def test_a_second_run_goes_on_after_one_that_was_cut_off(tmp_path: Any) -> None:
    script = "import torch\nm = torch.nn.Linear(2, 2)\nm(torch.ones(1, 2)).sum().backward()\n"
    path = tmp_path / "m.jsonl"
    for _ in range(2):
        if path.exists():
            path.write_text(path.read_text()[:-9])  # as a kill leaves it
        assert record(tmp_path, script, options=("--out", str(path), "--")).returncode == 0
    assert analyze(path).runs == 2


def test_modules_and_scripts_without_a_model(tmp_path: Any) -> None:
    (tmp_path / "job.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    done = record(tmp_path, "", options=("-m", "job", "-x", "1"))
    assert done.returncode == 0 and done.stdout == "__main__ ['-x', '1', 'train.py']\n", done.stderr
    assert "nothing was recorded" in done.stderr and not (tmp_path / "memory.jsonl").exists()


@pytest.mark.parametrize(
    ("args", "why"),
    [([], "name the script"), (["none.py"], "no script 'none.py'"), (["--every", "0", "x.py"], "--every")],
)
def test_wrong_usage(args: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dsload.memory.record import main

    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2 and why in capsys.readouterr().err


@pytest.mark.server
def test_dsloads_own_loader_begins_steps(dataset: str, tmp_path: Any) -> None:
    script = f"""
import dsload, torch
model = torch.nn.Embedding(60000, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.zeros((1, 1), dtype=torch.long))
with dsload.Loader({dataset!r}, batch_size=300) as loader:
    for batch in loader:
        model(batch["input_ids"]).sum().backward()
        optimizer.step()
"""
    done = record(tmp_path, script)
    assert done.returncode == 0, done.stderr
    steps = {}
    for line in lines(tmp_path / "memory.jsonl"):
        if line["type"] == "snapshot":
            steps.setdefault(line["step"], []).append(line["phase"])
    assert list(steps.values())[1:4] == [["load", "forward", "backward", "optimizer"]] * 3


@pytest.mark.trainers
def test_trainer_of_transformers(tmp_path: Any) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import models, torch, transformers
model = models.gpt2()
rows = [{{"input_ids": torch.arange(1, 9), "labels": torch.arange(1, 9)}} for _ in range(12)]
arguments = transformers.TrainingArguments("out", per_device_train_batch_size=2, max_steps=4, report_to="none",
                                           use_cpu=True, save_strategy="no", gradient_checkpointing=True)
transformers.Trainer(model, arguments, train_dataset=rows).train()
"""
    done = record(tmp_path, script)
    assert done.returncode == 0, done.stderr[-2000:]
    got = [(x["step"], x["phase"]) for x in lines(tmp_path / "memory.jsonl") if x["type"] == "snapshot"]
    assert sum(p == "optimizer" for _, p in got) == 4 and sum(p == "backward" for _, p in got) == 4, got
