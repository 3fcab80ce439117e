"""The package's folders import one another in one direction, also where an import stands within a function."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HERE

from dsload._binary import find_binary

PACKAGE = HERE.parent / "dsload"
SMALL = {"_binary", "_for_models", "_options", "_query", "_secrets", "_show", "_words", "errors"}

# folder → the folders and public modules from which it imports, besides itself and the small modules of the root
IMPORTS: dict[str, set[str]] = {
    "_order": set(),
    "_read": {"_order"},
    "_feed": {"_read"},
    "_torch": {"_feed"},
    "_building": set(),
    "_stats": {"_read"},
    "_loader": {"_order", "_read", "_feed", "_torch", "_building"},
    "integrations": {"_feed", "_loader", "_torch"},
    "memory": {""},  # the root, for the Loader that a recorded script uses
    "examples": {""},  # what programs of users import
}


def imported(file: Path) -> set[str]:
    """The first part of each name below dsload that a file imports; "" for dsload itself."""
    here = ("dsload", *file.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            name = ".".join([*base, *((node.module,) if node.module else ())])
            names = [f"{name}.{a.name}" for a in node.names] if name == "dsload" and node.level else [name]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {(*n.split("."), "")[1] for n in names if n.split(".")[0] == "dsload"}
    return found


def test_every_folder_is_listed() -> None:
    assert {f.parent.name for f in PACKAGE.rglob("__init__.py")} - {"dsload"} == set(IMPORTS)


@pytest.mark.parametrize("folder", IMPORTS)
def test_imports_of(folder: str) -> None:
    found = {f.name: imported(f) - SMALL - {folder} for f in (PACKAGE / folder).glob("*.py")}
    assert {name: more for name, names in found.items() if (more := names - IMPORTS[folder])} == {}
    assert set().union(*found.values()) == IMPORTS[folder], "the table allows more than is imported"


def test_small_modules_import_no_folder() -> None:
    # Columns of packed rows are computed by the arithmetic of packing, which needs numpy, so that import waits for its
    # use.
    assert {m: more for m in SMALL if (more := imported(PACKAGE / f"{m}.py") - SMALL)} == {"_for_models": {"_order"}}


@pytest.mark.server
def test_the_package_runs_as_the_program() -> None:
    env = {**os.environ, "DSLOAD_BINARY": str(find_binary())}
    command = [sys.executable, "-m", "dsload", "version"]
    run = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    assert run.stdout.startswith("dsload ")
