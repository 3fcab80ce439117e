"""dsload.show and batches in notebooks: what the program renders of what a trainer gets."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dsload

pytestmark = pytest.mark.server

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("show")
    (folder / "t.jinja").write_text(TEMPLATE)
    talks = [
        {
            "messages": [
                {"role": "user", "content": f"ask{i} <b>"},
                {"role": "assistant", "content": f"say{i} " * (i + 1)},
            ]
        }
        for i in range(6)
    ]
    (folder / "c.jsonl").write_text("".join(json.dumps(t) + "\n" for t in talks))
    dsload.build(
        str(folder / "c.jsonl"),
        out=str(folder / "d"),
        format="chat",
        chat_template=str(folder / "t.jinja"),
        progress="none",
    )
    return str(folder / "d")


def test_shows_what_carries_loss(chats: str) -> None:
    with dsload.Loader(chats, batch_size=3, shuffle="none", output="numpy") as loader:
        batch = next(iter(loader))
    shown = dsload.show(batch, chats)
    assert [f"⟦assistant: say{i}" in repr(shown) for i in range(6)] == [True] * 3 + [False] * 3
    assert "record 2 of" in repr(shown) and "<|endoftext|>" not in repr(shown), "padding is shown"
    html = shown._repr_html_()
    assert '<span class="loss">assistant: say1 say1' in html and "ask1 &lt;b&gt;" in html and "<b>" not in html
    assert batch._repr_html_() == html
    assert (
        dict(batch) == batch and type(dict(batch)) is dict and pickle.loads(pickle.dumps(batch)).keys() == batch.keys()
    )


def test_shows_as_many_rows_as_asked(chats: str) -> None:
    with dsload.Loader(chats, batch_size=6, shuffle="none", output="numpy") as loader:
        batch = next(iter(loader))
    assert "2 of 6 rows" in repr(dsload.show(batch, chats, rows=2)) and "say5" in repr(
        dsload.show(batch, chats, rows=None)
    )


@pytest.mark.parametrize("columns", [("input_ids",), ("input_ids", "labels"), ("input_ids", "labels", "example")])
def test_shows_some_columns(chats: str, columns: tuple[str, ...]) -> None:
    with dsload.Loader(chats, batch_size=2, shuffle="none", output="numpy", columns=columns) as loader:
        text = repr(dsload.show(next(iter(loader)), chats))
    assert (
        "say1 say1" in text
        and ("⟦" in text) == ("labels" in columns)
        and ("record 1" in text) == ("example" in columns)
    )


def test_shows_packed_rows(chats: str) -> None:
    with dsload.Loader(chats, batch_size=1, shuffle="none", output="numpy", pack="bfd", max_length=64) as loader:
        batch = next(iter(loader))
    documents = int(np.max(batch["segments"]))
    assert documents > 1 and f"document {documents} of {documents}" in repr(dsload.show(batch, chats))


def test_shows_prompt_and_target(tmp_path: Path) -> None:
    dsload.build(
        iter([{"q": "What?", "a": "This."}]),
        out=str(tmp_path / "d"),
        prompt="{{ q }}",
        target="{{ a }}",
        progress="none",
    )
    with dsload.Loader(str(tmp_path / "d"), output="numpy") as loader:
        assert "What?\n=>\n⟦This.⟧" in repr(dsload.show(next(iter(loader)), str(tmp_path / "d")))


@pytest.mark.parametrize("column", ["input_ids", "labels"])
def test_ids_of_another_tokenizer_are_refused(chats: str, column: str) -> None:
    batch = {"input_ids": [[1, 2]], "labels": [[3]]}
    assert "⟦" in repr(dsload.show(batch, chats))
    batch[column] = [[1, 50257]]
    with pytest.raises(dsload.DsloadError, match="ids below 50257, and the row has 50257: give the dataset"):
        dsload.show(batch, chats)


def test_a_batch_that_cannot_be_shown_is_a_dict(chats: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with dsload.Loader(chats, batch_size=2, output="numpy") as loader:
        batch: Any = next(iter(loader))
    monkeypatch.setenv("DSLOAD_BINARY", "/nosuch")
    assert batch._repr_html_() is None
    with pytest.raises(dsload.DsloadError, match="needs the dsload program"):
        dsload.show(batch, chats)


def test_names_what_is_wrong(chats: str, tmp_path: Path) -> None:
    with pytest.raises(dsload.DsloadError, match="val"):
        dsload.show({"input_ids": np.array([[1, 2]])}, chats, split="val")
    with pytest.raises(dsload.DsloadError, match="nosuch"):
        dsload.show({"input_ids": np.array([[1, 2]])}, tmp_path / "nosuch")
    with pytest.raises(KeyError):
        dsload.show({"labels": np.array([[1, 2]])}, chats)
    for alone in np.array([1, 2]), [1, 2]:
        with pytest.raises(ValueError, match="a row alone"):
            dsload.show({"input_ids": alone}, chats)
