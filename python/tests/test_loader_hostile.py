"""Whatever answers: never a hang, never an error that is not dsload's, never another dataset's rows, never a token in a
text."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import random
import resource
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import effort
import numpy as np
import pyarrow as pa
import pytest
import runs

import dsload
from dsload import Loader
from dsload._feed import transport
from dsload._feed.transport import Endpoint

SEAL, OTHER = "a" * 64, "b" * 64
MANIFEST = {"splits": [{"name": "train", "examples": 100, "shards": [{"blake3": "c" * 64}]}], "blake3": SEAL}
SCHEMA = pa.schema(
    [pa.field("input_ids", pa.list_(pa.int64())), pa.field("row", pa.int64()), pa.field("next", pa.int64())]
)
END = b"\xff\xff\xff\xff\0\0\0\0"


def batch(start: int, rows: int = 10, following: int = -1) -> bytes:
    columns = [
        pa.array([[r, r] for r in range(start, start + rows)], pa.list_(pa.int64())),
        pa.array(range(start, start + rows), pa.int64()),
        pa.array([following if following >= 0 else start + rows] * rows, pa.int64()),
    ]
    return bytes(pa.record_batch(columns, schema=SCHEMA).serialize().to_pybytes())


def head(seal: Any = SEAL, status: str = "200 OK", kind: str = "application/vnd.apache.arrow.stream") -> bytes:
    line = f"Dsload-Seal: {seal}\r\n" if seal else ""
    return f"HTTP/1.1 {status}\r\n{line}Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer_json(value: Any, seal: Any = SEAL, status: str = "200 OK") -> bytes:
    return head(seal, status, "application/json") + chunk(json.dumps(value).encode()) + b"0\r\n\r\n"


def stream(starts: Any, seal: Any = SEAL, end: bool = True) -> bytes:
    body = head(seal) + chunk(SCHEMA.serialize().to_pybytes()) + b"".join(chunk(batch(s)) for s in starts)
    return body + chunk(END) + b"0\r\n\r\n" if end else body


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """fake(answer) is a socket's path where answer(path, number of the request) is what is sent: bytes, or an iterator
    of them."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []
    over = threading.Event()

    def start(answer: Callable[[str, int], Any], hold: bool = False) -> str:
        path = str(tmp_path / f"fake{len(listeners)}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(8)
        listeners.append(listener)

        def speak(connection: socket.socket, number: int) -> None:
            with connection:
                try:
                    asked = connection.recv(65536).split(b" ")
                    said = answer(asked[1].decode() if len(asked) > 1 else "", number)
                    for piece in [said] if isinstance(said, bytes) else said:
                        connection.sendall(piece)
                    if hold:
                        over.wait()
                except OSError:
                    pass  # the client has gone

        def serve() -> None:
            for number in itertools.count():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=speak, args=(connection, number), daemon=True))
                threads[-1].start()

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        return path

    yield start
    over.set()
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(30)


def read(path: str, **options: Any) -> list[int]:
    options = {"batch_size": 10, "output": "numpy", "reconnect_seconds": 0.05, **options}
    with Loader(socket=path, **options) as loader:
        return [int(r) for b in loader for r in b["row"]]


def served(body: bytes, manifest: Any = MANIFEST) -> Callable[[str, int], bytes]:
    return lambda path, _: answer_json(manifest) if path.partition("?")[0] == "/v1/dataset" else body


def test_the_fake_server_is_one(fake: Any) -> None:
    assert read(fake(served(stream(range(0, 100, 10))))) == list(range(100))


@pytest.mark.parametrize("seal", [OTHER, None, ""], ids=str)
@pytest.mark.parametrize("where", ["stream", "again", "refusal"])
def test_another_dataset_behind_the_address(fake: Any, where: str, seal: Any) -> None:
    def answer(path: str, number: int) -> bytes:
        if path.partition("?")[0] == "/v1/dataset":
            return answer_json(MANIFEST)
        if where == "refusal":
            return answer_json({"error": "no such split"}, seal, "404 Not Found")
        if where == "again" and number == 1:
            return stream([0, 10], end=False)
        return stream([20 if where == "again" else 0], seal)

    seen: list[int] = []
    with Loader(socket=fake(answer), batch_size=10, output="numpy", reconnect_seconds=5) as loader:
        with pytest.raises(dsload.DatasetChanged, match="now serves"):
            for b in loader:
                seen += b["row"].tolist()
        assert seen == (list(range(20)) if where == "again" else [])
        again = pickle.loads(pickle.dumps(loader))
        with pytest.raises(dsload.DatasetChanged):
            list(again)


def test_a_server_without_seals_is_read(fake: Any) -> None:
    plain = {"splits": MANIFEST["splits"]}
    path = fake(
        lambda path, _: (
            answer_json(plain, None) if path.partition("?")[0] == "/v1/dataset" else stream(range(0, 100, 10), None)
        )
    )
    assert read(path) == list(range(100))


def test_a_manifest_with_another_seal_than_its_header(fake: Any) -> None:
    with pytest.raises(dsload.FeedError, match="another one"):
        read(fake(served(b"", {**MANIFEST, "blake3": OTHER})))


GOOD = chunk(SCHEMA.serialize().to_pybytes())
STREAMS: dict[str, bytes] = {
    "nothing": b"",
    "not HTTP": b"SSH-2.0-OpenSSH\r\n",
    "a long line": b"HTTP/1.1 200 " + b"x" * 100_000,
    "endless header lines": b"HTTP/1.1 200 OK\r\n" + b"A: 1\r\n" * 100_000,
    "status": b"HTTP/1.1 \xb200 OK\r\n\r\n",
    "not Arrow": answer_json({}),
    "no schema": head() + b"0\r\n\r\n",
    "schema is garbage": head() + chunk(b"\xff" * 400),
    "a name that is not UTF-8": stream(range(0, 100, 10)).replace(b"input_ids", b"\xfeinput_id"),
    "schema of one byte": head() + chunk(b"x"),
    "chunk of 2^62": head() + GOOD + b"4000000000000000\r\nabc",
    "chunk of 2^33": head() + GOOD + b"200000000\r\nabc",
    "chunk of 2^63-1": head() + b"7fffffffffffffff\r\nabc",
    "chunk of 2^80": head() + GOOD + b"f" * 20 + b"\r\nabc",
    "chunk below zero": head() + GOOD + b"-5\r\nabc",
    "chunk with a sign": head() + GOOD + b"+5\r\nabcde\r\n",
    "chunk with an underline": head() + GOOD + b"1_0\r\n" + b"a" * 16 + b"\r\n",
    "batch is garbage": head() + GOOD + chunk(b"\xff\xff\xff\xff" + b"\x7f" * 400),
    "batch of zeros": head() + GOOD + chunk(b"\xff\xff\xff\xff\x40\0\0\0" + bytes(400)),
    "metadata longer than the message": head() + GOOD + chunk(b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(64)),
    "a batch that goes back": head() + GOOD + chunk(batch(10)) + chunk(batch(0)),
    "a batch that stands still": head() + GOOD + chunk(batch(0, following=0)) * 50,
    "a batch past the end": head() + GOOD + chunk(batch(0, following=101)),
    "ends early": stream(range(0, 50, 10), end=False),
    "no end marker": stream(range(0, 50, 10), end=False) + b"0\r\n\r\n",
    "an error that is no JSON": head(status="500 Oops") + chunk(b"[" * 100_000) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("hold", [False, True], ids=["closed", "left open"])
def test_streams_of_garbage(fake: Any, name: str, hold: bool) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(dsload.DsloadError):
        read(fake(served(STREAMS[name]), hold), **({"timeout": 0.1} if hold else {}))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "MiB that nobody sent"


MANIFESTS: list[Any] = [
    None, [], 5, "text", {}, {"splits": 5}, {"splits": [5]}, {"splits": [{"name": 5}]}, {"splits": []},
    {"splits": [{"name": "train"}]},
    *({"splits": [{"name": "train", "examples": n, "shards": []}]} for n in (-1, 2**63 - 1, 2**80, True, "5", 1.5,
        None, 0)),
    {"datasets": 5}, {"datasets": {}}, {"datasets": {"a": 5}},
]  # fmt: skip


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda m: json.dumps(m)[:60])
def test_manifests_of_garbage(fake: Any, manifest: Any) -> None:
    with pytest.raises(dsload.DsloadError):
        read(fake(served(stream(range(0, 100, 10)), manifest)))


def test_shards_without_checksums_give_no_state(fake: Any) -> None:
    for shards in (None, 5, [5], [{}], [{"blake3": 5}]):
        manifest = {"splits": [{"name": "train", "examples": 100, "shards": shards}]}
        with Loader(socket=fake(served(b"", manifest)), output="numpy") as loader, pytest.raises(dsload.Corrupt):
            loader.state_dict()


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 5\r\n\r\n[", b"Content-Length: x\r\n\r\n{}", b"Content-Length: 99999999999999999\r\n\r\n{}",
     b"\r\n" + b"[" * 100_000,
     b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n{}", b"Content-Length: 3\r\n\r\n\xff\xfe\xfd"],
)  # fmt: skip
def test_answers_of_garbage(fake: Any, body: bytes) -> None:
    with pytest.raises(dsload.DsloadError):
        read(fake(lambda *_: b"HTTP/1.1 200 OK\r\n" + body))


def test_random_bytes_at_random_places(fake: Any) -> None:
    """Whatever is changed in a stream: an error, or the very rows that were sent; other values cannot be detected
    here."""
    rng = random.Random(effort.seed(5))
    good = stream(range(0, 100, 10))
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(rng.choice([1, 1, 5, 200])):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        try:
            rows = read(fake(served(bytes(bad))), reconnect_seconds=0)
        except (dsload.DsloadError, dsload.StreamEnded):
            continue
        assert len(rows) == 100


def test_an_answer_that_drips_in_is_late(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def drip() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nA: "
        while not over.wait(0.001):
            yield b"x"

    # By this clock, between two readings a second goes by.
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    path = fake(lambda *_: drip())
    with pytest.raises(dsload.FeedError, match="too slow"):
        read(path, timeout=20, reconnect_seconds=0)
    over.set()


@pytest.mark.parametrize("size", [(16 << 20) + 1, 33 << 20, 70 << 20])
def test_large_messages_arrive_whole(fake: Any, size: int) -> None:
    data = np.random.default_rng(3).bytes(size)
    path = fake(lambda *_: head() + chunk(data) + b"0\r\n\r\n")
    with Endpoint(path=path).request("/") as response:
        got = response.read_message(lambda n: np.empty(n, np.uint8))
        assert len(got) == size and got.tobytes() == data
        assert response.read_message(None) is None


BAD_TOKENS = ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\r", "\n", "a b", "a\0", "é", "a\x85", "s3cret\n"]


@pytest.mark.parametrize("token", BAD_TOKENS, ids=ascii)
def test_tokens_that_no_header_can_hold(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for given in (token, None):
            monkeypatch.setenv("DSLOAD_TOKEN", "" if given else token) if "\0" not in token else None
            if given is None and "\0" in token:
                continue
            with pytest.raises(ValueError, match="token: character") as caught:
                Loader(url=url, token=given, reconnect_seconds=0)
            assert "Evil" not in str(caught.value) and "s3cret" not in str(caught.value)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_the_token_is_nowhere_to_be_read() -> None:
    endpoint = Endpoint.of_url("https://host:1", token="s3cret", ca_file=None, timeout=1)
    again = pickle.loads(pickle.dumps(endpoint))
    assert again == endpoint and again.token.value == "s3cret" and copy.deepcopy(endpoint) == endpoint
    for x in (endpoint, again, vars(endpoint), endpoint.__reduce_ex__(2), endpoint.token):
        assert "s3cret" not in repr(x) and "s3cret" not in str(x)
    for make in (
        lambda: Loader(url="https://127.0.0.1:1", token="s3cret", reconnect_seconds=0),
        lambda: Loader(url="http://example.org", token="s3cret"),
        lambda: Loader(url="https://user:s3cret@example.org"),
        lambda: Loader("https://user:s3cret@example.org"),
    ):
        with pytest.raises((ValueError, dsload.FeedError)) as caught:
            make()
        assert "s3cret" not in str(caught.value)


def test_hosts_that_are_addresses() -> None:
    endpoint = Endpoint.of_url("http://[::1]:80", token=None, ca_file=None, timeout=1)
    assert repr(endpoint) == "http://[::1]:80" and endpoint.host == "::1"


@pytest.mark.server
class TestServers:
    """With real ones. The seal comes from the server, so these need one that sends it."""

    @pytest.fixture(autouse=True)
    def _sealed(self, dataset: str) -> None:
        with Loader(dataset, output="numpy") as loader:
            if loader._feed is None or loader._feed.seal is None:
                pytest.skip("this server sends no seal")

    def test_a_folder_that_was_built_anew_under_its_loader(
        self, dataset: str, other_dataset: str, tmp_path: Path
    ) -> None:
        folder = tmp_path / "data"
        shutil.copytree(dataset, folder)
        seen = 0
        with Loader(folder, batch_size=1, output="numpy", epochs=0) as loader:
            with pytest.raises(dsload.DatasetChanged):
                for _ in loader:
                    seen += 1
                    if seen == 20:
                        loader._server._process.kill()
                        loader._server._process.wait()
                        shutil.rmtree(folder)
                        shutil.copytree(other_dataset, folder)
            assert seen >= 20
        with (
            Loader(folder, output="numpy") as other,
            Loader(dataset, output="numpy") as first,
            pytest.raises(ValueError, match="another"),
        ):
            other.load_state_dict(first.state_dict())


@pytest.mark.server
def test_a_loader_leaves_no_files(dataset: str, tmp_path: Path) -> None:
    code = """
import os, sys, dsload
loader = dsload.Loader(sys.argv[1], output="numpy")
next(iter(loader))
if sys.argv[2] == "killed":
    loader._server._process.kill()
    loader._server._process.wait()
loader.close()
"""
    import os

    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("XDG_RUNTIME_DIR", None)
    for how in ("killed", "closed"):
        done = subprocess.run(
            [sys.executable, "-c", code, dataset, how],
            env=environment,
            timeout=runs.HANGS,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, ""), "no word at the interpreter's end"
        assert list(tmp_path.iterdir()) == []
