"""The examples of help: their flags exist, and those that need no network, server, plan or other program run."""

import re
import shutil
import subprocess

import inputs
import pytest
import snippets

COMMANDS = ["build", "serve", "plan", "merge", "inspect", "view", "stats", "verify", "which", "export", "health", "bench", "doctor", "tokenizer encode",
            "tokenizer decode", "tokenizer inspect", "tokenizer train", "tokenizer digest", "tokenizer chat", "tokenizer add"]
RUN = ("build", "inspect", "view", "stats", "verify", "export", "doctor", "tokenizer train", "tokenizer inspect", "tokenizer add")
NOT_RUN = re.compile(r"(s3|gs|az|hf)://|--plan|jq ")  # a network, another machine's part, a program that may be missing
DATASETS = ["data", "dsload-data", "data-gpt2", "data-llama"]


def examples(dsload, *words):
    """The commands in the examples of a help page, without its line of usage."""
    text = subprocess.run([dsload, *words], capture_output=True, text=True, check=True).stdout
    return [line.strip() for line in re.findall(r"^  dsload .*", text, re.M) if not re.search(r"\[(flags|SOURCE)|\bCOMMAND\b", line)]


@pytest.fixture(scope="module")
def pages(dsload):
    """(page of help, its examples)"""
    topics = re.findall(r"^  ([a-z-]+) {2,}", subprocess.run([dsload, "help"], capture_output=True, text=True, check=True).stdout.split("Topics")[-1], re.M)
    assert {"formats", "sources", "memory"} <= set(topics)
    found = {c: examples(dsload, *c.split(), "--help") + examples(dsload, *c.split(), "-h") for c in COMMANDS}
    found |= {f"help {t}": examples(dsload, "help", t) for t in topics}
    assert sum(map(len, found.values())) > 60
    return found


def test_flags_of_examples(pages, flags):
    for page, commands in pages.items():
        for command in commands:
            for words, used in snippets.dsload_calls(command):
                name = tuple(words[: 2 if words and words[0] in ("tokenizer", "bench", "completion") else 1])
                assert not [f for f in used if f not in flags(name)], f"{page}: {command}"


def test_examples_run(pages, prepared, tmp_path, environment):
    datasets = tmp_path / "datasets"
    shutil.copytree(prepared, datasets)
    inputs.more(datasets)
    sources = shutil.copytree(datasets, tmp_path / "sources")
    for out in DATASETS:
        run(f"dsload build corpus.jsonl --out {out}", datasets, environment)
    ran = 0
    for command in sorted({c for commands in pages.values() for c in commands}):
        words = next(snippets.dsload_calls(command))[0]
        if not " ".join(words).startswith(RUN) or NOT_RUN.search(command):
            continue
        begin = sources if words[0] == "build" and "--append" not in command else datasets
        folder = shutil.copytree(begin, tmp_path / "example")
        run(command, folder, environment)
        shutil.rmtree(folder)
        ran += 1
    assert ran > 25, ran


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr[-2000:]}"
