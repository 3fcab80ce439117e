"""What happens around streams: kills, restarts, signals, many and bad clients. Each server is a real process."""

import contextlib
import io
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families
from waiting import HANGS, wait_until
from plain import get, lists, stream
from reference_data import need


def test_killed_server_is_an_error_at_the_client(serve, dataset):
    server = serve(dataset)
    feed = stream(server.socket, "batch_size=4&epochs=0")
    for _ in range(5):
        next(feed)
    server.kill()
    with pytest.raises(Exception) as caught:  # IncompleteRead, ConnectionResetError or pyarrow's own
        for _ in feed:
            pass
    assert not isinstance(caught.value, (StopIteration, AssertionError))


def test_restart_goes_on_from_the_last_row(serve, dataset):
    query = "batch_size=8&seed=3&bucket=256"
    server = serve(dataset)
    whole = lists(stream(server.socket, query))
    feed = stream(server.socket, query)
    first = [next(feed).to_pydict() for _ in range(20)]
    server.kill()
    assert os.path.exists(server.socket)  # stale: nobody removed it
    again = serve(dataset)  # takes the path over
    rest = lists(stream(again.socket, f"{query}&start={first[-1]['next'][0]}"))
    assert first + rest == whole


def test_live_socket_is_not_taken_over(serve, dsload, dataset):
    server = serve(dataset)
    second = subprocess.run([dsload, "serve", str(dataset), "--socket", server.socket], capture_output=True, text=True)
    assert second.returncode == 1
    assert "another server is listening there; read from it, or give another --socket" in second.stderr
    assert get(server.socket, "/healthz").status == 200
    assert os.stat(server.socket).st_mode & 0o777 == 0o600


def test_prometheus_reads_all_metrics(serve, dataset):
    server = serve(dataset)
    rows = lists(stream(server.socket, "batch_size=100&epochs=1"))
    wait_until(lambda: json.load(get(server.socket, "/v1/stats"))["streams"] == 0)
    families = {f.name: f for f in text_string_to_metric_families(get(server.socket, "/metrics").read().decode())}
    assert {name: f.type for name, f in families.items()} == {
        **{f"dsload_feed_{name}": "counter" for name in (
            "batches", "rows", "tokens", "padded_tokens", "bytes", "requests", "streams_ended", "streams_refused",
            "dataset_rows", "dataset_tokens", "source_rows", "source_tokens")},
        **{f"dsload_feed_{name}": "gauge" for name in (
            "streams", "padding_efficiency", "memory_leased_bytes", "memory_cap_bytes", "dataset_epochs", "dataset_weight",
            "source_epochs")},
        "go_goroutines": "gauge", "process_cpu_seconds": "counter", "process_resident_memory_bytes": "gauge",
        "process_open_fds": "gauge", "process_start_time_seconds": "gauge",
    }
    values = {(s.name, *s.labels.values()): s.value for f in families.values() for s in f.samples}
    assert all(f.documentation for f in families.values())
    assert values["dsload_feed_batches_total",] == len(rows)
    sent = [s for s in families["dsload_feed_dataset_rows"].samples if s.name.endswith("_total")]
    assert sum(s.value for s in sent) == sum(len(b["example"]) for b in rows)
    assert values["dsload_feed_requests_total", "/v1/batches"] == 1
    assert values["dsload_feed_streams_ended_total", "complete"] == 1
    assert values["dsload_feed_streams",] == 0
    assert values["dsload_feed_memory_leased_bytes",] < values["dsload_feed_memory_cap_bytes",] == 48 << 20
    assert 0 < time.time() - values["process_start_time_seconds",] < 600


def test_sigterm_lets_streams_end(serve, dataset):
    server = serve(dataset, "--drain", "30s")
    feed = stream(server.socket, "batch_size=8&epochs=3")  # larger than the socket's buffer
    first = next(feed)
    done = []
    waiter = threading.Thread(target=lambda: done.append(server.terminate()))
    waiter.start()
    wait_until(lambda: not os.path.exists(server.socket))  # no new clients
    rows = first.num_rows + sum(batch.num_rows for batch in feed)
    waiter.join()
    assert done == [0]
    assert rows == 3 * total_rows(dataset)


def test_sigterm_cuts_endless_streams_with_an_error(serve, dataset):
    server = serve(dataset, "--drain", "100ms")
    feed = stream(server.socket, "batch_size=8&epochs=0")
    next(feed)
    assert server.terminate() == 5  # interrupted, resumable
    with pytest.raises(Exception) as caught:
        for _ in feed:
            pass
    assert not isinstance(caught.value, (StopIteration, AssertionError))
    assert not os.path.exists(server.socket) and not os.path.exists(server.socket + ".lock")


def test_owner_that_dies_takes_the_server_along(dsload, dataset, folder):
    """--exit-with-stdin: the server ends with the pipe, even if its owner is killed."""
    code = "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); time.sleep(600)"
    owner = subprocess.Popen(
        [sys.executable, "-c", code, dsload, "serve", str(dataset), "--socket", str(folder / "s"), "--exit-with-stdin"],
        stdout=subprocess.PIPE, text=True)
    assert "serving on" in owner.stdout.readline()
    feed = stream(str(folder / "s"), "epochs=0")
    next(feed)
    owner.kill()
    owner.wait()
    wait_until(lambda: not (folder / "s").exists())
    owner.stdout.close()


@pytest.mark.parametrize("ending", ["owner", "signal"])
def test_a_stream_that_hangs_keeps_no_server(dsload, dataset, folder, ending):
    """A pipe replaces a shard: whether its reader hangs or is refused, the server ends on request."""
    data = folder / "data"
    shutil.copytree(dataset, data)
    server = subprocess.Popen([dsload, "serve", str(data), "--socket", str(folder / "s"), "--drain", "10ms", *(["--exit-with-stdin"] if ending == "owner" else [])],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert "serving on" in server.stdout.readline()
        for shard in sorted(data.glob("train-*.arrow")):
            shard.unlink()
            os.mkfifo(shard)
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(folder / "s"))
        client.sendall(b"GET /v1/batches?epochs=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        if ending == "owner":
            server.stdin.close()
            assert server.wait(HANGS) in (0, 1)
        else:
            server.terminate()
            assert server.wait(HANGS) in (0, 5)
        client.close()
        assert not os.path.exists(folder / "s") and not os.path.exists(folder / "s.lock")
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
        server.stdin.close()


def test_killed_server_leaves_no_lock(serve, dataset):
    server = serve(dataset)
    assert not os.path.exists(server.socket + ".lock")
    server.kill()
    assert os.listdir(os.path.dirname(server.socket)) == ["s"]
    assert get(serve(dataset).socket, "/healthz").status == 200


def test_pasted_lines_work(dsload, dataset, folder):
    server = subprocess.Popen([dsload, "serve", str(dataset), "--socket", str(folder / "s")], stdout=subprocess.PIPE, text=True)
    try:
        text = server.stdout.readline()
        while "dsload.Loader" not in text:
            text += server.stdout.readline()
        lines = [line.strip() for line in text.splitlines()]
        curls = [line for line in lines if line.startswith("curl")]
        assert len(curls) == 2
        for line in curls:
            subprocess.run(line, shell=True, check=True, cwd=folder, capture_output=True)
        assert (folder / "batches.arrows").stat().st_size > 0
        begin = lines.index("import http.client, socket, pyarrow")
        scope = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec("\n".join(lines[begin:begin + 4]), scope)  # as a user pastes it
        assert scope["batch"].num_rows > 0
    finally:
        server.terminate()
        assert server.wait(HANGS) == 0
        server.stdout.close()


def total_rows(dataset):
    return json.loads((dataset / "manifest.json").read_text())["splits"][0]["examples"]


def test_256_clients_with_default_settings(serve, dataset):
    """All held at once, each in the middle of a stream, under the default memory; then all read to their ends."""
    server = serve(dataset)
    feeds = [stream(server.socket, f"seed={i}&epochs=2") for i in range(256)]
    rows = [next(feed).num_rows for feed in feeds]
    stats = json.load(get(server.socket, "/v1/stats"))
    assert stats["streams"] == 256 and stats["memory_leased_bytes"] <= stats["memory_cap_bytes"]
    assert server.resident() <= 48 << 20
    for i in random.Random(1).sample(range(256), 12):
        rows[i] += sum(batch.num_rows for batch in feeds[i])
        assert rows[i] == 2 * total_rows(dataset)
    for feed in feeds:
        feed.close()
    assert server.resident() <= 48 << 20


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself."""
    need("openssl")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", folder / "k.pem",
                    "-out", folder / "c.pem", "-days", "2", "-subj", "/CN=dsload", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return folder


def test_tcp_with_tls_and_token(serve, dataset, certificate, reference):
    import http.client

    import pyarrow as pa

    (certificate / "token").write_text("s3cret\n")
    (certificate / "token").chmod(0o600)
    server = serve(dataset, "--listen", "127.0.0.1:0", "--tls-cert", str(certificate / "c.pem"), "--tls-key", str(certificate / "k.pem"),
                   "--token-file", str(certificate / "token"))
    host, port = server.addresses["url"].removeprefix("https://").split(":")

    def ask(token, **limits):
        context = ssl.create_default_context(cafile=certificate / "c.pem")
        for name, value in limits.items():
            setattr(context, name, value)
        c = http.client.HTTPSConnection(host, int(port), context=context, timeout=HANGS)
        c.request("GET", "/v1/batches?batch_size=64", headers={"Authorization": "Bearer " + token})
        return c.getresponse()

    assert lists(pa.ipc.open_stream(ask("s3cret"))) == reference(dataset, "batch_size=64")
    refused = ask("wrong")
    assert refused.status == 401 and json.load(refused)["hint"]
    with pytest.warns(DeprecationWarning), pytest.raises(OSError):
        ask("s3cret", minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)


def test_stderr_that_nobody_reads_stops_nothing(serve, dataset):
    server = serve(dataset, "--log-level", "debug")  # its stderr is a pipe that is never read
    for _ in range(600):
        assert get(server.socket, "/v1/batches?batch_size=0").status == 400
    assert get(server.socket, "/healthz").status == 200


def misbehave(path, rng, stop):
    """A client that connects, reads a little, stalls, vanishes, asks nonsense, and comes back."""
    while not stop.is_set():
        try:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(5)
            s.connect(path)
            kind = rng.randrange(6)
            if kind == 0:
                s.sendall(b"GET /v1/batches?batch_size=" + rng.randbytes(20) + b" HTTP/1.1\r\n\r\n")
            elif kind == 1:
                s.sendall(b"GET /v1/ba")
            else:
                s.sendall(b"GET /v1/batches?epochs=0&bucket=%d&seed=%d&batch_size=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (rng.choice([0, 1024]), rng.randrange(9), rng.choice([1, 32, 64])))
            for _ in range(rng.randrange(60)):
                if not s.recv(1 << 16):
                    break
            if rng.randrange(3) == 0:
                stop.wait(rng.random())
            s.close()
        except OSError:
            pass


def test_soak(serve, dataset):
    """64 misbehaving clients for seconds (DSLOAD_SOAK=1: ten minutes): memory stays flat, and no descriptor is left when they are gone."""
    seconds = 600 if os.environ.get("DSLOAD_SOAK") else 3
    server = serve(dataset)
    assert lists(stream(server.socket, "batch_size=100"))  # from now on all shards are open
    before = server.fds()
    stop = threading.Event()
    clients = [threading.Thread(target=misbehave, args=(server.socket, random.Random(i), stop)) for i in range(64)]
    for c in clients:
        c.start()
    most = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)
        most.append(server.resident())
    stop.set()
    for c in clients:
        c.join()
    assert max(most) <= 48 << 20
    tenth = max(1, len(most) // 10)
    early, late = max(most[tenth:len(most) // 2]), max(most[len(most) // 2:])
    assert late <= early * 1.15 + (2 << 20), (early, late)
    wait_until(lambda: json.load(get(server.socket, "/v1/stats"))["streams"] == 0)
    wait_until(lambda: server.fds() <= before + 2)
    assert len(lists(stream(server.socket, "batch_size=100"))) > 0
    metrics = get(server.socket, "/metrics").read().decode()
    goroutines = [float(line.split()[1]) for line in metrics.splitlines() if line.startswith("go_goroutines ")]
    assert goroutines and goroutines[0] < 40
    assert 'dsload_feed_streams_ended_total{how="left"}' in metrics
    print(f"\nsoak: {seconds} s, resident {early >> 20} then {late >> 20} MiB")
