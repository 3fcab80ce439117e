"""The site of docs/ builds without a warning (a broken link, a page in no menu), and loads nothing from other servers."""

import os
import re
import subprocess
import sys

import pytest
from snippets import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)], cwd=ROOT, capture_output=True,
                          text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_nothing_from_other_servers(site):
    pages = list(site.glob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|source|iframe)\b[^>]*(?:src|srcset|href)=.?((?:https?:)?//[^\"'\s>]+)", page.read_text(encoding="utf-8"))
        assert not loaded, f"{page.name}: {loaded}"


def test_pages_from_outside_docs_are_there(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    for page in ("readme", "python", "shard-format", "contributing", "changelog"):
        assert (site / f"{page}.html").exists()
        assert f'href="{page}.html"' in text
