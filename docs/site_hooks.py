"""Brings pages from outside docs/ into the site, and makes links between all of them those of the site.

In the checkout pages link one another by their paths, so that they can be read there and on a code host. mkdocs knows
only docs/.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Path in the checkout -> page of the site.
OUTSIDE = {
    "README.md": "readme.md",
    "python/README.md": "python.md",
    "shard/FORMAT.md": "shard-format.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "bench.md",
    "bench/feed/README.md": "bench-feed.md",
    "bench/fuzz_tokenizers/README.md": "bench-fuzz.md",
}
# Links to these are to a copy of the file.
COPIED = re.compile(r"examples/[^/]+\.ipynb")
LINK = re.compile(r"(\]\(|\]: |(?:src|srcset|href)=\")([^)\s\"]+)")


def on_files(files, config):
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    for path in sorted(ROOT.glob("examples/*.ipynb")):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, **_):
    origin = next((path for path, name in OUTSIDE.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")

    def of_site(match):
        target, _, anchor = match[2].partition("#")
        if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        if path in OUTSIDE:
            path = OUTSIDE[path]
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        elif not COPIED.fullmatch(path):
            path = target  # mkdocs warns of it
        if path != target:
            path = posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or ".")
        return match[1] + path + ("#" + anchor if anchor else "")

    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(of_site, part) for part in parts)


def on_post_page(output, **_):
    # The theme takes this small script from another server.
    return output.replace("https://unpkg.com/iframe-worker/shim", "search_from_files.js")


def on_post_template(output_content, **_):
    return on_post_page(output_content)
