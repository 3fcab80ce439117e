"""A Loader in a process that goes to another folder, and copies of one that is closed."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import pytest

from dsload import Loader, StreamEnded

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_servers_left")]


def rows(loader: Loader) -> list[int]:
    return [int(e) for batch in loader for e in batch["example"]]


@pytest.mark.filterwarnings("error")
def test_a_relative_name_stays_that_of_the_first_folder(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(dataset).parent)
    with Loader(Path(dataset).name, batch_size=100, output="numpy") as loader:
        want = rows(loader)
        monkeypatch.chdir(tmp_path)
        loader.set_epoch(0)
        batches = iter(loader)
        got = next(batches)["example"].tolist()
        os.kill(loader._server.process_id, signal.SIGKILL)
        assert got + [int(e) for batch in batches for e in batch["example"]] == want


def test_without_a_server_too(dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(dataset).parent)
    with Loader(Path(dataset).name, batch_size=100, output="numpy", in_process=True) as loader:
        monkeypatch.chdir(tmp_path)
        copy = pickle.loads(pickle.dumps(loader))
        assert len(rows(copy)) == loader.num_examples and rows(loader)
        copy.close()


def test_a_server_that_cannot_start_again_says_why(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of what it said when it started before."""
    folder = tmp_path / "data"
    folder.symlink_to(dataset)
    with Loader(folder, batch_size=1, output="numpy") as loader:
        batches = iter(loader)
        next(batches)
        folder.unlink()
        os.kill(loader._server.process_id, signal.SIGKILL)
        with pytest.raises(StreamEnded, match="could not be started again") as raised:
            list(batches)
    assert "no such file" in str(raised.value) and "import dsload" not in str(raised.value)


def test_a_copy_of_a_loader_that_is_closed(dataset: str) -> None:
    with Loader(dataset, output="numpy", reconnect_seconds=0.1) as loader:
        copy = pickle.loads(pickle.dumps(loader))
        again = pickle.loads(pickle.dumps(copy))
    for other in (copy, again):
        with pytest.raises(StreamEnded, match="of which this one is a copy, and ends with it: make a Loader here"):
            next(iter(other))
        other.close()


def test_a_socket_is_no_text_to_build(dataset: str) -> None:
    with Loader(dataset, output="numpy") as loader, pytest.raises(TypeError, match=r"'tokenizer'.*option of its build"):
        Loader(loader._endpoint.path, tokenizer="gpt2")
