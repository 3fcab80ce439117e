"""Runs every command and snippet of README, python/README and docs/, and checks the flags and names of those that cannot run. snippets.py
explains how a page marks its blocks."""

import ast
import importlib.util
import inspect
import json
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import inputs
import pytest
import snippets
from snippets import PAGES, ROOT

SECONDS = 600  # a command that takes longer hangs


def skip_without(where, error):
    """Skips the rest of a page if an optional package was not found."""
    missing = re.search(r"^ModuleNotFoundError: No module named '(\w+)", error, re.M)
    if missing and missing[1] in snippets.OPTIONAL:
        pytest.skip(f"{where}: could not import {missing[1]}")


class Page:
    """Runs the blocks of a page in its folder."""

    def __init__(self, folder, environment, interpreter):
        self.folder, self.environment, self.interpreter = folder, environment, interpreter
        self.server, self.made = None, set()
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="d"))  # paths of sockets are short
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]

    def close(self):
        self.stop()
        shutil.rmtree(self.short, ignore_errors=True)

    def stop(self):
        if self.server is not None:
            self.server.terminate()
            self.server.communicate()
            self.server = None

    def here(self, text):
        """A block with a socket and a port that belong to this test."""
        return text.replace("/tmp/", f"{self.short}/").replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")

    def run(self, block):
        for name in block.names("given"):
            self.give(name, block)
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(block.text)
        elif block.language == "sh":
            self.shell(block)
        elif block.language == "python":
            self.python(block.page, block.line, block.text)
        elif block.language == "go":
            self.go(block)
        elif block.language == "json":
            json.loads(block.text)

    def give(self, name, block):
        language, text = inputs.GIVEN[name]
        if language == "sh" and name not in self.made:
            self.bash(text, f"{block.where}, given {name}")
        elif language == "python":
            self.python(block.page, block.line, text)
        elif language == "function":
            text(self.folder)
        self.made.add(name)

    def shell(self, block):
        if "each alone" in block.marks:
            for command in snippets.commands(block.text):
                copy = shutil.copytree(self.folder, self.short / "alone")
                self.bash(self.here(command), block.where, copy)
                shutil.rmtree(copy)
            return
        waiting = []
        for command in snippets.commands(self.here(block.text)):
            if command.startswith("dsload serve") and not command.rstrip().endswith("&"):
                self.bash("\n".join(waiting), block.where)
                waiting = []
                self.serve(command, block.where)
            else:
                waiting.append(command)
        # As a whole, for loops and here documents.
        self.bash(self.here(block.text) if len(waiting) == len(snippets.commands(block.text)) else "\n".join(waiting), block.where)

    def bash(self, text, where, folder=None):
        if text.strip():
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder or self.folder, env=self.environment, capture_output=True,
                                  text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
            if done.returncode:
                skip_without(where, done.stderr)
            assert done.returncode == 0, f"{where}: exit {done.returncode} of\n{text}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"

    def serve(self, command, where):
        """Starts a server that keeps running while the next blocks run, until the page ends or starts another."""
        self.stop()
        self.server = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        said = self.server.stdout.readline()
        assert self.server.poll() is None and said, f"{where}: {command} ended: {said}{self.server.communicate()[0]}"

    def python(self, page, line, text):
        if error := self.interpreter.run(page, line, self.folder, self.here(text)):
            skip_without(f"{page}:{line}", error)
            pytest.fail(f"{page}:{line}: {error}", pytrace=False)

    def go(self, block):
        # A file outside the module is built within it if its name is given; it runs in the page's folder.
        source, program = self.short / "main.go", self.short / "program"
        source.write_text(block.text)
        subprocess.run(["go", "build", "-o", str(program), str(source)], cwd=ROOT, check=True, timeout=SECONDS)
        subprocess.run([str(program)], cwd=self.folder, check=True, capture_output=True, timeout=SECONDS)


@pytest.mark.parametrize("page", PAGES)
def test_page(page, folder, environment, interpreter):
    running = Page(folder, environment, interpreter)
    try:
        for block in snippets.blocks(page):
            if "not run" not in block.marks and (block.language not in ("text", "javascript") or "file" in block.marks):
                running.run(block)
    finally:
        running.close()


def test_marks_are_known():
    for page in PAGES:
        for block in snippets.blocks(page):
            assert block.language in snippets.LANGUAGES, f"{block.where}: language {block.language!r}"
            assert block.marks.get("not run", "compiles") in snippets.NOT_RUN, f"{block.where}: not run: {block.marks['not run']}"
            # Other tests run Node: tests_clients/feed/test_document.py.
            assert block.language != "javascript" or page == "docs/feed.md", block.where


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "shard/FORMAT.md"])
def test_one_width(page):
    """Lines have at most 100 columns, and cells of tables 200. A line that is one link or one tag may be longer."""
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("|"):
            assert max(len(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)) <= 200, f"{page}:{number}: make the cell a list or a sentence"
        else:
            assert len(line) <= 100 or re.fullmatch(r"\s*(<.*>|\[[^]]*\]: \S+|!?\[[^]]*\]\(\S+\))", line), f"{page}:{number}: {len(line)} columns"


@pytest.mark.parametrize("page", PAGES)
def test_flags_exist(page, flags):
    """Commands and flags of every shell block exist, also of those that are not run; so do flags in the text of a page, of some command."""
    for block in snippets.blocks(page):
        if block.language == "sh":
            for words, used in snippets.dsload_calls(block.text):
                command = tuple(words[: 2 if words and words[0] in ("tokenizer", "bench", "completion") else 1])
                unknown = [f for f in used if command and f not in flags(command)]
                assert not unknown, f"{block.where}: dsload {' '.join(command)} has no {unknown}"


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page):
    """Python blocks that are not run are Python. They take from dsload what it has, and call Loader and build with options that these have."""
    import dsload

    built = set(dsload.BuildOptions.__annotations__)
    options = {"Loader": built | set(inspect.signature(dsload.Loader.__init__).parameters), "build": built | set(inspect.signature(dsload.build).parameters)}
    for block in snippets.blocks(page):
        if block.language != "python" or "not run" not in block.marks:
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dsload":
                assert hasattr(dsload, node.attr) or importlib.util.find_spec(f"dsload.{node.attr}"), f"{block.where}: dsload.{node.attr}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in options:
                own = {"partitions", "retries", "stragglers"} if "dsload.ray" in block.text else set()
                unknown = {k.arg for k in node.keywords} - options[node.func.attr] - own - {None}
                assert not unknown, f"{block.where}: {node.func.attr} has no {unknown}"
