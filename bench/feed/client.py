"""Reads one epoch into torch tensors and prints samples, CPU-seconds of this process from the first request on, and of the server.

    python client.py KIND SOCKET SERVER_PID BATCH_SIZE [metered]

KIND: loader (dsload.Loader), plain (http.client and pyarrow alone), drain (a bare socket: what the kernel and Python's loop cost). `metered` adds what
the peers' scripts do with each batch (two sums), so that figures compare.
"""

import json
import os
import resource
import sys
import time


def server_cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def with_loader(path, batch):
    import dsload

    with dsload.Loader(socket=path, batch_size=batch, columns=("input_ids", "attention_mask", "labels")) as loader:
        for b in loader:
            yield b["input_ids"], b["attention_mask"], b["labels"]


def with_pyarrow(path, batch):
    import http.client
    import socket

    import pyarrow.ipc
    import torch

    c = http.client.HTTPConnection("dsload")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(path)
    c.request("GET", f"/v1/batches?batch_size={batch}")
    for b in pyarrow.ipc.open_stream(c.getresponse()):
        yield tuple(torch.from_numpy(b.column(i).values.to_numpy().reshape(b.num_rows, -1)) for i in range(3))


def drain(path, batch):
    import socket

    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(f"GET /v1/batches?batch_size={batch} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    room = bytearray(1 << 20)
    while s.recv_into(room):
        pass
    return iter(())


def main():
    kind, path, pid, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    import torch

    torch.set_num_threads(1)
    if kind == "loader":
        import dsload  # noqa: F401  imports are not measured
    if kind == "plain":
        import http.client, pyarrow.ipc  # noqa: E401, F401
    metered = "metered" in sys.argv
    samples = tokens = total = size = 0
    before, own, began = server_cpu(pid), own_cpu(), time.perf_counter()
    for ids, mask, labels in {"loader": with_loader, "plain": with_pyarrow, "drain": drain}[kind](path, batch):
        samples += ids.shape[0]
        size += 3 * ids.numel() * ids.element_size()
        if metered:
            tokens += int(mask.sum())
            total += int(ids.sum())
    print(json.dumps({"samples": samples, "client_cpu_s": own_cpu() - own, "server_cpu_s": server_cpu(pid) - before,
                      "wall_s": time.perf_counter() - began, "bytes": size}))


if __name__ == "__main__":
    main()
