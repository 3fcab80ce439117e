"""docs/schemas: what commands print with --json, and the manifest, are as their schemas say, and have no member that these do not describe."""

import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "docs/schemas").glob("*.json")}


@pytest.fixture(scope="module")
def outputs(dsload, tmp_path_factory):
    """{schema: what it is about} of datasets of several kinds."""
    folder = tmp_path_factory.mktemp("results")
    lines = [f"a line of text, {'and more ' * (i % 9)}number {i}" for i in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    pairs = [{"q": f"What is {i}?", "a": line, "extra": 1} for i, line in enumerate(lines)]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(p) + "\n" for p in pairs) + "{broken\n")
    found = {name: [] for name in SCHEMAS}

    def run(command, *words):
        done = subprocess.run([dsload, command, *words, "--json"], cwd=folder, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        found[command] += [json.loads(line) for line in done.stdout.splitlines()]

    text = ("text.txt", "--max-val-examples", "20", "--out", "text")
    run("build", *text)
    run("build", *text)
    run("build", "pairs.jsonl", "--prompt", "{{ q }}", "--target", "{{ a }}", "--on-bad-record", "skip", "--dedup", "near", "--out", "pairs")
    run("build", "text.txt", "pairs.jsonl", "--format", "text", "--eos", "--pack", "bfd", "--max-length", "64", "--max-tokens", "3000", "--out", "packed")
    for name in ("text", "pairs", "packed"):
        for command in ("inspect", "stats", "verify"):
            run(command, name)
        found["manifest"].append(json.loads((folder / name / "manifest.json").read_text()))
    run("survey", ".", "--limit", "1KiB")
    run("plan", "text.txt", "--partitions", "3", "--out", "plan.json")
    run("build", "--plan", "plan.json", "--partition", "0/3", "--out", "parts")
    run("export", "text", "--to", "jsonl,nanogpt", "--out", "exported")
    run("which", "text", "--row", "3")
    for name in ("text", "pairs", "packed"):
        run("view", name, "--grep", "number")
    run("view", "text", "--step", "0", "--batch-size", "4", "--pack", "bfd", "--max-length", "64")
    run("which", "packed", "--step", "1", "--batch-size", "2")
    shard = folder / "text" / found["manifest"][0]["splits"][0]["shards"][0]["name"]
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    run("verify", "text")
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_output_fits(name, outputs):
    jsonschema = pytest.importorskip("jsonschema")
    kind = jsonschema.validators.validator_for(SCHEMAS[name])
    kind.check_schema(SCHEMAS[name])
    strict = kind(closed(SCHEMAS[name]))
    assert outputs[name]
    for value in outputs[name]:
        strict.validate(value)
        for member in value:
            wrong = {**value, member: {"no": ["such"]} if not isinstance(value[member], dict) else 1}
            assert not strict.is_valid(wrong), member
    assert not strict.is_valid({}) and not strict.is_valid([outputs[name][0]])


def closed(schema):
    """The schema without room for members that it does not describe."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema and isinstance(schema["properties"], dict) else {}
    return {**{k: closed(v) for k, v in schema.items()}, **more}
