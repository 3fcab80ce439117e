import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import inputs
import pytest
from snippets import ROOT

sys.path.insert(0, str(ROOT / "python"))  # the names of the package, for blocks that are not run


class Interpreter:
    """One Python for the blocks of all pages."""

    def __init__(self, env):
        self.env, self.process = env, None

    def run(self, page, line, folder, code):
        """The traceback of a block, or None."""
        if self.process is None:
            read, write = os.pipe()
            self.process = subprocess.Popen(
                [sys.executable, str(pathlib.Path(__file__).with_name("interpreter.py")), str(write)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=self.env, pass_fds=[write])
            os.close(write)
            self.answers = os.fdopen(read)
        self.process.stdin.write(json.dumps({"page": page, "line": line, "folder": str(folder), "code": code}) + "\n")
        self.process.stdin.flush()
        answer = self.answers.readline()
        if not answer:
            code, self.process = self.process.wait(), None
            return f"the interpreter ended with {code}"
        return json.loads(answer)["error"]

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


@pytest.fixture(scope="session")
def environment(dsload, tmp_path_factory):
    """What commands of pages see: dsload and this Python on PATH, the package from the checkout, a cache of their own."""
    programs = tmp_path_factory.mktemp("bin")
    (programs / "dsload").symlink_to(pathlib.Path(dsload).resolve())
    keep = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "DSLOAD_SHARED", "DSLOAD_CACHE")}
    path = f"{programs}:{pathlib.Path(sys.executable).parent}:{keep['PATH']}"
    return {**keep, "PATH": path, "PYTHONPATH": str(ROOT / "python"), "DSLOAD_BINARY": str(pathlib.Path(dsload).resolve()), "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path_factory.mktemp("hf")),
            "MPLBACKEND": "Agg", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="session")
def interpreter(environment):
    running = Interpreter(environment)
    yield running
    running.close()


@pytest.fixture(scope="session")
def prepared(dsload, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    inputs.make(folder, dsload)
    return folder


@pytest.fixture()
def folder(prepared, tmp_path):
    return pathlib.Path(shutil.copytree(prepared, tmp_path / "page"))


@pytest.fixture(scope="session")
def flags(dsload):
    """(command) -> the flags that it has."""
    known = {}

    def of(words):
        if words not in known:
            text = subprocess.run([dsload, *words, "--help"], capture_output=True, text=True, check=True).stdout
            known[words] = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) | {"--help", "--version"}
        return known[words]

    return of
