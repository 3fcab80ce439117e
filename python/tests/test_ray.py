"""dsload.ray on real local Ray clusters of two nodes: processes, workers and nodes are killed, and the dataset is that
of one machine."""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, Callable, Optional, Union

import pytest
import runs

pytestmark = [pytest.mark.server, pytest.mark.ray]

if sys.platform != "linux":
    pytest.skip("Ray's clusters on one machine need Linux", allow_module_level=True)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(
    p for p in (str(pathlib.Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH")) if p
)
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install ray)")

OPTIONS = {"max_length": 64, "max_val_examples": 50, "shard_bytes": "64KiB", "checkpoint_every": 200}
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("corpus") / "c.txt"
    with open(path, "w") as f:
        f.writelines(
            f"{i} " + f"words {i * 7919 % 1009} of a line " * (i % 17) + "\n"
            for i in range(int(os.environ.get("DSLOAD_RAY_LINES", "12000")))
        )
    return path


@pytest.fixture(scope="module")
def whole(corpus: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    import dsload

    out = tmp_path_factory.mktemp("whole")
    dsload.build(corpus, out=out, **OPTIONS)
    return rows(out)


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    pathlib.Path(os.environ.get("RAY_TMPDIR") or __import__("tempfile").gettempdir(), "ray").mkdir(exist_ok=True)
    c = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **NODE})
    try:
        c.add_node(**NODE)
        ray.init(address=c.address, log_to_driver=False)
        yield c
    finally:
        ray.shutdown()
        c.shutdown()


def rows(folder: pathlib.Path) -> list[Any]:
    """Every row in the order of the manifest."""
    import pyarrow as pa

    manifest = json.loads((folder / "manifest.json").read_text())
    out: list[Any] = []
    for split in manifest["splits"]:
        for shard in split["shards"]:
            table = pa.ipc.open_file(pa.memory_map(str(folder / shard["name"]))).read_all()
            assert table.num_rows == shard["rows"]
            out += [(split["name"], *r.values()) for r in table.to_pylist()]
    return out


def children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        found.setdefault(parent, []).append(int(pid))
    return found


def builders(command: bytes = b"build", named: bytes = b"--partition") -> list[tuple[int, int]]:
    """(process, parent) of every dsload that builds a partition, or runs another command with that argument."""
    out = []
    for parent, pids in children().items():
        for pid in pids:
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"\0" + command + b"\0" in line and b"\0" + named + b"\0" in line:
                out.append((pid, parent))
    return out


def during(act: Callable[[], Optional[bool]]) -> threading.Thread:
    """Calls act until it reports True, while the build runs."""

    def run() -> None:
        deadline = time.monotonic() + runs.HANGS
        while time.monotonic() < deadline and not act():
            time.sleep(0.005)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def kill(which: int) -> Callable[[], bool]:
    def act() -> bool:
        for found in builders():
            try:
                os.kill(found[which], signal.SIGKILL)
                return True
            except ProcessLookupError:
                pass
        return False

    return act


def build(corpus: pathlib.Path, out: Union[pathlib.Path, str], **more: Any) -> dict[str, Any]:
    import dsload.ray

    result: dict[str, Any] = dsload.ray.build([corpus], out, partitions=5, **{**OPTIONS, **more})
    return result


def test_equal_and_read_by_ray_data(
    cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    seen: list[dict[str, Any]] = []
    result = build(corpus, tmp_path / "out", on_progress=seen.append)
    assert rows(tmp_path / "out") == whole
    assert result["partitions"] == 5
    assert seen
    assert seen[-1]["partitions_done"] == 5
    assert build(corpus, tmp_path / "out")["already_merged"]
    # The shards are Arrow files: Ray reads them without dsload.
    pytest.importorskip("pandas", reason="ray.data needs pandas")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    names = [str(tmp_path / "out" / s["name"]) for s in manifest["splits"][0]["shards"]]

    def table(batch: dict[str, Any]) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(str(batch["item"][0]))).read_all()

    data = ray.data.from_items(names, override_num_blocks=len(names)).map_batches(table, batch_size=1)
    assert data.count() == manifest["splits"][0]["examples"]
    assert sum(len(r["input_ids"]) for r in data.iter_rows()) == manifest["splits"][0]["tokens"]


def test_killed_processes_and_workers(
    cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    for which, what in ((0, "process"), (1, "worker")):
        killer = during(kill(which))
        result = build(corpus, tmp_path / what)
        killer.join()
        assert result["retried"] >= 1, what
        assert rows(tmp_path / what) == whole, what


def test_a_node_goes_and_another_comes(
    cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    # The nodes of a cluster_utils.Cluster come and go in the main thread alone.
    thread = threading.Thread(target=build, args=(corpus, tmp_path / "out"))
    thread.start()
    while thread.is_alive() and not list((tmp_path / "out").glob("part-p*.json")):
        time.sleep(0.005)
    assert thread.is_alive()
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    cluster.add_node(**NODE)
    thread.join()
    assert rows(tmp_path / "out") == whole


def test_a_straggler_is_started_twice(
    cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    stopped: list[int] = []

    def stop() -> bool:
        # When one partition is done, another one hangs.
        found = builders()
        if not found or not list((tmp_path / "out").glob("part-p*.json")):
            return False
        os.kill(found[0][0], signal.SIGSTOP)
        stopped.append(found[0][0])
        return True

    stopper = during(stop)
    try:
        result = build(corpus, tmp_path / "out", stragglers=2.0, straggler_seconds=1.0)
    finally:
        stopper.join()
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert stopped
    assert result["twins"] >= 1
    assert rows(tmp_path / "out") == whole


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("command", "named"), [(b"plan", b"--partitions"), (b"build", b"--partition")])
def test_ctrl_c_ends_the_tasks(
    command: bytes, named: bytes, cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    out = tmp_path / "out"

    def interrupt() -> bool:
        if found := builders(command, named):
            os.kill(found[0][0], signal.SIGSTOP)  # it cannot end by itself
            _thread.interrupt_main()
        return bool(found)

    interrupter = during(interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(corpus, out)
    interrupter.join()
    deadline = time.monotonic() + runs.HANGS
    while builders(command, named):
        assert time.monotonic() < deadline, "a task outlives the interrupt"
        time.sleep(0.02)
    assert not list(out.glob(".plan*"))
    build(corpus, out)
    assert rows(out) == whole


@pytest.fixture
def bucket(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A bucket of a real server, whose objects are files of a folder. It comes before the cluster, whose nodes inherit
    the environment."""
    server = shutil.which(
        "versitygw", path=os.pathsep.join((os.environ.get("PATH", ""), str(pathlib.Path.home() / "go" / "bin")))
    )
    if server is None:
        pytest.skip("versitygw is not installed: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    folder = tmp_path / "s3" / "bucket"
    folder.mkdir(parents=True)
    options = ["--access", "key", "--secret", "a-secret", "--quiet", "posix", str(folder.parent)]
    with runs.server(lambda port: [server, "--port", f"127.0.0.1:{port}", *options]) as port:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield folder


def test_into_a_bucket(
    bucket: pathlib.Path, cluster: Any, corpus: pathlib.Path, whole: list[Any], tmp_path: pathlib.Path
) -> None:
    killer = during(kill(0))
    result = build(corpus, "s3://bucket/out")
    killer.join()
    assert result["retried"] >= 1
    assert rows(bucket / "out") == whole
    assert build(corpus, "s3://bucket/out")["already_merged"]
    assert not [p.name for p in (bucket / "out").iterdir() if p.name.startswith(("plan", "part"))]


def test_errors_are_the_commands(cluster: Any, corpus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    import dsload

    with pytest.raises(dsload.BuildError, match="max_length='-1'") as caught:
        build(corpus, tmp_path / "out", max_length=-1)
    assert caught.value.exit_code == 2
    with pytest.raises(TypeError, match="plan"):
        build(corpus, tmp_path / "out", plan="x")


def test_a_task_that_fits_no_node_is_reported(cluster: Any, corpus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    import dsload.ray

    with pytest.warns(UserWarning, match="no node of the Ray cluster has 64 CPUs"):
        dsload.ray._Build(str(corpus), str(tmp_path / "out"), 2, 64, 1 << 20, {})._check_room()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dsload.ray._Build(str(corpus), str(tmp_path / "out"), 2, 1, 1 << 20, {})._check_room()


def test_what_a_process_says_last() -> None:
    """The command's message is the error, also where it has no exit code of its own."""
    import dsload.ray

    with pytest.raises(dsload.ray._Died, match="exit code -9"):
        dsload.ray._run(["-c", "kill -9 $$"], "/bin/sh", 0, None)
    with pytest.raises(dsload.BuildError, match="out of luck") as caught:
        dsload.ray._run(["-c", "echo out of luck >&2; exit 3"], "/bin/sh", 0, None)
    assert caught.value.exit_code == 3
