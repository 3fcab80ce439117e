"""Reads the code of README and docs/: fenced blocks with what the HTML comments above them say.

A block is run as it stands, in the order of its page, in a folder with small inputs (inputs.py). Its language says how:
`sh` by bash, `python` in one interpreter a page, `go` by go run; `json` is parsed, and `text` is output or grammar. A
comment on a line of its own above a block changes that:

    <!-- not run: needs a bucket -->     not run; commands, flags and names in it must exist
    <!-- given: data, model -->          made before, see inputs.GIVEN
    <!-- file: train.py -->              saved under this name
    <!-- each alone -->                  every command in a fresh copy of the folder

Where a block imports a package of OPTIONAL that is not installed, the rest of its page is skipped with a message.
"""

import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "python/README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
LANGUAGES = {"sh", "python", "go", "json", "text", "javascript"}
OPTIONAL = {"torch", "transformers", "datasets", "polars", "matplotlib", "trl", "accelerate"}
NOT_RUN = {"needs a bucket", "needs a cluster", "needs a GPU", "needs eight GPUs", "needs Slurm", "needs Ray", "needs the network",
           "installs", "compiles", "measures", "tests", "an outline"}


@dataclasses.dataclass
class Block:
    """One fenced block. marks: what the comments above it say, by their first words."""

    page: str
    line: int
    language: str
    text: str
    marks: dict

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    def names(self, mark):
        return [name.strip() for name in self.marks.get(mark, "").split(",") if name.strip()]


def blocks(page):
    """The blocks of a page, in order."""
    found, marks, body, above = [], {}, [], ""
    fence, language, begun = None, "", 0
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        opening = re.match(r"( *)(`{3,})(\w*)$", line)
        if fence is not None:
            if line.strip() == fence:
                found.append(Block(page, begun, language or "sh", "\n".join(body) + "\n", marks))
                fence, marks = None, {}
            else:
                body.append(line)
        elif opening:
            fence, language, begun, body = opening[2], opening[3], number, []
        elif mark := re.fullmatch(r"<!-- (not run|given|file|each alone)(?:: (.*))? -->", line.strip()):
            marks[mark[1]] = mark[2] or ""
        elif line.strip():
            assert not marks, f"{page}:{number}: a mark that stands above no block"
            assert above or not re.match(r" {4}|\t", line), f"{page}:{number}: indented code; use a fence with its language"
        above = line.strip()
    assert fence is None, f"{page}:{begun}: the fence has no end"
    return found


def commands(text):
    """The commands of a shell block: lines, with continued and quoted ones joined."""
    found, open_line = [], ""
    for line in text.splitlines():
        open_line += line
        if line.endswith("\\") or unbalanced(open_line):
            open_line = open_line[:-1] + " " if line.endswith("\\") else open_line + "\n"
            continue
        if open_line.strip() and not open_line.lstrip().startswith("#"):
            found.append(open_line)
        open_line = ""
    return found


def unbalanced(line):
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def dsload_calls(text):
    """(words of the command, flags) of each call of dsload in a shell block."""
    for command in commands(text):
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&")
        lexer.whitespace_split = True
        call = []
        for word in [*lexer, ";"]:
            if word.strip("|;&"):
                call.append(word)
                continue
            while call and "=" in call[0] and not call[0].startswith("-"):  # variables before the command
                call.pop(0)
            if call and call[0].split("/")[-1] == "dsload":
                yield call[1:3], [w.split("=")[0] for w in call if w.startswith("--")]
            call = []
