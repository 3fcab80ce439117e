"""Loader against the real server: every row once, exact resumption, ranks, restarts, errors; and without a server the
same batches."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import effort
import numpy as np
import pyarrow as pa
import pytest
import runs

import dsload
from dsload import Loader

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def examples(batches: Any) -> list[int]:
    return [int(e) for b in batches for e in b["example"]]


def assert_equal(got: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert list(g) == list(w)
        for name in w:
            assert g[name].dtype == w[name].dtype, name
            np.testing.assert_array_equal(g[name], w[name], err_msg=name)


def truth(folder: str, split: str = "train") -> list[tuple[int, ...]]:
    manifest = json.loads(Path(folder, "manifest.json").read_text())
    shards = next(s for s in manifest["splits"] if s["name"] == split)["shards"]
    tables = [pa.ipc.open_file(f"{folder}/{s['name']}").read_all() for s in shards]
    return [tuple(ids) for t in tables for ids in t["input_ids"].to_pylist()]


def test_an_epoch_is_every_example_once_as_the_shards_have_it(dataset: str) -> None:
    want = truth(dataset)
    with Loader(dataset, batch_size=16, seed=3, output="numpy") as loader:
        batches = list(loader)
        assert loader.num_examples == len(want) and len(loader) == len(batches)
    assert sorted(examples(batches)) == list(range(len(want))) and examples(batches) != list(range(len(want)))
    for b in batches:
        rows, length = b["input_ids"].shape
        assert length == b["length"].max() and rows <= 16
        for i in range(rows):
            n = b["length"][i]
            assert tuple(b["input_ids"][i, :n]) == want[b["example"][i]]
            assert b["attention_mask"][i].tolist() == [1] * n + [0] * (length - n)
            assert b["labels"][i].tolist() == [*want[b["example"][i]], *[-100] * (length - n)]


def test_epochs_differ_and_can_be_set(dataset: str) -> None:
    with Loader(dataset, batch_size=64, output="numpy") as loader:
        first, second = examples(loader), examples(loader)
        assert first != second and sorted(first) == sorted(second)
        loader.set_epoch(0)
        assert examples(loader) == first and loader.epoch == 1
        for _ in loader:
            break
        assert examples(loader) == second, "an iteration that was given up begins again"
        with pytest.raises(ValueError):
            loader.set_epoch(-1)
    with Loader(dataset, batch_size=64, output="numpy", epochs=2) as loader:
        assert examples(loader) == first + second and len(loader) == len(list(loader))
    with Loader(dataset, batch_size=64, output="numpy", epochs=0) as loader, pytest.raises(TypeError):
        len(loader)


def test_resume_is_exact_whatever_the_batch_size(dataset: str) -> None:
    rng = random.Random(effort.seed(1))
    with Loader(dataset, batch_size=7, seed=5, output="numpy") as loader:
        whole = examples(loader) + examples(loader)
        state = json.loads(json.dumps(loader.state_dict()))
    assert state["start"] == 2 * loader.num_examples
    for _ in range(6):
        seen: list[int] = []
        loader_state = None
        while len(seen) < len(whole):
            with Loader(dataset, batch_size=rng.randint(1, 90), seed=5, bucket=0, output="numpy") as part:
                if loader_state is not None:
                    part.load_state_dict(loader_state)
                stop = rng.randint(1, 40)
                for k, batch in enumerate(part):
                    seen += examples([batch])
                    loader_state = part.state_dict()
                    assert part.state_dict(after=batch) == loader_state
                    if k == stop:
                        break
                else:
                    loader_state = part.state_dict()
        assert seen[: len(whole)] == whole


def test_a_state_of_something_else_is_refused(dataset: str, other_dataset: str) -> None:
    with Loader(dataset, seed=5) as a, Loader(dataset, seed=6) as b, Loader(other_dataset, seed=5) as c:
        with pytest.raises(ValueError, match="seed=5"):
            b.load_state_dict(a.state_dict())
        named = r"\(\w{8}, \d+ rows\)"
        with pytest.raises(ValueError, match=f"another dataset {named}, not on this one {named}"):
            c.load_state_dict(a.state_dict())
        with pytest.raises(ValueError, match="version"):
            a.load_state_dict({})
        with pytest.raises(ValueError, match=r"no version among its keys \('loader', 'step'\)"):
            a.load_state_dict({"loader": a.state_dict(), "step": 1})
        state = a.state_dict()
        with pytest.raises(ValueError, match="it starts at -1"):
            a.load_state_dict({**state, "start": -1})
        with pytest.raises(ValueError, match="taken with split='val', this loader has 'train'"):
            a.load_state_dict({**state, "dataset": "of val", "order": {**state["order"], "split": "val"}})
        a.load_state_dict(a.state_dict())
        state = a.state_dict()
        a.load_state_dict({**state, "start": 10})
        a.set_epoch(0)
        assert a.state_dict()["start"] == 10, (
            "set_epoch of the same epoch keeps the place, as trainers that resume need it"
        )
        a.set_epoch(1)
        assert a.state_dict()["start"] == a.num_examples


@pytest.mark.parametrize("tail", ["drop", "keep", "pad", "once"])
def test_ranks_share_an_epoch(dataset: str, tail: str) -> None:
    with Loader(dataset, batch_size=8, seed=2, output="numpy", rank=0, world=3, tail=tail) as a:
        ranks = [list(a)]
        assert len(ranks[0]) == len(a)
        for rank in (1, 2):
            with Loader(
                socket=a._endpoint.path, batch_size=8, seed=2, output="numpy", rank=rank, world=3, tail=tail
            ) as b:
                ranks.append(list(b))
                assert len(ranks[-1]) == len(b)
        rows = a.num_examples
    seen = sorted(e for r in ranks for e in examples(r))
    if tail == "once":
        assert len({len(r) for r in ranks}) == 1
        seen = [e for e in seen if e >= 0]
    if tail in ("keep", "once"):
        assert seen == list(range(rows))
    else:
        assert len({len(r) for r in ranks}) == 1 and len(set(seen)) == (rows if tail == "pad" else rows // 24 * 24)


def test_rank_and_world_come_from_the_environment(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with Loader(dataset) as loader:
        assert (loader.rank, loader.world) == (2, 4)
        with Loader(socket=loader._endpoint.path, rank=0, world=1) as one:
            assert (one.rank, one.world) == (0, 1)
    with pytest.raises(ValueError, match="together"):
        Loader(dataset, rank=1)


def test_only_a_step_of_slurm_has_ranks(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch script runs once, with the number of tasks that its steps may have in its environment."""
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    with Loader(dataset) as loader:
        assert (loader.rank, loader.world) == (0, 1)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with Loader(dataset) as loader:
        assert (loader.rank, loader.world) == (0, 2)


PARAMETERS: list[dict[str, Any]] = [
    {}, {"shuffle": "none"}, {"shuffle": "block", "seed": 9}, {"bucket": 128, "group": 16}, {"bucket": 100000},
    {"max_tokens": 700},
    {"max_tokens": 700, "bucket": 64, "group": 8, "rank": 1, "world": 3}, {"max_tokens": 512, "rank": 1, "world": 2,
        "tail": "pad"},
    {"padding": "max_length"}, {"padding_side": "left", "pad_to_multiple_of": 8}, {"dtype": "int32"},
    {"labels": "none"},
    {"rank": 2, "world": 5, "tail": "pad"}, {"rank": 2, "world": 7, "split": "val"}, {"max_tokens": 512, "rank": 1,
        "world": 2, "tail": "once"},
    {"rank": 1, "world": 2}, {"batch_size": 1000}, {"split": "val"}, {"seed": -3}, {"seed": 2**64 - 1},
    {"max_tokens": 600, "rank": 0, "world": 2, "tail": "keep", "batch_size": 4}, {"epochs": 3, "batch_size": 100},
    {"balance": "tokens", "rank": 1, "world": 3, "tail": "keep"}, {"balance": "quadratic", "rank": 0, "world": 2,
        "bucket": 64},
]  # fmt: skip


@pytest.mark.parametrize(
    "parameters", PARAMETERS, ids=lambda p: ",".join(f"{k}={v}" for k, v in p.items()) or "defaults"
)
def test_without_a_server_the_same_batches(dataset: str, parameters: dict[str, Any]) -> None:
    with (
        Loader(dataset, output="numpy", **parameters) as a,
        Loader(dataset, output="numpy", in_process=True, **parameters) as b,
    ):
        assert_equal(list(b), list(a))
        assert_equal(list(b), list(a))
        middle = {**a.state_dict(), "start": a.num_examples // 3}
        a.load_state_dict(middle)
        b.load_state_dict(middle)
        assert_equal(list(b), list(a))


def test_random_parameters_give_the_same_batches(dataset: str) -> None:
    rng = random.Random(effort.seed(11))
    with Loader(dataset, output="numpy") as server:
        for _ in range(60):
            world = rng.choice([1, 2, 2, 3, 7])
            p = {
                "batch_size": rng.randint(1, 70), "seed": rng.getrandbits(64), "shuffle": rng.choice(["full", "block",
                    "none"]),
                "bucket": rng.choice([0, 0, 30, 100, 333]), "group": rng.choice([1, 7, 256]), "world": world,
                "rank": rng.randrange(world),
                "tail": rng.choice(["drop", "keep", "pad", "once", None]), "max_tokens": rng.choice([0, 0, 300, 2000]),
                "pad_to_multiple_of": rng.choice([1, 1, 8]), "padding_side": rng.choice(["left", "right"]),
                "dtype": rng.choice(["int64", "int32"]), "labels": rng.choice(["causal", "none"]),
                "balance": rng.choice(["none", "tokens", "quadratic"]),
            }  # fmt: skip
            start = rng.randrange(3 * server.num_examples)
            with (
                Loader(socket=server._endpoint.path, output="numpy", **p) as a,
                Loader(dataset, output="numpy", in_process=True, **p) as b,
            ):
                for x in (a, b):
                    x.load_state_dict({**x.state_dict(), "start": start})
                assert_equal(list(b), list(a))


def test_prompts_and_targets_without_a_server(recipes: str) -> None:
    for parameters in (
        {"labels": "seq2seq"},
        {"labels": "causal"},
        {"labels": "seq2seq", "padding_side": "left", "bucket": 50},
    ):
        with (
            Loader(recipes, output="numpy", **parameters) as a,
            Loader(recipes, output="numpy", in_process=True, **parameters) as b,
        ):
            assert_equal(list(b), list(a))


def test_mixes_without_a_server(dataset: str, other_dataset: str) -> None:
    both = {"a": dataset, "b": other_dataset}
    changing = ("a=3,b=1;at=100:a=1,b=1", "b=1;at=77:temperature:0.5;at=700:a=1", "temperature:0.3", "temperature:0")
    for mix in (None, {"a": 1.0, "b": 3.5}, *changing):
        with Loader(both, output="numpy", mix=mix) as a, Loader(both, output="numpy", mix=mix, in_process=True) as b:
            got = list(a)
            assert_equal(list(b), got)
            assert a.num_examples == sum(len(x["row"]) for x in got) and {0, 1} == {
                int(d) for x in got for d in x["dataset"]
            }


def test_a_state_is_not_continued_with_the_datasets_in_another_order(dataset: str, other_dataset: str) -> None:
    """Without a mix, and by temperature, the rows' order is that of the datasets as they were given: in another, rows
    would be lost and repeated."""
    one, other = {"a": dataset, "b": other_dataset}, {"b": other_dataset, "a": dataset}
    renamed = {"c": dataset, "d": other_dataset}
    for mix in (None, "temperature:0.5", "a=1,b=1"):
        with Loader(one, output="numpy", mix=mix) as loader:
            batches = iter(loader)
            next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
            want = list(batches)
        for datasets in (one, other, renamed):
            if mix == "a=1,b=1" and datasets is renamed:
                continue
            with Loader(datasets, output="numpy", mix=mix) as loader:
                if mix != "a=1,b=1" and datasets is other:
                    with pytest.raises(ValueError, match="order a, b, this loader has b, a"):
                        loader.load_state_dict(state)
                    continue
                loader.load_state_dict(state)
                assert_equal(list(loader), want)


def test_in_process_warns_once_where_no_server_can_run(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loader(dataset, output="numpy") as loader:
        want = list(loader)
    monkeypatch.setenv("DSLOAD_BINARY", "/nowhere/dsload")
    with pytest.warns(RuntimeWarning, match="inside this process") as caught, Loader(dataset, output="numpy") as loader:
        assert_equal(list(loader), want)
    assert len([w for w in caught if w.category is RuntimeWarning]) == 1
    with pytest.raises(dsload.ServerFailed):
        Loader(dataset, in_process=False)
    with pytest.raises(dsload.DsloadError, match="DSLOAD_BINARY names /nowhere/dsload, which is no program"):
        dsload.stats(dataset)


def test_what_would_have_no_effect_is_refused(dataset: str, recipes: str, capfd: pytest.CaptureFixture[str]) -> None:
    for options, says in (
        ({"in_process": "false"}, "in_process: 'false' is neither"),
        ({"in_process": 0}, "in_process: 0 is neither"),
        ({"pin_memory": "no"}, "pin_memory: 'no' is neither"),
        ({"pin_memory": True, "output": "numpy"}, "pin_memory: it is for tensors"),
        ({"token": "secret"}, "token: it is for a server's url"),
        ({"ca_file": "ca.pem"}, "ca_file: it is for a server's url"),
        ({"memory": "64MiB", "in_process": True}, "memory: it is the cap of a server"),
    ):
        with pytest.raises(ValueError, match=says):
            Loader(dataset, **options)
    with Loader(dataset, output="numpy") as loader:
        path = loader._endpoint.path
        for options, says in (({"memory": "64MiB"}, "its own --memory"), ({"in_process": True}, "name its folder")):
            with pytest.raises(ValueError, match=says):
                Loader(socket=path, **options)
        for name in ("batch_size", "seed", "shuffle"):
            with pytest.raises(AttributeError, match=f"{name}: a Loader's parameters cannot be changed"):
                setattr(loader, name, 4)
        assert len(list(loader)) == len(loader)
    with pytest.raises(ValueError, match="ca_file: it is for https"):
        Loader(url="http://127.0.0.1:9", ca_file="ca.pem")
    assert "note" not in capfd.readouterr().err
    with Loader(dataset, group=16, output="numpy") as loader, Loader(dataset, output="numpy") as plain:
        assert_equal(list(loader), list(plain))
    assert "note: group=16 has no effect" in capfd.readouterr().err
    with Loader(recipes, labels="causal", output="numpy") as loader:
        next(iter(loader))
    assert 'note: labels="causal" leaves the targets out' in capfd.readouterr().err


def test_mistakes_are_told(dataset: str, tmp_path: Any) -> None:
    for bad in (
        {"batch_size": 0},
        {"shuffle": "some"},
        {"padding": "x"},
        {"rank": 3, "world": 2},
        {"output": "list"},
        {"seed": 2**64},
        {"tail": "x"},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Loader(dataset, **bad)
    for arguments in ({}, {"dataset": dataset, "socket": "x"}):
        with pytest.raises(ValueError, match="exactly one"):
            Loader(**arguments)
    with pytest.raises(FileNotFoundError, match=r"manifest\.json"):
        Loader(tmp_path)
    with pytest.raises(dsload.FeedError, match="split"):
        Loader(dataset, split="test")
    for in_process in (False, True):
        with (
            pytest.raises(dsload.FeedError, match="seq2seq"),
            Loader(dataset, labels="seq2seq", in_process=in_process) as loader,
        ):
            list(loader)
        with (
            pytest.raises(dsload.FeedError, match="max_tokens"),
            Loader(dataset, max_tokens=20, in_process=in_process) as loader,
        ):
            list(loader)
    with pytest.raises(dsload.FeedError, match="cannot be reached"):
        Loader(socket=tmp_path / "none.sock", reconnect_seconds=0.1)
    for url in ("ftp://x", "http://", "http://example.org/path"):
        with pytest.raises(ValueError, match="url"):
            Loader(url=url)
    with pytest.raises(ValueError, match="https only"):
        Loader(url="http://example.org:80", token="secret")


def test_a_stream_that_never_fits_the_cap_is_refused_at_once(tmp_path: Path) -> None:
    dsload.build(iter([" word" * 20_000, *["word"] * 400]), out=tmp_path / "long", max_length=20_000)
    with (
        Loader(tmp_path / "long", pack="wrapped", max_length=1, memory="24MiB") as loader,
        pytest.raises(dsload.FeedError) as told,
    ):
        next(iter(loader))
    assert told.value.status == 413 and "memory cap" in str(told.value) and "max_length" in str(told.value)


def serve(dataset: str, socket: str, *more: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [os.environ.get("DSLOAD_BINARY", "dsload"), "serve", dataset, "--socket", socket, *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not os.path.exists(socket):
        assert process.poll() is None, "the server ended"
        time.sleep(0.01)
    return process


def test_a_killed_server_is_an_error_not_an_end(dataset: str, tmp_path: Any) -> None:
    socket = str(tmp_path / "s")
    server = serve(dataset, socket)
    with Loader(socket=socket, batch_size=1, epochs=0, output="numpy", reconnect_seconds=0.2) as loader:
        batches = iter(loader)
        seen = [next(batches)["row"][0]]
        server.kill()
        server.wait()
        with pytest.raises(dsload.StreamEnded, match=r"could not be continued.*; once it is back.*state_dict"):
            for batch in batches:
                seen.append(batch["row"][0])
        state = loader.state_dict()
    os.remove(socket)
    server = serve(dataset, socket)
    with Loader(socket=socket, batch_size=1, epochs=0, output="numpy") as loader:
        loader.load_state_dict(state)
        assert next(iter(loader))["row"][0] == seen[-1] + 1, "what the error advises"
    server.kill()
    server.wait()


@pytest.mark.parametrize("flags", [[], ["--pack", "bfd", "--max-length", "64"]], ids=["plain", "packed"])
def test_a_server_with_another_pack_serves_the_same_rows(dataset: str, tmp_path: Any, flags: list[str]) -> None:
    """A loader goes on with what the server packed when it was made."""
    socket, columns = str(tmp_path / "s"), ("input_ids", "row", "next")
    packing: dict[str, Any] = {"pack": "bfd", "max_length": 64} if flags else {}
    with Loader(dataset, output="numpy", columns=columns, **packing) as own:
        want = [list(own) for _ in range(3)]
    server = serve(dataset, socket, *flags)
    with Loader(socket=socket, output="numpy", columns=columns) as loader:
        for epoch, other in enumerate((["--pack", "wrapped"], [], [])):
            assert_equal(list(loader), want[epoch])
            server.kill()
            server.wait()
            os.unlink(socket)
            server = serve(dataset, socket, *other)
    server.kill()
    server.wait()


def test_a_restarted_server_is_found_at_the_right_row(dataset: str, tmp_path: Any) -> None:
    socket = str(tmp_path / "s")
    with Loader(dataset, batch_size=3, seed=8, output="numpy", epochs=3) as own:
        want = list(own)
    server = serve(dataset, socket)
    got, kills = [], 0
    with Loader(socket=socket, batch_size=3, seed=8, output="numpy", epochs=3) as loader:
        for batch in loader:
            got.append(batch)
            if len(got) % 250 == 0:
                server.kill()
                server.wait()
                os.unlink(socket)
                server = serve(dataset, socket)
                kills += 1
    server.kill()
    server.wait()
    assert kills >= 3
    assert_equal(got, want)


def test_an_own_server_that_was_killed_comes_back(dataset: str) -> None:
    with Loader(dataset, batch_size=1, seed=8, output="numpy") as loader:
        want = examples(loader)
        loader.set_epoch(0)
        got = []
        for k, batch in enumerate(loader):
            got += examples([batch])
            if k in (100, 500):
                os.kill(loader._server.process_id, signal.SIGKILL)
        assert got == want


def test_a_damaged_shard_is_an_error(dataset: str, tmp_path: Any) -> None:
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(dataset, folder)
    with Loader(folder, batch_size=4, output="numpy", reconnect_seconds=2) as loader:
        with open(folder / "train-00000.arrow", "r+b") as f:
            f.truncate(1000)
        with pytest.raises((dsload.DsloadError, OSError)):
            list(loader)
    with pytest.raises(dsload.DsloadError), Loader(folder, in_process=True) as loader:
        list(loader)


def test_servers_die_with_their_process(dataset: str) -> None:
    """Also where the process is killed, and where it has forked children that live on."""
    code = f"""
import os, dsload
loader = dsload.Loader({dataset!r}, output="numpy")
next(iter(loader))
child = os.fork()
if child == 0:
    os.close(1)
    os.read(0, 1)
    os._exit(0)
print(loader._server.process_id, flush=True)
os.read(0, 1)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        os.kill(server, 0)
        process.kill()
        process.wait()
        deadline = time.monotonic() + runs.HANGS
        while _alive(server):
            assert time.monotonic() < deadline, "the server outlives its killed parent"
            time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_memory_of_batches_is_theirs(dataset: str) -> None:
    with Loader(dataset, batch_size=8, output="numpy", shuffle="none") as loader:
        batches = list(loader)
        copies = [{k: v.copy() for k, v in b.items()} for b in batches]
        batches[0]["input_ids"][:] = -1
        assert_equal(batches[1:], copies[1:])
        assert batches[0]["labels"].tolist() == copies[0]["labels"].tolist()
    assert all(v.base is not None for v in batches[0].values()), "arrays are views of what was received"


def test_columns(dataset: str) -> None:
    with Loader(dataset, columns=("labels", "input_ids"), output="numpy") as loader:
        assert all(list(b) == ["labels", "input_ids"] for b in loader)
        assert loader.state_dict()["start"] == loader.num_examples


def test_https_with_a_token(dataset: str, tmp_path: Any) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, cert = tmp_path / "k.pem", tmp_path / "c.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-keyout", key, "-out", cert,
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], capture_output=True)  # fmt: skip
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    (tmp_path / "token").write_text("s3cret\n")
    options = [
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        cert,
        "--tls-key",
        key,
        "--token-file",
        tmp_path / "token",
        "--json",
    ]
    command = [os.environ.get("DSLOAD_BINARY", "dsload"), "serve", dataset, "--socket", tmp_path / "s", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"].replace("127.0.0.1", "localhost")
        with (
            Loader(dataset, output="numpy") as own,
            Loader(url=url, token="s3cret", ca_file=cert, output="numpy") as remote,
        ):
            assert_equal(list(remote), list(own))
            assert "s3cret" not in repr(remote._endpoint)
        with pytest.raises(dsload.FeedError, match="token"):
            Loader(url=url, token="wrong", ca_file=cert)
        with pytest.raises(dsload.FeedError, match="reached"):
            Loader(url=url, token="s3cret", reconnect_seconds=0)
    finally:
        server.kill()
        server.wait()


def test_build_reports_errors_and_progress(tmp_path: Any, text_lines: Any) -> None:
    seen: list[dict[str, Any]] = []
    result = dsload.build(text_lines, out=tmp_path / "d", format="text", max_examples=0, on_progress=seen.append)
    assert result["splits"][0]["examples"] == 1000
    with pytest.raises(dsload.BuildError) as caught:
        dsload.build(tmp_path / "missing.txt", out=tmp_path / "e")
    assert caught.value.exit_code != 0 and "missing.txt" in str(caught.value)
    with pytest.raises(dsload.BuildError) as caught:
        dsload.build(text_lines, out=tmp_path / "d", format="text", max_examples=0, max_length=7)
    assert caught.value.exit_code == 2 and "max-length" in str(caught.value)


def test_a_loader_travels_by_pickle_and_errors_too(dataset: str) -> None:
    for in_process in (False, True):
        with Loader(dataset, output="numpy", batch_size=9, in_process=in_process) as loader:
            loader.load_state_dict({**loader.state_dict(), "start": 90})
            copy = pickle.loads(pickle.dumps(loader))
            assert_equal(list(copy), list(loader))
            copy.close()
    for error in (
        dsload.FeedError("a", 404, "b"),
        dsload.BuildError("a", 3),
        dsload.ServerFailed("x", 4),
        dsload.StreamEnded("y"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error) and again.__dict__ == error.__dict__


@pytest.mark.parametrize(
    "query",
    [
        {"batch_size": 4096, "world": 2, "rank": 1},
        {"batch_size": 4096, "tail": "drop"},
        {"max_tokens": 1 << 20, "tail": "drop"},
        {"max_tokens": 1 << 20, "world": 3, "rank": 2},
        {"batch_size": 4096, "world": 2, "rank": 1, "tail": "keep", "epochs": 0},
        {"labels": "seq2seq"},
        {"max_tokens": 1},
        {"balance": "tokens", "batch_size": 65536, "world": 17, "rank": 1},
        {"balance": "tokens", "batch_size": 300, "world": 17, "rank": 1},
    ],
)
def test_both_readers_refuse_alike(dataset: str, query: dict[str, Any]) -> None:
    """What has no batch is an error of the same words, not a quiet end."""
    said = []
    for in_process in (False, True):
        with (
            pytest.raises(dsload.FeedError) as raised,
            Loader(dataset, output="numpy", in_process=in_process, **query) as loader,
        ):
            next(iter(loader))
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_what_is_no_dataset_or_number_is_refused_at_once(dataset: str, text_lines: Path) -> None:
    with pytest.raises(NotADirectoryError, match=r"a file, not a dataset folder; build one of it with dsload\.build\("):
        Loader({"text": text_lines})
    with pytest.raises(ValueError, match="the mapping names no dataset"):
        Loader({})
    for weight in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="mix: 'a' has weight"):
            Loader({"a": dataset}, mix={"a": weight})
    for seed in (1.5, "1", None, True):
        with pytest.raises(ValueError, match=r"seed: .* is not a whole number"):
            Loader(dataset, seed=seed)  # type: ignore[arg-type]
    for name in ("bucket", "epochs", "max_tokens"):
        with pytest.raises(ValueError, match=f"{name}: None is not a whole number"):
            Loader(dataset, **{name: None})
    for name, seconds in (("timeout", "5"), ("timeout", 0), ("timeout", None), ("reconnect_seconds", -1),
                          ("timeout", float("inf")), ("reconnect_seconds", float("nan"))):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name}: {seconds!r} is not a number of seconds"):
            Loader(dataset, **{name: seconds})


def test_what_is_no_dataset_is_told_how_to_be_one(dataset: str) -> None:
    with pytest.raises(ValueError, match="name exactly one of a dataset folder"):
        Loader("")
    with pytest.raises(ValueError, match="kind hf://; if it holds text to build, pass an option") as raised:
        Loader("hf://s3cret@datasets/owner/name")
    assert "s3cret" not in str(raised.value)
    for data in (dataset, {"a": dataset}):
        with pytest.raises(TypeError, match="of a dataset takes no 'tokenizer', which is an option of its build"):
            Loader(data, tokenizer="gpt2")
    with pytest.raises(TypeError, match=r"several datasets are a mapping, as in Loader\({'a': FOLDER"):
        Loader([dataset, dataset])
    with pytest.raises(ValueError, match=r"the parameters of batches are the Loader's, .* mix={NAME: 1}"):
        Loader("http://localhost:1?dataset=a")


@pytest.mark.server
def test_memory_may_be_a_number(dataset: str) -> None:
    with pytest.raises(dsload.ServerFailed, match=r"memory='?1000000"):
        Loader(dataset, memory=1000000)


def test_numbers_of_numpy_are_numbers(dataset: str) -> None:
    with (
        Loader(dataset, output="numpy", batch_size=np.int64(16), seed=np.uint8(3), bucket=np.int32(64)) as a,
        # type: ignore[arg-type]
        Loader(dataset, output="numpy", batch_size=16, seed=3, bucket=64) as b,
    ):
        assert_equal(list(a), list(b))
        json.dumps(a.state_dict())


@pytest.mark.parametrize("name", ["batch_size", "max_tokens", "pad_to_multiple_of", "bucket", "group", "world"])
def test_limits_of_the_feed(dataset: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: 4294967296 is more than"):
        Loader(dataset, in_process=True, **{"rank": 0, "world": 1, name: 1 << 32})
