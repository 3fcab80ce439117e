"""analyze: read a memory record and report where memory goes, why, and what to change, with numbers.

`dsload doctor RECORD` looks for the causes; this module runs it and returns what it found as values.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import Optional, Union

from .._binary import required_binary
from ..errors import DsloadError
from . import _device

_CORRUPT = 3  # doctor's exit code for a file that is not a record


@dataclass(frozen=True)
class Verdict:
    """kind: "batch_too_large", "leak", "host_leak", "unstable_gradients", "fragmentation", "other_processes", "logits",
    "long_sequences", "optimizer_state" or "loader". phase: where it appears. message: what was found, with numbers.
    actions: what to change, the most effective first. evidence: the numbers by name."""

    kind: str
    phase: str
    message: str
    actions: tuple[str, ...]
    evidence: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Analysis:
    """where: the phase that ran out of memory, or the one with the highest peak. out_of_memory: whether it ran out.
    steps: snapshots' steps. peak: the highest allocation seen (None if the device does not count). verdicts: those
    whose remedy is surest first. runs: in the record; the last one was analysed."""

    where: str
    out_of_memory: bool
    steps: int
    peak: Optional[int]
    verdicts: tuple[Verdict, ...]
    runs: int = 1

    def __str__(self) -> str:
        how = "ran out of memory in" if self.out_of_memory else "highest memory in"
        peak = f", peak {_device.format_bytes(self.peak)}" if self.peak is not None else ""
        runs = f"the last of {self.runs} runs in the record: " if self.runs > 1 else ""
        lines = [f"{runs}{self.steps} steps{peak}; {how} phase {self.where}"]
        for v in self.verdicts:
            lines += [f"{v.kind} ({v.phase}): {v.message}", *(f"    - {a}" for a in v.actions)]
        return "\n".join(lines if self.verdicts else [*lines, "nothing out of the ordinary"])


def analyze(record: Union[str, os.PathLike[str]]) -> Analysis:
    """Analyses the last run of the record at a path.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a record of MemoryRecorder. A last line of a run cut off by a kill is ignored.
        DsloadError: if there is no dsload program, which does the analysis.
    """
    path = os.fspath(record)
    with open(path, "rb"):
        pass  # raises what Python's own reading would
    command = [required_binary("analyzing a memory record"), "doctor", "--json", "--", path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().removeprefix("dsload: ")
        if done.returncode == _CORRUPT:
            raise ValueError(said)
        raise DsloadError(said or f"dsload doctor {path} ended with exit code {done.returncode}")
    found = json.loads(done.stdout)
    if "verdicts" not in found:
        raise ValueError(f"{path} is a configuration and not a memory record; give it to check_configuration as a dict")
    verdicts = (
        Verdict(
            v["kind"], v["phase"], v["message"], tuple(v["actions"]), {k: float(x) for k, x in v["evidence"].items()}
        )
        for v in found["verdicts"]
    )
    peak = found["peak"]
    return Analysis(
        where=found["where"],
        out_of_memory=found["out_of_memory"],
        steps=found["steps"],
        peak=None if peak is None else int(peak),
        verdicts=tuple(verdicts),
        runs=found.get("runs", 1),
    )
