"""`dsload doctor`: records of several runs, files that are not records, settings for a GPU."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from typing import Any

import pytest
from test_memory_record import GIB, calm, oom, snapshot, write

from dsload._binary import find_binary
from dsload.memory import analyze, estimate

pytestmark = pytest.mark.server


@pytest.mark.parametrize("cut_off", [False, True])
def test_the_last_of_several_runs(cut_off: bool, tmp_path: Any) -> None:
    """The recorder appends: a run that ran out of memory before is not this one's, nor are its steps."""
    first, last = tmp_path / "first.jsonl", tmp_path / "last.jsonl"
    write(first, [snapshot(1, "forward", peak=9 * GIB), oom("forward", allocated=GIB, requested=GIB, reserved=GIB)])
    write(last, calm())
    path = tmp_path / "r.jsonl"
    path.write_text(first.read_text() + ('{"type": "snap\n' if cut_off else "") + last.read_text())
    alone, both = analyze(last), analyze(path)
    assert both.runs == 2 and not both.out_of_memory
    assert dataclasses.replace(both, runs=1) == alone
    assert str(both) == "the last of 2 runs in the record: " + str(alone)
    said = subprocess.run([str(find_binary()), "doctor", str(path)], check=True, capture_output=True, text=True).stdout
    assert said.startswith("the last of 2 runs in the record: ")


def test_other_files_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "r.jsonl"
    for text in ("", "not json\nat all\n", '{"a": 1}\n', "[1]\n", json.dumps(snapshot(1, "load")) + "\n"):
        path.write_text(text)
        result = subprocess.run([str(find_binary()), "doctor", str(path)], capture_output=True, text=True)
        assert result.returncode == 3 and result.stderr.count("\n") == 1, result


def test_settings_for_a_gpu_are_those_of_the_estimate(tmp_path: Any) -> None:
    """The batch that `doctor` proposes is the largest power of two that the estimate of GPT-2 fits into 90% of what is
    free."""
    config = {
        "model_type": "gpt2",
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "vocab_size": 50257,
        "n_positions": 1024,
    }
    smi = tmp_path / "nvidia-smi"
    for free_mib in (3000, 11000, 79000):
        smi.write_text(
            f'#!/bin/sh\ncase "$*" in *query-gpu*) echo "0, GPU-a, Card, 81920, {81920 - free_mib}" ;; esac\n'
        )
        smi.chmod(0o755)
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(
            [str(find_binary()), "doctor", "--json"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
        )
        settings = {s["name"]: int(s["value"]) for s in json.loads(done.stdout)["settings"] if s["for"] == "GPU 0"}
        fits = [
            b
            for b in (1, 2, 4, 8, 16, 32)
            if estimate(config, b, 512, dtype="mixed", accumulation=2).total <= 0.9 * (free_mib << 20)
        ]
        assert settings["batch_size"] == max(fits, default=1)
        assert settings.get("accumulation", 32) == 32 // settings["batch_size"]
