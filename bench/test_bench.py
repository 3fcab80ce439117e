"""The parts of the harness and of the gate that decide: what counts as a failure, what a page says, what text is made."""

from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "gate")]

import environment  # noqa: E402
import gate  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
import plots  # noqa: E402
import text  # noqa: E402


def spread(value: float) -> dict[str, float]:
    return {"median": value, "least": value * 0.9, "most": value * 1.1}


def test_text_is_the_same_everywhere() -> None:
    made = "\n".join(text.documents(100_000, seed=5))
    assert 100_000 <= len(made.encode()) < 200_000
    assert hashlib.sha256(made.encode()).hexdigest() == hashlib.sha256("\n".join(text.documents(100_000, seed=5)).encode()).hexdigest()
    # Numbers of the gate are of this text: who changes it counts anew.
    script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import text; sys.stdout.buffer.write('\\n'.join(text.documents(100_000, seed=5)).encode())"
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env={"PYTHONHASHSEED": "7"}).stdout == made.encode()
    assert not any("\n" in document for document in text.documents(50_000))


def test_torch_that_is_there_is_kept() -> None:
    pytest.importorskip("torch")
    assert environment.said(sys.executable, *environment.LIGHT_TORCH) == ""


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_made_tokenizers_are_read(kind: str, tmp_path: pathlib.Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    t = tokenizers.Tokenizer.from_str(json.dumps(text.tokenizer(kind)))
    line = next(text.documents(1000))
    assert len(t.encode(line).ids) > len(line) / 20


def test_gate_notices_both_directions() -> None:
    known = {"a": {"instructions": 1000}, "b": {"instructions": 1000}, "gone": {"instructions": 1}}
    lines = gate.compare(known, {"a": {"instructions": 1029}, "b": {"instructions": 960}, "new": {"instructions": 5}})
    assert [line.split(":")[0] for line in lines] == ["gone", "b", "new"]
    assert gate.compare(known, {name: {"instructions": f["instructions"]} for name, f in known.items()}) == []


def test_gate_takes_the_least() -> None:
    runs = iter([1100, 1050, 1020, 999])
    assert gate.least(lambda: next(runs), 2, 1000, 0.03) == 1020, "it stops at the first that is near"
    runs = iter([1100, 1050, 1070, 1060, 1090, 1080])
    assert gate.least(lambda: next(runs), 2, 1000, 0.03) == 1050
    assert gate.least(lambda: 5, 3, None, 0.03) == 5


def test_gate_has_a_number_for_each_workload() -> None:
    known = json.loads(gate.NUMBERS.read_text())["workloads"]
    assert list(known) == list(gate.WORKLOADS)
    assert all(set(figures) == gate.figures_of(name) for name, figures in known.items())


def test_measure() -> None:
    burn = "import json, time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\nprint('noise'); print(json.dumps({'x': 3}))"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}], check=True)"
    result = measure.run([sys.executable, "-c", child])
    assert result["x"] == 3 and result["cpu_s"] >= 0.2 and result["peak_bytes"] > 1e6
    with pytest.raises(measure.Failed, match="took more than 0 CPU-seconds"):
        measure.run([sys.executable, "-c", "while True: pass"], limit_s=0.2)
    with pytest.raises(measure.Failed, match="why it failed"):
        measure.run([sys.executable, "-c", "raise SystemExit('first\\nwhy it failed')"])


def test_the_reason_is_the_error_that_is_named() -> None:
    said = "Traceback\n  File 'x', line 3\nRuntimeError: only BPE\n\nLocation:\n    src/load.rs:241:24\n"
    assert measure.reason(said) == "RuntimeError: only BPE"
    assert measure.reason("first\nlast\n\n") == "last" and measure.reason("") == ""


def test_summary_is_against_the_best() -> None:
    tools = {"dsload": {"cold": spread(30), "peak_bytes": spread(4e7)}, "a": {"cold": spread(20), "peak_bytes": spread(2e7)}, "b": {"cold": spread(10)}, "c": {"missing": "x"}}
    rows = page.against_best({"gpt2": tools, "alone": {"dsload": tools["dsload"]}}, [("cold", "MB/s", True, 1), ("peak_bytes", "peak MB", False, 1e6)])
    assert rows[-3:] == ["| gpt2 | 1.5 (a) | 0.5 (a) |", "| alone |  |  |", ""]


def test_page_says_who_wins_and_who_is_missing(tmp_path: pathlib.Path) -> None:
    tools = {"dsload": {"cpu_s": spread(2.0), "peak_bytes": spread(4e7)}, "fast": {"cpu_s": spread(1.0), "peak_bytes": spread(9e7), "version": "3.1"},
             "absent": {"missing": "cannot be installed: no wheel"}}  # fmt: skip
    work = {"work": "builders", "does": "Builds.", "date": "2026-11-23", "commit": "abc", "quick": True, "rounds": 2, "peers": {},
            "machine": {"processor": "a <chip>", "cores": 2, "load": 1.5}, "tables": {"2 MB": tools}}  # fmt: skip
    (tmp_path / "builders.json").write_text(json.dumps(work))
    page.write(tmp_path)
    said = (tmp_path / "index.md").read_text()
    assert "**fast** is better than dsload in CPU-seconds." in said
    assert "dsload leads in peak MB, 2.2 times ahead of fast." in said
    assert "Not measured: absent (cannot be installed: no wheel)." in said and "The quick form" in said
    assert "| fast 3.1 | 1 (0.9 to 1.1) | 90 (81 to 99) |" in said
    assert all(len(line) <= 100 for line in said.splitlines() if not line.startswith(("|", "!")))
    assert list(tmp_path.glob("*.svg"))


def test_committed_page_is_that_of_its_json(tmp_path: pathlib.Path) -> None:
    folder = HERE.parent / "docs/benchmarks"
    for path in folder.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    page.write(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_plots_are_xml() -> None:
    for made in (plots.bars("a < b", {"dsload": 3.0, "<peer>": 0.0}), plots.lines([("x & y", {"1": 1.0}), ("z", {"1": 0.0, "2": 5.0})]), plots.bars("none", {})):
        assert xml.etree.ElementTree.fromstring(made).tag.endswith("svg")
        assert "prefers-color-scheme: dark" in made


def test_runs_resume_bit_by_bit() -> None:
    program = HERE.parent / "bin" / "dsload"
    if not program.exists():
        pytest.skip("no dsload binary: make build")
    done = subprocess.run([sys.executable, HERE / "bitwise_resume.py", "--quick"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count(" equal (1)") == 30 and "DIFFERS" not in done.stdout, done.stdout + done.stderr
