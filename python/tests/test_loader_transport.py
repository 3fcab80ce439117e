"""What the loader reads from a socket: whole messages, or an error."""

import socket
import threading

import numpy as np
import pyarrow as pa
import pytest

from dsload._feed.decode import Decoder
from dsload._feed.transport import Endpoint, StreamCut, _wait_in_kernel

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def answer(tmp_path):
    """answer(pieces, end) is an endpoint whose server sends these pieces, and then closes the connection or leaves it
    open."""
    threads, done = [], threading.Event()

    def start(pieces, end):
        path = str(tmp_path / f"s{len(threads)}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)

        def serve():
            connection, _ = listener.accept()
            with connection, listener:
                connection.recv(4096)
                for piece in pieces:
                    connection.sendall(piece)
                if not end:
                    done.wait()

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return Endpoint(path=path)

    yield start
    done.set()
    for thread in threads:
        thread.join()


def _allocate(size):
    return np.empty(size, np.uint8)


@pytest.mark.parametrize("size", [1, 1000, 256 << 10, (256 << 10) + 1, 3 << 20])
def test_messages_arrive_whole_however_they_were_cut(answer, size):
    rng = np.random.default_rng(size)
    messages = [rng.bytes(size) for _ in range(3)]
    body = _HEAD + b"".join(b"%x\r\n%s\r\n" % (len(m), m) for m in messages) + b"0\r\n\r\n"
    cuts = sorted(rng.integers(0, len(body), 20))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)])]
    with answer(pieces, end=True).request("/") as response:
        for message in messages:
            assert response.read_message(_allocate).tobytes() == message
        assert response.read_message(_allocate) is None


@pytest.mark.parametrize("size", [1000, 3 << 20])
def test_a_connection_that_ends_within_a_message_is_a_cut(answer, size):
    with (
        answer([_HEAD + b"%x\r\n" % size, b"x" * (size - 1)], end=True).request("/") as response,
        pytest.raises(StreamCut),
    ):
        response.read_message(_allocate)


@pytest.mark.parametrize("size", [1000, 3 << 20])
def test_a_server_that_falls_silent_is_an_error(answer, size):
    endpoint = answer([_HEAD + b"%x\r\n" % size, b"x" * (size - 1)], end=False)
    with endpoint.request("/") as response:
        _wait_in_kernel(response._sock, 0.05)  # the head was waited for as long as it took
        with pytest.raises(TimeoutError):
            response.read_message(_allocate)


def test_metadata_that_were_read_before_are_held_against_each_message():
    schema = pa.schema([pa.field("input_ids", pa.list_(pa.int64())), pa.field("next", pa.int64())])
    batch = pa.record_batch(
        [pa.array([[1, 2], [3, 4]], pa.list_(pa.int64())), pa.array([7, 7], pa.int64())], schema=schema
    )
    message = np.frombuffer(batch.serialize().to_pybytes(), np.uint8)
    decoder = Decoder(np.frombuffer(schema.serialize().to_pybytes(), np.uint8))
    for _ in range(2):
        arrays = decoder.decode(message)
        assert arrays["input_ids"].tolist() == [[1, 2], [3, 4]] and arrays["next"].tolist() == [7, 7]
    with pytest.raises(StreamCut):
        decoder.decode(message[:-64].copy())
    with pytest.raises(StreamCut):
        decoder.decode(message[:40].copy())
    kept = Decoder(np.frombuffer(schema.serialize().to_pybytes(), np.uint8), keep=("next", "row"))
    assert list(kept.decode(message)) == ["next"]
