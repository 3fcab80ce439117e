"""The site of docs/ builds without a warning (a broken link, a page in no menu), and loads nothing from other servers."""

import os
import pathlib
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
    text = (site / "contents.html").read_text(encoding="utf-8")
    for page in ("index", "python", "shard-format", "contributing", "changelog"):
        assert (site / f"{page}.html").exists()
        assert f'href="{page}.html"' in text


def test_begins_with_readme(site):
    first = re.search(r"\n\n([^\n]+)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    assert first in (site / "index.html").read_text(encoding="utf-8")


def test_llms_txt_lists_every_page(site):
    """As Markdown, whose links lead to what is there."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# dsload\n\n> dsload turns text into batches")
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+\.md)\): \w.{20}", text, re.M)
    assert sorted(f"{pathlib.Path(p).stem}.html" for p in listed if "/" not in p) == sorted(p.name for p in site.glob("*.html") if p.name != "404.html")
    for page in listed:
        body = re.sub(r"^```.*?^```", "", (site / page).read_text(encoding="utf-8"), flags=re.M | re.S)
        assert body.startswith("# ") and "<!--" not in body, page
        for target in re.findall(r"\]\(([^)#\s]+)", body):
            assert re.match(r"[a-z][a-z0-9+.-]*:", target) or (site / page).parent.joinpath(target).exists(), f"{page}: {target}"
