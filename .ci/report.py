"""Reads what `make test` printed, and prints what passed in one line and each failure so that it explains itself.

    .ci/report.py LOG [NEEDLESS]

LOG holds the output of the Go tests (run with -json), of fuzzing and of pytest (run with -rfEs). For each test that failed this
prints its name, its first and last lines, and the command that runs it alone. A test that was skipped for a reason that matches the
regular expression NEEDLESS fails too: it should have run here. The exit status is 1 if anything failed.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST_LINES = 10
LAST_LINES = 30


@dataclasses.dataclass
class Failure:
    name: str
    output: list[str]
    command: str


class GoTests:
    """The events of one `go test -json`; flags are those that a single test needs too."""

    def __init__(self, flags: str = "") -> None:
        self.output: dict[tuple[str, str], list[str]] = {}
        self.results: dict[tuple[str, str], str] = {}
        self.flags = flags

    def add(self, event: dict[str, str]) -> None:
        key = event.get("Package") or event.get("ImportPath", ""), event.get("Test", "")
        if event["Action"] in ("output", "build-output"):
            self.output.setdefault(key, []).append(event["Output"])
        elif event["Action"] in ("pass", "fail", "skip", "build-fail"):
            self.results[key] = event["Action"]

    def passed(self) -> int:
        return sum(result == "pass" and bool(test) for (_, test), result in self.results.items())

    def lines(self, key: tuple[str, str]) -> list[str]:
        return "".join(self.output.get(key, [])).splitlines()

    def failures(self) -> list[Failure]:
        """Of a test and its subtests the innermost that failed, after what the tests around it said themselves; a package
        where none of its tests did: it does not compile, it panicked, or it ran out of time."""
        failed = [key for key, result in self.results.items() if result in ("fail", "build-fail")]
        found = []
        for package, test in failed:
            if any(p == package and t != test and t.startswith(test and test + "/") for p, t in failed):
                continue
            folder = folder_of(package)
            command = f"go test{self.flags} {import_path(package)}"
            parts = test.split("/") if test else []
            if test:
                command += " -run '" + "/".join(f"^{re.escape(part)}$" for part in parts) + "'"
            around = ["/".join(parts[:n]) for n in range(1, len(parts))]
            output = [line for outer in around for line in self.lines((package, outer)) if not line.lstrip().startswith("---")]
            found.append(Failure(f"{folder} {test}".strip(), output + self.lines((package, test)), command))
        return found

    def skips(self) -> list[str]:
        """A line for each skipped test, with its reason."""
        skipped = (key for key, result in self.results.items() if result == "skip" and key[1])
        return [f"{folder_of(key[0])} {key[1]}: {' '.join(x.strip() for x in self.lines(key) if '.go:' in x)}" for key in skipped]


def import_path(package: str) -> str:
    """What go test takes for a package of any of the project's modules; a test binary's build is reported as "package [package.test]"."""
    return package.split(" ")[0].removesuffix(".test").removesuffix("_test")


def folder_of(package: str) -> str:
    match = re.search(r"^module\s+(\S+)", (ROOT / "go.mod").read_text(), re.M)
    module = match[1] if match else ""
    return "./" + import_path(package).removeprefix(module).lstrip("/")


def pytest_failures(lines: list[str], rootdir: str, python: str) -> list[Failure]:
    """The failures and errors of one run of pytest, from its short summary and the sections above it."""
    sections: dict[str, list[str]] = {}
    section: list[str] | None = None
    for line in lines:
        if header := re.match(r"_{3,} (?:ERROR at \w+ of )?(.+?) _{3,}$", line):
            section = sections.setdefault(header[1], [])
        elif line.startswith("===="):
            section = None
        elif section is not None:
            section.append(line)
    found = []
    for line in lines:
        if match := re.match(r"(?:FAILED|ERROR) (\S+?\.py)(?:::(.+?))?(?: - .*)?$", line):
            path, test = match[1], match[2] or ""
            node = f"{path}::{test}" if test else path
            output = sections.get(test.replace("::", "."), [line])
            cd = f"cd {rootdir} && " if rootdir else ""
            found.append(Failure(f"{rootdir + '/' if rootdir else ''}{node}", output, f"{cd}DSLOAD={ROOT}/bin/dsload {python} -m pytest '{node}'"))
    return found


def read(log: list[str]) -> tuple[list[GoTests], list[Failure], list[str], list[str]]:
    """The runs of Go tests, the failures of everything else, the skips of pytest, and the closing lines of its runs."""
    go, failures, skips, closing = [GoTests()], [], [], []
    plain: list[str] = []  # since the last command of make
    rootdir, python = "", "python3"

    def flush() -> None:
        failures.extend(pytest_failures(plain, rootdir, python))
        plain.clear()

    for line in log:
        if line.startswith('{"'):
            try:
                go[-1].add(json.loads(line))
                continue
            except (ValueError, KeyError):
                pass
        if command := re.match(r"(?:cd (\S+) && )?.*?(\S+) -m pytest\b", line):
            flush()
            rootdir, python = command[1] or "", command[2]
        elif re.match(r"(\w+=\S+ )*\S*go test .*-json", line):
            go.append(GoTests("".join(f" {flag}" for flag in ("-race", "-short") if f" {flag} " in line)))
        elif line.startswith("SKIPPED"):
            skips.append(line)
        elif re.match(r"=* ?\d+ (passed|failed|skipped).* in ", line):
            closing.append(line.strip("= "))
        elif re.match(r"make(\[\d+\])?: \*\*\*", line):
            closing.append(line)
        plain.append(line)
    last = plain[:]
    flush()
    if not failures and not any(run.failures() for run in go) and any("***" in line for line in closing):
        failures.append(Failure("make", last, "make test"))
    return go, failures, skips, closing


def shortened(output: list[str]) -> list[str]:
    """The first and last lines of what a test printed: the first error says more than those that follow from it."""
    lines = [line for line in output if not line.startswith(("=== RUN", "=== CONT", "=== PAUSE", "=== NAME"))]
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    return lines if left_out <= 0 else [*lines[:FIRST_LINES], f"... {left_out} lines ...", *lines[-LAST_LINES:]]


def main(log: str, needless: str = "") -> int:
    go, failures, skips, closing = read(pathlib.Path(log).read_text(errors="replace").splitlines())
    failures = [failure for run in go for failure in run.failures()] + failures
    skips = [skip for run in go for skip in run.skips()] + skips
    for line in closing:
        print(line)
    for line in skips:
        if needless and re.search(needless, line.split(": ", 1)[-1], re.I):  # the reason, not the name
            failures.append(Failure(line, [], "install what it needs, or give it its data"))
    print(f"go: {sum(run.passed() for run in go)} passed, {len(failures)} failed, {len(skips)} skipped")
    for failure in failures:
        print(f"\nFAILED {failure.name}")
        for line in shortened(failure.output):
            print("    " + line)
        print(f"  alone: {failure.command}")
    if failures:
        print("\nfailed: " + ", ".join(failure.name for failure in failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
