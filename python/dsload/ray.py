"""build on a Ray cluster: the partitions of a plan as tasks, each a dsload process that writes to shared storage.

    import dsload.ray, ray
    ray.init(address="auto")
    dsload.ray.build("/shared/corpus/*.jsonl", "/shared/data", partitions=64, max_length=1024)

No token passes through Ray: a task runs the program, which itself reads the sources and writes shards. A task that dies
with its worker or node is run again and continues from the partition's last checkpoint; one that takes much longer than
the others is started a second time elsewhere, and the first to finish counts. The dataset is the one that
`dsload.build` makes on one machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ._binary import find_binary
from ._building.bar import Bar, is_shown
from ._building.flags import flags
from ._words import in_python
from .errors import BuildError, DsloadError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import PlanOptions

PathLike = Union[str, "os.PathLike[str]"]

_MEMORY = 256 << 20
_POLL_SECONDS = 0.3
_BUSY_SECONDS = 15.0  # with the five retries, as long as NFS keeps the locks of a machine that is gone
_PERMANENT = (1, 2, 3, 4)  # exit codes for which another try does not help
_PLACED = ("progress", "json", "plan", "partition", "out", "workers", "memory", "overwrite", "http", "notify")
_PATHS = ("template", "chat_template")


def build(
    source: Union[PathLike, Sequence[PathLike]],
    out: PathLike,
    *,
    partitions: int,
    workers: int = 1,
    memory: Union[int, str, None] = None,
    retries: int = 5,
    stragglers: float = 2.0,
    straggler_seconds: float = 60.0,
    progress: Optional[bool] = None,
    on_progress: Optional[Callable[[dict[str, Any]], None]] = None,
    **options: Unpack[PlanOptions],
) -> dict[str, Any]:
    """Builds the dataset folder `out` from sources, in partitions, on the nodes of a Ray cluster. The same call again
    resumes.

    Args:
        source: a path, glob, folder or URI, or a list of them, that every node sees under the same name.
        out: the dataset folder, on storage that every node sees under the same name, or an address of s3://, gs:// or az://.
            What opens the bucket is in the environment of Ray's nodes, such as AWS_ACCESS_KEY_ID.
        partitions: how many tasks the build is cut into; several per CPU keep all of them busy to the end.
        workers: tokenizing workers of a task, and the CPUs that Ray reserves for it.
        memory: hard cap on each dsload process, and the memory that Ray reserves for it (256 MiB).
        retries: how often a partition is started again after its worker, node or process died.
        stragglers: start a partition a second time when it has taken this many times the median of those that are done,
            and nothing waits for a CPU; 0 never does. In a bucket both build it, and the first that is done counts;
            in a folder the first is ended, and the second resumes from its checkpoint.
        straggler_seconds: but not before this many seconds.
        progress: show one bar for all tasks on stderr; None shows it on a terminal and in notebooks.
        on_progress: called with the sums of the tasks' reports.
        options: as for `dsload.build`.

    Returns:
        What `dsload merge --json` prints, with `seconds` of the whole call, `retried` and `twins`: how many tasks were
        started again after they died, and how many were started a second time as stragglers.

    Raises:
        BuildError: with the command's own message and exit code, or when a partition died `retries` times.
        DsloadError: if there is no dsload program on this machine or on a node.
    """
    for name in _PLACED:
        if name in options:
            raise TypeError(f"dsload.ray.build() has no option {name!r}")
    if not ray.is_initialized():
        ray.init()
    return _Build(source, os.fspath(out), partitions, workers, _bytes(memory), dict(options)).run(
        retries, stragglers, straggler_seconds, progress, on_progress
    )


def _bytes(size: Union[int, str, None]) -> int:
    if size is None:
        return _MEMORY
    if isinstance(size, int):
        return size
    units = {
        "": 1,
        "b": 1,
        "k": 1000,
        "kb": 1000,
        "kib": 1 << 10,
        "m": 10**6,
        "mb": 10**6,
        "mib": 1 << 20,
        "g": 10**9,
        "gb": 10**9,
        "gib": 1 << 30,
    }
    text = size.strip().lower()
    digits = text.rstrip("bkmgi")
    try:
        return int(float(digits) * units[text[len(digits) :]])
    except (KeyError, ValueError):
        raise ValueError(f"memory: invalid size {size!r}: want a number with an optional unit, as in 256MiB") from None


class _Died(Exception):
    """The dsload process ended without a reason: it was killed, or could not be reached. Another try continues from its
    checkpoint."""


class _Progress:
    """An actor that collects the tasks' progress."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[str, Any]] = {}

    def put(self, partition: int, line: dict[str, Any]) -> None:
        self._lines[partition] = line

    def all(self) -> dict[int, dict[str, Any]]:
        return self._lines


def _die_with_parent() -> None:
    """Runs in the child, so that killing a worker also kills the program."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _run(command: list[str], binary: Optional[str], partition: int, report: Any) -> dict[str, Any]:
    """Runs dsload on a node and returns the object that it prints."""
    named = binary if binary and os.access(binary, os.X_OK) else find_binary()
    if named is None:
        raise DsloadError(
            f"there is no dsload program on node {os.uname().nodename}: install the platform wheel there, or name it "
            "in DSLOAD_BINARY"
        )
    process = subprocess.Popen(
        [named, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )
    out: list[bytes] = []
    assert process.stdout is not None and process.stderr is not None
    reader = threading.Thread(target=lambda: out.append(process.stdout.read()), daemon=True)  # type: ignore[union-attr]
    reader.start()
    said = ""
    try:
        for raw in process.stderr:
            text = raw.decode(errors="replace").strip()
            if text.startswith("{"):
                if report is not None:
                    with contextlib.suppress(Exception):  # progress must not fail a task
                        report.put.remote(partition, json.loads(text))
            elif text:
                said = text
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    reader.join()
    if "is in use by another build" in said:  # by a process that is just being killed, or whose node is gone
        time.sleep(_BUSY_SECONDS)
        raise _Died(said)
    if code in _PERMANENT:
        raise BuildError(in_python(said) if said else f"dsload ended with exit code {code}", code)
    if code != 0:
        raise _Died(said or f"dsload ended with exit code {code}")
    result: dict[str, Any] = json.loads(b"".join(out))
    return result


class _Build:
    def __init__(
        self, source: Any, out: str, partitions: int, workers: int, memory: int, options: dict[str, Any]
    ) -> None:
        self.out, self.partitions, self.workers, self.memory = _absolute(out), partitions, workers, memory
        self.in_bucket = "://" in self.out
        sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        self.sources = [_absolute(os.fspath(s)) for s in sources]
        self.options = {
            k: _absolute(os.fspath(v)) if k in _PATHS and v and os.path.exists(v) else v for k, v in options.items()
        }
        if self.options.get("val"):
            val = self.options["val"]
            self.options["val"] = [
                _absolute(os.fspath(v)) for v in ([val] if isinstance(val, (str, os.PathLike)) else val)
            ]
        tokenizer = self.options.get("tokenizer")
        if tokenizer and os.path.exists(tokenizer):
            self.options["tokenizer"] = _absolute(os.fspath(tokenizer))
        self.binary = os.environ.get("DSLOAD_BINARY")
        remote = {"num_cpus": workers, "memory": memory, "max_retries": 0}
        self.task = ray.remote(**remote)(_run)
        self.retried = 0
        self.slow: set[int] = set()  # partitions that were started a second time as stragglers

    def run(
        self,
        retries: int,
        stragglers: float,
        straggler_seconds: float,
        progress: Optional[bool],
        on_progress: Optional[Callable[[dict[str, Any]], None]],
    ) -> dict[str, Any]:
        start = time.monotonic()
        self._check_room()
        bar = Bar() if (is_shown() if progress is None else progress) else None
        show = _Show(self, bar, on_progress)
        # In a bucket the plan has the name by which the merge removes it.
        plan = (
            f"{self.out.rstrip('/')}/plan.json"
            if self.in_bucket
            else os.path.join(self.out, f".plan-{uuid.uuid4().hex}.json")
        )
        try:
            chosen = [f for name, value in self.options.items() for f in flags(name, value)]
            limits = ["--workers", str(self.workers), "--memory", str(self.memory)]
            self._again(
                lambda: self._start(
                    [
                        "plan",
                        "--json",
                        "--progress",
                        "none",
                        "--partitions",
                        str(self.partitions),
                        "--out",
                        plan,
                        *limits,
                        *chosen,
                        "--",
                        *self.sources,
                    ],
                    -1,
                    None,
                ),
                retries,
            )
            self._partitions(plan, limits, retries, stragglers, straggler_seconds, show)
            merged: dict[str, Any] = self._again(lambda: self._start(["merge", "--json", self.out], -1, None), retries)
        finally:
            if bar is not None:
                bar.close()
            self._start_removal(plan)
        merged.update(seconds=time.monotonic() - start, retried=self.retried, twins=len(self.slow))
        return merged

    def _check_room(self) -> None:
        """Warns if no node can run a task: Ray waits for one without a word."""
        nodes = [node.get("Resources", {}) for node in ray.nodes() if node.get("Alive")]
        if not any(node.get("CPU", 0) >= self.workers and node.get("memory", 0) >= self.memory for node in nodes):
            warnings.warn(
                f"no node of the Ray cluster has {self.workers} CPUs and {self.memory} bytes of memory, so nothing "
                "starts until one joins; lower workers= or memory=, or end this build",
                stacklevel=4,
            )

    def _start(self, command: list[str], partition: int, report: Any) -> Any:
        if command[0] == "plan" and not self.in_bucket:
            os.makedirs(self.out, exist_ok=True)
        return self.task.remote(command, self.binary, partition, report)

    def _start_removal(self, plan: str) -> None:
        if not self.in_bucket:
            with contextlib.suppress(OSError):
                os.remove(plan)

    def _again(self, start: Callable[[], Any], retries: int) -> Any:
        """The result of a task, which is started again if it dies."""
        for left in range(retries, -1, -1):
            ref = start()
            try:
                return ray.get(ref)
            except Exception as error:
                if not _is_transient(error) or left == 0:
                    raise _reason(error) from None
                self.retried += 1
            except BaseException:  # Ctrl-C
                with contextlib.suppress(Exception):
                    ray.cancel(ref, force=True)
                raise
        raise AssertionError("unreachable")

    def _partitions(
        self, plan: str, limits: list[str], retries: int, stragglers: float, straggler_seconds: float, show: _Show
    ) -> None:
        """Runs all partitions to their end."""
        waiting = deque(range(self.partitions))
        left = dict.fromkeys(range(self.partitions), retries)
        running: dict[Any, int] = {}
        started: dict[Any, float] = {}
        took: list[float] = []
        done: set[int] = set()

        def start(i: int) -> None:
            command = [
                "build",
                "--plan",
                plan,
                "--partition",
                f"{i}/{self.partitions}",
                "--out",
                self.out,
                "--json",
                "--progress",
                "json",
                *limits,
            ]
            ref = self._start(command, i, show.actor)
            running[ref], started[ref] = i, time.monotonic()

        try:
            while len(done) < self.partitions:
                # Only a few more than there are CPUs are queued in Ray, so that the time since their start shows how
                # long they take.
                room = max(1, int(ray.cluster_resources().get("CPU", 1) // self.workers)) + 1
                while waiting and len(running) < room:
                    start(waiting.popleft())
                ready, _ = ray.wait(list(running), num_returns=1, timeout=_POLL_SECONDS)
                for ref in ready:
                    i, began = running.pop(ref), started.pop(ref)
                    try:
                        ray.get(ref)
                    except Exception as error:
                        if i in done or i in running.values():
                            continue  # its twin is done or running
                        if not _is_transient(error) or left[i] == 0:
                            raise _reason(error) from None
                        left[i] -= 1
                        self.retried += 1
                        waiting.appendleft(i)
                        continue
                    if i in done:
                        continue
                    done.add(i)
                    took.append(time.monotonic() - began)
                    self._cancel(running, started, i)
                if stragglers and not waiting and took:
                    self._restart(running, started, max(stragglers * statistics.median(took), straggler_seconds), start)
                show(done)
        finally:
            for i in set(running.values()):
                self._cancel(running, started, i)

    def _restart(
        self, running: dict[Any, int], started: dict[Any, float], seconds: float, start: Callable[[int], None]
    ) -> None:
        """Starts partitions a second time that have run for `seconds`."""
        now = time.monotonic()
        for ref, i in list(running.items()):
            if i not in self.slow and now - started[ref] > seconds:
                self.slow.add(i)
                if not self.in_bucket:  # a folder is locked
                    self._cancel(running, started, i)
                start(i)

    def _cancel(self, running: dict[Any, int], started: dict[Any, float], partition: int) -> None:
        for ref in [r for r, i in running.items() if i == partition]:
            del running[ref], started[ref]
            with contextlib.suppress(Exception):
                ray.cancel(ref, force=True)


class _Show:
    """Sums the tasks' reports into one line."""

    def __init__(
        self, build: _Build, bar: Optional[Bar], on_progress: Optional[Callable[[dict[str, Any]], None]]
    ) -> None:
        self._build, self._bar, self._on_progress = build, bar, on_progress
        self._start = time.monotonic()
        self.actor: Any = None
        if bar is not None or on_progress is not None:
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
            self.actor = ray.remote(num_cpus=0, max_restarts=-1)(_Progress).options(scheduling_strategy=here).remote()

    def __call__(self, done: set[int]) -> None:
        if self.actor is None:
            return
        try:
            lines = ray.get(self.actor.all.remote(), timeout=1)
        except Exception:  # the actor's node may be the one that died
            return
        lines = {i: line for i, line in lines.items() if isinstance(line.get("tokens"), int)}
        sums: dict[str, Any] = {
            name: sum(line.get(name) or 0 for line in lines.values())
            for name in ("documents", "examples", "tokens", "text_bytes", "rss_bytes")
        }
        sums["elapsed_s"] = round(time.monotonic() - self._start, 1)
        sums["mb_per_s"] = sum(line.get("mb_per_s") or 0 for i, line in lines.items() if i not in done)
        sums["fraction"] = (
            sum(1.0 if i in done else lines.get(i, {}).get("fraction") or 0 for i in range(self._build.partitions))
            / self._build.partitions
        )
        sums["partitions_done"], sums["partitions"] = len(done), self._build.partitions
        if self._bar is not None:
            self._bar(sums)
        if self._on_progress is not None:
            self._on_progress(sums)


def _is_transient(error: BaseException) -> bool:
    """Reports whether another try may succeed: the process, its worker or its node died."""
    cause = getattr(error, "cause", None)
    if isinstance(error, _Died) or isinstance(cause, _Died):
        return True
    if isinstance(error, (BuildError, DsloadError)) or isinstance(cause, (BuildError, DsloadError)):
        return False
    if isinstance(error, ray.exceptions.RayTaskError):
        return False
    return isinstance(error, ray.exceptions.RayError)


def _reason(error: BaseException) -> BaseException:
    """The task's own error, without Ray's wrapper."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, _Died):
        return BuildError(f"{cause}; it was started again as often as retries allows", 1)
    if isinstance(cause, (BuildError, DsloadError)):
        return cause
    if isinstance(error, _Died):
        return BuildError(str(error), 1)
    return error


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
