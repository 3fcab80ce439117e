"""Runs the notebooks of examples/ against this checkout, and checks that they are committed with what a run printed and drew, for those who look at them
before they install anything. To store them anew, run them from top to bottom and save."""

import json
import os
import re
import shutil

import pytest
from snippets import ROOT

NOTEBOOKS = {path.name: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}
# (modules that it imports, pictures that it draws, how it trains and how it trains here: its models learn as surely in fewer steps)
NEEDS = {
    "train_a_small_model.ipynb": (["torch", "matplotlib"], 3, {"STEPS = 128, 64, 200": "STEPS = 128, 64, 75", "logged() < 80": "logged() < 30"}),
    "flan_t5_recipes.ipynb": (["torch", "transformers", "matplotlib"], 1, {"None, 3000, 120,": "None, 1000, 40,"}),
    "chat_sft_with_trl.ipynb": (["torch", "transformers", "datasets", "trl", "matplotlib"], 1, {"num_train_epochs=15": "num_train_epochs=5"}),
}


@pytest.mark.parametrize("name", NEEDS)
def test_notebook_runs(name, environment, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    modules, pictures, shorter = NEEDS[name]
    for module in ["ipykernel", *modules]:
        pytest.importorskip(module)
    shutil.copy(NOTEBOOKS[name], tmp_path)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(tmp_path / name, 4)
    nbformat.validate(notebook)
    for long, short in {} if os.environ.get("DSLOAD_SOAK") else shorter.items():
        [cell] = [cell for cell in notebook.cells if long in cell.source]
        cell.source = cell.source.replace(long, short)
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**{k: v for k, v in environment.items() if k != "MPLBACKEND"}, "IPYTHONDIR": str(tmp_path / "ipython")})
    drawn = sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    assert drawn == pictures
    # A shell command that fails does not end a notebook.
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert not re.search(r"^dsload: |command not found", printed, re.M), printed


def test_every_notebook_is_run():
    assert set(NOTEBOOKS) == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_notebook_is_stored_with_outputs(name):
    text = NOTEBOOKS[name].read_text(encoding="utf-8")
    notebook = json.loads(text)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run it from top to bottom"
    outputs = [output for cell in code for output in cell["outputs"]]
    kinds = [output["output_type"] for output in outputs]
    assert "error" not in kinds and kinds.count("display_data") >= NEEDS[name][1]
    assert not [o for o in outputs if o.get("name") == "stderr" and "arning" in "".join(o["text"])], "remove warnings of this machine"
    assert not re.search(r"(?<![\w.])/(?:home|root|Users|work|tmp)/\w", json.dumps(outputs)), "a folder of this machine"
    sources = "".join("".join(cell["source"]) for cell in code)
    assert "preset(" in sources, "settings follow from the device"
    printed = "".join("".join(output.get("text", "")) for output in outputs)
    assert "before training" in printed and "after training" in printed, "the model writes before and after"
    links = re.findall(r"\]\(([^)#\s]+)", "".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"))
    assert links and not [link for link in links if not link.startswith("http") and not (ROOT / "examples" / link).exists()]
