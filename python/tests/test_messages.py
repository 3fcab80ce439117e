"""What errors say: the name that was probably meant, and options as Python has them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import dsload
from dsload import Loader
from dsload._words import did_you_mean, in_python


@pytest.mark.parametrize(
    ("said", "want"),
    [
        (
            "dsload: build: unknown flag: --maxlength; did you mean --max-length? See 'dsload build -h'",
            "unknown option: maxlength; did you mean max_length? See help(dsload.build)",
        ),
        ("dsload: build: unknown flag: --foo; see 'dsload build -h'", "unknown option: foo; see help(dsload.build)"),
        (
            "dsload: --memory 1MiB is too small: they need 38MiB; raise --memory, or lower --workers",
            "memory 1MiB is too small: they need 38MiB; raise memory, or lower workers",
        ),
        (
            "take it with --text-field body, or leave such records out with --on-bad-record skip",
            "take it with text_field='body', or leave such records out with on_bad_record='skip'",
        ),
        ("take it with --text-field 'a b', or --format=chat.", "take it with text_field='a b', or format='chat'."),
        (
            "--overflow chunk: --pack bfd truncates; leave --overflow out",
            "overflow='chunk': pack bfd truncates; leave overflow out",
        ),
        (
            "it is damaged; dsload verify data --json names the files; or pass --overwrite",
            "it is damaged; dsload verify data --json names the files; or pass overwrite",
        ),
        (
            "run 'dsload verify x --json' or set --on-bad-record skip",
            "run 'dsload verify x --json' or set on_bad_record='skip'",
        ),
        (
            "no examples: documents longer than --max-length dropped: 3",
            "no examples: documents longer than max_length dropped: 3",
        ),
        ("a file--name and a -- b are no flags", "a file--name and a -- b are no flags"),
    ],
)
def test_options_by_their_names_in_python(said: str, want: str) -> None:
    assert in_python(said) == want


def test_the_nearest_name() -> None:
    names = ("batch_size", "max_tokens", "shuffle", None)
    assert did_you_mean("batchsize", names) == "; did you mean 'batch_size'?"
    assert did_you_mean("Max-Tokens", names) == "; did you mean 'max_tokens'?"
    assert did_you_mean("zzz", names) == did_you_mean(5, names) == ""


@pytest.mark.server
@pytest.mark.parametrize("in_process", [False, True])
def test_wrong_names_and_values_of_a_loader(dataset: str, text_lines: pathlib.Path, in_process: bool) -> None:
    def refused(kind: Any, match: str, source: Any = dataset, **options: Any) -> None:
        with pytest.raises(kind, match=match):
            Loader(source, in_process=in_process, **options)

    refused(TypeError, "'batchsize'.*'batch_size'", batchsize=3)
    refused(TypeError, "'batchsize'.*'batch_size'", text_lines, batchsize=3, tokenizer="gpt2")
    refused(TypeError, "'batch_sise'.*'batch_size'", {"a": dataset}, batch_sise=3)
    refused(TypeError, "'drop_last' .tail='drop' leaves out", drop_last=True)
    refused(dsload.BuildError, "unknown option: num_workers; a Loader needs no workers", text_lines, num_workers=2)
    refused(dsload.BuildError, "unknown option: tokenzier; did you mean tokenizer", text_lines, tokenzier="gpt2")
    refused(ValueError, "shuffle: 'ful'.*'full'", shuffle="ful")
    refused(ValueError, "output: 'tensr'.*'torch'|output", output="tensr")
    refused(ValueError, "columns: .*'input_idz'.*did you mean 'input_ids'", columns=("input_idz",))
    for kind in (ValueError, dsload.FeedError):
        refused(kind, "split: .*'vall'.*did you mean 'val'", split="vall")
        refused(kind, "mix: no dataset .a. is served", mix={"a": 1})
    refused(ValueError, "mix: 3 is neither", mix=3)
    refused(ValueError, "columns: 3 is not a list of names", columns=3)
    refused(ValueError, "columns: it names none", columns=())
    for rows in (3, b"data", iter(["text"]), {"a": [dataset]}, [3], [None]):
        refused(TypeError, r"^dataset: a.* is not the name .*dsload.build.iter|^dataset: None is", rows)
    refused(NotADirectoryError, "a file of the dataset .*; load that folder", f"{dataset}/manifest.json")
    refused(TypeError, "a list names text to build, and .* is a dataset: pass its name", [dataset])


@pytest.mark.server
def test_wrong_names_and_sources_of_a_build(tmp_path: pathlib.Path, text_lines: pathlib.Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(dsload.BuildError, match="did you mean max_length") as raised:
        dsload.build(text_lines, out=out, maxlength=3)
    assert "--" not in str(raised.value) and raised.value.exit_code == 2
    for texts in (["hello world text"], "hello world text"):
        with pytest.raises(dsload.BuildError, match=r"no such file.*iter\(texts\)"):
            dsload.build(texts, out=out)
    with pytest.raises(dsload.BuildError, match="no such file") as raised:
        dsload.build(tmp_path / "missing.txt", out=out)
    assert "iter(" not in str(raised.value)
    with pytest.raises(TypeError, match="an int; items are"):
        dsload.build(iter([1]), out=out)
    with pytest.raises(TypeError, match="a value is an object"):
        dsload.build(iter([{"text": object()}]), out=out)


class Table:
    """What iterates over the names of its columns, as pandas' DataFrame does."""

    columns = ("text",)

    def __iter__(self) -> Any:
        return iter(self.columns)

    def to_dict(self) -> Any:
        return {"text": ["a", "b"]}


@pytest.mark.server
def test_values_of_a_build_that_are_none(tmp_path: pathlib.Path, text_lines: pathlib.Path) -> None:
    def refused(kind: Any, match: str, source: Any = text_lines, **options: Any) -> None:
        with pytest.raises(kind, match=match):
            dsload.build(source, **{"out": tmp_path / "out", **options})

    refused(TypeError, "source: a Table is a table, which iterates over its columns", Table())
    refused(TypeError, r"^tokenizer: an object is not a string.*save_pretrained", tokenizer=object())
    refused(TypeError, "^where: a dict is not a string", where={"a": 1})
    refused(TypeError, "^include: a set is not a string", include={"*.txt"})
    for name in ("max_length", "tokenizer", "val"):
        refused(TypeError, f"^{name}: it takes a value, which True is not", **{name: True})
    for value in (None, False, np.False_):
        refused(dsload.BuildError, "^unknown option: add_special_tokens", add_special_tokens=value)
    refused(dsload.BuildError, "^read the items: no documents", iter([]))
    refused(dsload.BuildError, "unknown option: batch_size.*an option of dsload.Loader", batch_size=8)
    refused(ValueError, "does not expand the ~ of '~/data'", out="~/data")
    with pytest.raises(FileNotFoundError, match=r"expanduser\('~/data'\)"):
        Loader("~/data")
    with pytest.raises(FileNotFoundError, match="the address of a server begins with http://"):
        Loader("localhost:8080")
    (tmp_path / "dataset_info.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"save_to_disk, whose text is not tokenized yet; .*dsload.build"):
        Loader(tmp_path)
    with pytest.raises(TypeError, match=r"^tokenizer: an object is not"):
        Loader(text_lines, tokenizer=object())  # type: ignore[arg-type]


@pytest.mark.server
def test_false_is_no_end_token(tmp_path: pathlib.Path) -> None:
    for value, rows in ((None, 2), (False, 0), (True, 2), (np.True_, 2)):
        out = tmp_path / str(value)
        dsload.build(iter(["one", "two"]), out=out, pack="bfd", max_length=8, eos=value, overwrite=np.True_)
        assert (dsload.RandomAccess(out)[0]["input_ids"] == 50256).sum() == rows, value
