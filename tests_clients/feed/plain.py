"""A minimal client: the standard library and pyarrow."""

import http.client
import socket

import pyarrow as pa
import pyarrow.ipc


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("dsload", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, target):
    connection = UnixConnection(path)
    connection.request("GET", target)
    return connection.getresponse()


def stream(path, query):
    """Record batches of /v1/batches."""
    response = get(path, "/v1/batches?" + query)
    if response.status != 200:
        raise RuntimeError(response.read().decode())
    yield from pa.ipc.open_stream(response)
    assert response.read() == b""  # pyarrow stops at the marker; HTTP shows whether the body was whole


def lists(batches):
    return [batch.to_pydict() for batch in batches]
