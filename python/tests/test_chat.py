"""Conversations as transformers renders them: text, ids and masks of `dsload tokenizer chat`, on templates and
conversations that this test makes."""

from __future__ import annotations

import json
import pathlib
import random
import subprocess
from typing import Any

import pytest
import runs

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from dsload._binary import find_binary

pytestmark = pytest.mark.server

END = "<|im_end|>"
SPECIAL = ["<|im_start|>", END, "<|eot|>"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "description": 'Finds <b>things</b> & "more"',
            "parameters": {"zeta": {"default": None, "enum": [1, 2.5, 1e-7, 10**20]}, "größe": True, "alpha": {}},
        },
    }
]

CHATML = """{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

CALLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for t in tools %}{{ t | tojson }}{{ '\\n' }}{% endfor %}
    {{- tools | tojson(indent=2) ~ (tools | map(attribute='function') | map(attribute='name') | join(','))
      ~ '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
    {{- '<|im_start|>' + m.role }}
    {%- if m.tool_calls is defined and m.tool_calls %}
        {%- for c in m.tool_calls %}
            {%- set f = c.function if c.function is defined else c %}
            {{- '\\n' ~ f.name ~ '(' }}{% for k, v in f.arguments.items() %}{{ k }}={{ v if v is not none else 'null' }}
                {%- if not loop.last %}, {% endif %}{% endfor %}{{ ')' }}
        {%- endfor %}
    {%- endif %}
    {{- '\\n' + (m.content if m.content is string else '') + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant' }}{% endif %}"""

MARKED = """{%- macro turn(m) %}
    {{- '<|im_start|>' + m.role + '\\n' }}{{- m.content }}{{- '<|im_end|>\\n' }}
{%- endmacro %}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}{{- m.content | trim }}{{- '<|im_end|>' }}{%- endgeneration %}{{ '\\n' }}
    {%- else %}{{ turn(m) }}{% endif %}
{%- endfor %}"""

# The end of what the assistant says is text, whose last character may be several tokens.
BARE = """{%- for m in messages %}
    {%- if m.role == 'assistant' %}{{ 'A:' }}{% generation %}{{ ' ' ~ m.content }}{% endgeneration %}{{ '<|eot|>' }}
    {%- else %}{{ 'U:' ~ m.content ~ '\\n' }}{% endif %}
{%- endfor %}"""


def sentence(rnd: random.Random, n: int) -> str:
    words = [
        "plain",
        "größe",
        "naïve",
        "日本語",
        "😀",
        "e\u0301",
        "a_b",
        "x = 1;",
        "<b>",
        "&amp;",
        "it's",
        '"q"',
        "\\",
        "{{ x }}",
        "\t",
        "  ",
    ]
    return " ".join(rnd.choice(words) for _ in range(rnd.randint(1, n)))


def conversations(seed: int, n: int, tools: bool = False) -> list[dict[str, Any]]:
    rnd = random.Random(seed)
    out: list[dict[str, Any]] = []
    for i in range(n):
        m: list[dict[str, Any]] = []
        if i % 3 == 0:
            m.append({"role": "system", "content": sentence(rnd, 9)})
        for k in range(rnd.randint(1, 4)):
            m.append({"role": "user", "content": sentence(rnd, 30), "name": None})
            if tools and k == 0 and i % 2:
                call = {
                    "name": "find",
                    "arguments": {"zeta": sentence(rnd, 3), "alpha": 1.0, "none": None, "list": [1, True]},
                }
                m.append({"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": call}]})
                m.append({"role": "tool", "content": sentence(rnd, 5), "name": "find"})
            # A last character that a normalizer drops makes transformers mark everything after it: none is here.
            m.append({"role": "assistant", "content": sentence(rnd, 40) + rnd.choice([".", " ", "\n", "😀", "é"])})
        out.append({"messages": m, **({"tools": TOOLS} if tools and i % 2 else {})})
    return out


def folder(path: pathlib.Path, kind: str, template: str) -> pathlib.Path:
    """A small tokenizer of its own, of one of two families."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    path.mkdir()
    rnd = random.Random(1)
    corpus = [sentence(rnd, 60) for _ in range(200)] + ["system user assistant tool find Finds things A: U:"] * 20
    if kind == "bytes":
        tok = Tokenizer(models.BPE())
        tok.normalizer = normalizers.NFC()
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tok.train_from_iterator(
            corpus, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
        )
    else:
        tok = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        some = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
        tok.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=700, special_tokens=some, show_progress=False))
        vocabulary = json.loads(tok.to_str())
        vocabulary["added_tokens"] = vocabulary["added_tokens"][:1]
        tok = Tokenizer.from_str(json.dumps(vocabulary))
    tok.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    tok.save(str(path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "clean_up_tokenization_spaces": False}
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
    return path


def chat(path: pathlib.Path, records: list[dict[str, Any]], *flags: str) -> list[dict[str, Any]]:
    lines = "".join(json.dumps(r, ensure_ascii=i % 2 == 0) + "\n" for i, r in enumerate(records))
    command = [str(find_binary()), "tokenizer", "chat", "--tokenizer", str(path), *flags]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8", timeout=runs.HANGS)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def load(path: pathlib.Path) -> Any:
    import transformers

    return transformers.PreTrainedTokenizerFast.from_pretrained(str(path))


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("name", ["chatml", "calls"])
def test_turns_by_prefixes(tmp_path: pathlib.Path, kind: str, name: str) -> None:
    template = {"chatml": CHATML, "calls": CALLS}[name]
    records = conversations(1, 40, tools=name == "calls")
    path = folder(tmp_path / "tok", kind, template)
    reference = load(path)
    trained = 0
    for record, got in zip(records, chat(path, records), strict=True):
        messages, options = record["messages"], {"tools": record["tools"]} if "tools" in record else {}
        text = reference.apply_chat_template(messages, tokenize=False, **options)
        encoded = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        assert got["text"] == text
        assert got["ids"] == encoded["input_ids"]
        said = []  # of each turn: after the generation prompt, to the token that ends it
        for i, m in enumerate(messages):
            if m["role"] == "assistant":
                before = reference.apply_chat_template(
                    messages[:i], tokenize=False, add_generation_prompt=True, **options
                )
                after = reference.apply_chat_template(messages[: i + 1], tokenize=False, **options)
                said.append((len(before), len(after.rstrip("\n"))))
        want = [any(a < end and start < b and start < end for a, b in said) for start, end in encoded["offset_mapping"]]
        assert [bool(m) for m in got["mask"]] == want
        trained += sum(want)
    assert trained > 1000


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("name", ["marked", "bare"])
def test_turns_by_generation_blocks(tmp_path: pathlib.Path, kind: str, name: str) -> None:
    template = {"marked": MARKED, "bare": BARE}[name]
    records = conversations(2, 40)
    path = folder(tmp_path / "tok", kind, template)
    reference = load(path)
    for record, got in zip(records, chat(path, records), strict=True):
        want = reference.apply_chat_template(record["messages"], return_dict=True, return_assistant_tokens_mask=True)
        assert got["text"] == reference.apply_chat_template(record["messages"], tokenize=False)
        assert got["ids"] == list(want["input_ids"])
        assert got["mask"] == list(want["assistant_masks"])


def test_template_files_and_names(tmp_path: pathlib.Path) -> None:
    path = folder(tmp_path / "tok", "bytes", "{{ 'the older one' }}")
    (path / "chat_template.jinja").write_bytes(CHATML.replace("\n", "\r\n").encode())
    more = path / "additional_chat_templates"
    more.mkdir()
    (more / "tool_use.jinja").write_text("{{ tools | length }} tools\n" + CALLS)
    (more / "other.jinja").write_text("{{ messages | length }} messages" + CHATML)
    reference = load(path)
    records = conversations(3, 10, tools=True)
    records = [r for r in records if "tools" in r or all(m["content"] for m in r["messages"])]
    for record, got in zip(records, chat(path, records), strict=True):
        options = {"tools": record["tools"]} if "tools" in record else {}
        assert got["text"] == reference.apply_chat_template(record["messages"], tokenize=False, **options)
    plain = [r for r in records if "tools" not in r]
    for record, got in zip(plain, chat(path, plain, "--chat-template", "other"), strict=True):
        want = reference.apply_chat_template(record["messages"], tokenize=False, chat_template="other")
        assert got["text"] == want


def test_expressions_as_jinja2(tmp_path: pathlib.Path) -> None:
    """Random expressions over random values print what jinja2 prints."""
    rnd = random.Random(4)
    values = [
        "m",
        "m.content",
        "n",
        "2.5",
        "'aXb'",
        "[3, 1.0, none, 'é', true]",
        "m.list",
        "{'a': 1, 'b': [2.0]}",
        "(1, 2)",
        "7",
        "true",
    ]
    filters = [
        "string",
        "length",
        "upper",
        "trim",
        "tojson",
        "list",
        "first",
        "last",
        "title",
        "join('-')",
        "replace('a', 'b')",
        "default('d')",
    ]
    filters += [
        "tojson(indent=1)",
        "int",
        "float",
        "sort",
        "reverse|list",
        "unique|list",
        "map('string')|list",
        "capitalize",
        "indent",
        "wordcount",
    ]
    operators = ["~", "==", "!=", "and", "or", "in", "+", "*", "<"]

    def expression(depth: int) -> str:
        kind = rnd.randrange(5) if depth else 0
        if kind == 0:
            return rnd.choice(values)
        if kind == 1:
            return f"({expression(depth - 1)})|{rnd.choice(filters)}"
        if kind == 2:
            return f"({expression(depth - 1)}) {rnd.choice(operators)} ({expression(depth - 1)})"
        if kind == 3:  # of what can be indexed: constants are folded otherwise
            value, index = rnd.choice(["m", "m.content", "m.list"]), rnd.choice(["0", "-1", "1:", "::-1", ":2", "'a'"])
            return f"({value})[{index}]"
        return f"(({expression(depth - 1)}) if ({expression(depth - 1)}) else ({expression(depth - 1)}))"

    from transformers.utils import chat_template_utils

    compile_template = getattr(chat_template_utils, "_compile_jinja_template", None)
    if compile_template is None:
        pytest.skip("this transformers compiles templates elsewhere")
    message = {"role": "user", "content": " Some text, größer\n", "list": [1, "b", None], "n": 10**19}
    good = []
    while len(good) < 300:  # those that Python renders; addresses of objects differ from run to run
        one = expression(3)
        try:
            text = compile_template("{% set m = messages[0] %}{% set n = m.n %}{{ " + one + " }}").render(
                messages=[dict(message)]
            )
        except Exception:
            continue
        if " at 0x" not in text:
            good.append((one, text))
    template = "{% set m = messages[0] %}{% set n = m.n %}" + "".join("{{ " + one + " }}\x1f" for one, _ in good)
    path = folder(tmp_path / "tok", "bytes", template)
    got = chat(path, [{"messages": [message]}], "--train-on", "all")[0]["text"].split("\x1f")
    assert list(zip((g[0] for g in good), got, strict=False)) == good
