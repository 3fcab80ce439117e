"""Runs the notebooks of examples/ against this checkout, and checks that they are committed without what a run leaves in them."""

import json
import re
import shutil

import pytest
from snippets import ROOT

NOTEBOOKS = {path.name: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}
# (modules that it imports, pictures that it draws)
NEEDS = {
    "train_a_small_model.ipynb": (["torch", "matplotlib"], 3),
    "chat_sft_with_trl.ipynb": (["torch", "transformers", "datasets", "trl", "matplotlib"], 1),
}


@pytest.mark.parametrize("name", NEEDS)
def test_notebook_runs(name, environment, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    modules, pictures = NEEDS[name]
    for module in ["ipykernel", *modules]:
        pytest.importorskip(module)
    shutil.copy(NOTEBOOKS[name], tmp_path)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(tmp_path / name, 4)
    nbformat.validate(notebook)
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
def test_notebook_is_clean(name):
    text = NOTEBOOKS[name].read_text(encoding="utf-8")
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None, "clear the outputs before you commit"
    links = re.findall(r"\]\(([^)#\s]+)", text)
    assert links and not [link for link in links if not link.startswith("http") and not (ROOT / "examples" / link).exists()]
