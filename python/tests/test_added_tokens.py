"""`dsload tokenizer add` gives what Hugging Face's tokenizers and transformers do."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import conftest
import pytest

from dsload._binary import find_binary

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

NEW = ["<|im_start|>", "<|im_end|>", "<w>"]
TEXT = "Hello  <|im_start|>user\nHi <w> there<w>'s 12345 déjà 漢字<|im_end|>  \n\tDON'T <w>\n"


def add(*args: str) -> dict[str, Any]:
    done = subprocess.run([str(find_binary()), "tokenizer", "add", *args, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


def added(t: Any) -> dict[int, tuple[Any, ...]]:
    tokens = t.get_added_tokens_decoder().items()
    return {i: (a.content, a.special, a.lstrip, a.rstrip, a.single_word, a.normalized) for i, a in tokens}


@pytest.mark.parametrize("flags", [(), ("lstrip",), ("rstrip", "single_word")])
@pytest.mark.parametrize("name", ["gpt2", "bert-uncased", "t5-small", "phi-3", "roberta"])
def test_files(name: str, flags: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    source = conftest.SHARED / "tokenizers" / name
    if not source.exists():
        pytest.skip("no reference data: set DSLOAD_SHARED")
    want = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    kinds = dict.fromkeys(flags, True)
    want.add_special_tokens([tokenizers.AddedToken(n, special=True, normalized=False, **kinds) for n in NEW])
    out = str(tmp_path / "out")
    result = add(*NEW, "--tokenizer", str(source), "--out", out, *(f"--{f.replace('_', '-')}" for f in flags))
    got = tokenizers.Tokenizer.from_file(out + "/tokenizer.json")
    assert got.get_vocab() == want.get_vocab() and added(got) == added(want)
    assert got.encode(TEXT).ids == want.encode(TEXT).ids
    assert got.decode(got.encode(TEXT).ids) == want.decode(want.encode(TEXT).ids)
    assert {t["token"]: t["id"] for t in result["tokens"]} == {n: want.token_to_id(n) for n in NEW}
    assert result["vocab_size"] == want.get_vocab_size()
    assert len(transformers.AutoTokenizer.from_pretrained(out)) == want.get_vocab_size()


@pytest.mark.parametrize("name", ["gpt2", "p50k", "cl100k", "o200k"])
def test_built_in(name: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out")
    result = add(*NEW, "--tokenizer", name, "--out", out)
    t = transformers.AutoTokenizer.from_pretrained(out)
    assert len(t) == result["vocab_size"] and t.eos_token == "<|endoftext|>"
    assert t.decode(t(TEXT)["input_ids"]) == TEXT
    plain = TEXT
    for token in NEW:
        plain = plain.replace(token, "")
    assert t.decode(t(TEXT)["input_ids"], skip_special_tokens=True) == plain
    command = [str(find_binary()), "tokenizer", "encode", "--json", "--tokenizer"]
    for tokenizer, text in ((out, TEXT), (name, TEXT.replace("<", "("))):
        done = subprocess.run(
            [*command, tokenizer], input=json.dumps({"text": text}).encode(), capture_output=True, check=True
        )
        assert json.loads(done.stdout)["ids"] == t(text)["input_ids"]
