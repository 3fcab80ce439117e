"""Runs a program once and measures it: CPU-seconds of its process tree, peak memory, wall time, and what it says itself."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

# One thread each, whatever pools a library likes to start. Tools that are measured with several workers are told so by their own arguments.
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
QUIET = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "DISABLE_VERSION_CHECK": "1"}


class Failed(Exception):
    """What a program said that could not do the work."""


def tree(pid: int) -> list[int]:
    """pid and its descendants."""
    found, queue = [], [pid]
    while queue:
        pid = queue.pop()
        found.append(pid)
        try:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                queue += [int(p) for p in (task / "children").read_text().split()]
        except OSError:
            pass
    return found


def proportional(pid: int) -> int:
    """Resident bytes, of which shared pages are divided among the processes that share them."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def cpu_of(pid: int) -> float:
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def reason(said: str) -> str:
    """Why a program failed: the last line that names an error, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (named or lines or [""])[-1][:300]


def run(command: list[str], *, cpus: int = 1, folder: str | None = None, env: dict[str, str] | None = None, limit_s: float = 3600) -> dict:
    """Runs a command, pinned to as many cores, and gives cpu_s, wall_s, peak_bytes and the JSON object of its last line that begins with {."""
    cores = sorted(os.sched_getaffinity(0))[-cpus:]
    peak, done, late = 0, threading.Event(), threading.Event()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder, env={**os.environ, **ONE_THREAD, **QUIET, **(env or {})},
                                   preexec_fn=lambda: os.sched_setaffinity(0, cores), start_new_session=True)  # fmt: skip

        def sample() -> None:
            nonlocal peak
            wait = 0.002  # at first, so that a run of some hundredths of a second is seen too
            while not done.wait(wait):
                wait = min(1.5 * wait, 0.05)
                peak = max(peak, sum(map(proportional, tree(process.pid))))
                if cpu_of(process.pid) > limit_s:
                    late.set()
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # process.kill would take the exit code away from wait4
                    return

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - start
        finally:
            done.set()
            sampler.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said, errors = out.read(), err.read()
    if late.is_set():
        raise Failed(f"took more than {limit_s:.0f} CPU-seconds")
    if process.returncode:
        raise Failed(reason(errors + said) or f"exit code {process.returncode}")
    results = [line for line in said.splitlines() if line.startswith("{")]
    peak = peak or usage.ru_maxrss * 1024  # of a run between two samples; the kernel's also counts what the fork began with
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": wall, "peak_bytes": peak, **(json.loads(results[-1]) if results else {})}
