"""A dataset of real or generated text, a server for it, and the batches that it should send."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile

import pytest
from reference_data import build, find_shared, need
from waiting import HANGS

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Server:
    """A dsload serve process. Ready when constructed; ends with close()."""

    def __init__(self, dsload, dataset, socket, *args):
        self.socket = str(socket)
        self.process = subprocess.Popen(
            [dsload, "serve", str(dataset), "--socket", self.socket, "--json", *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read())
        self.addresses = json.loads(line)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANGS)

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        if self.process.poll() is None:
            self.terminate()
        self.process.stdout.close()
        self.process.stderr.close()


def write_lines(path):
    """4,500 lines of up to 200 words, a third of them blank, as in a file of prose."""
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(1, 9))) for _ in range(400)]
    lines = [" ".join(rng.choices(words, k=min(200, 1 + int(rng.expovariate(1 / 40))))) if i % 3 else "" for i in range(4500)]
    path.write_text("".join(f" {line} \n" for line in lines))
    return path


@pytest.fixture(scope="session")
def dataset(dsload, tmp_path_factory):
    """WikiText-2's test file, a line an example, where the reference data is; else lines made here."""
    folder = tmp_path_factory.mktemp("feed")
    source = (find_shared() or folder) / "corpora/wikitext-2/test.txt"
    if not source.exists():
        source = write_lines(folder / "lines.txt")
    out = folder / "data"
    build(dsload, out, source, "--format", "text", "--max-examples", "2500", "--shard-bytes", "256KiB")
    return out


@pytest.fixture(scope="session")
def pairs(dsload, tmp_path_factory):
    """Prompts and targets."""
    out = tmp_path_factory.mktemp("pairs") / "data"
    build(dsload, out, "synth://recipes?seed=3", "--template", "recipe-seq2seq", "--max-examples", "500")
    return out


@pytest.fixture()
def folder():
    """A folder whose paths are short enough for a socket."""
    path = tempfile.mkdtemp(prefix="feed")
    yield pathlib.Path(path)
    shutil.rmtree(path)


@pytest.fixture()
def serve(dsload, folder):
    """Starts servers; all of them are stopped at the end."""
    servers = []

    def start(dataset, *args, name="s"):
        server = Server(dsload, dataset, folder / name, *args)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def node_modules():
    """apache-arrow for Node: in $DSLOAD_NODE_PACKAGES, or installed once next to the Python environment."""
    need("node")
    need("npm")
    target = pathlib.Path(os.environ.get("DSLOAD_NODE_PACKAGES") or ROOT / ".venv-node")
    if not (target / "node_modules/apache-arrow").is_dir():
        target.mkdir(exist_ok=True)
        shutil.copy(pathlib.Path(__file__).parent / "node/package.json", target)
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=target, capture_output=True, text=True)
        if done.returncode:
            pytest.skip("apache-arrow cannot be installed: " + done.stderr[-200:])
    return target / "node_modules"


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """What the feed should send: batches as dicts of lists, from the slow collation in Go."""
    exe = tmp_path_factory.mktemp("reference") / "reference"
    subprocess.run(["go", "build", "-o", str(exe), "./bench/feed/reference"], cwd=ROOT, check=True)

    def batches(dataset, query):
        out = subprocess.run([str(exe), str(dataset), query], check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    return batches
