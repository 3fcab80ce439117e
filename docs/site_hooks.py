"""Brings pages from outside docs/ into the site, and makes links between all of them those of the site.

In the checkout pages link one another by their paths, so that they can be read there and on a code host. mkdocs knows
only docs/. For programs that read documentation, the site has each page as Markdown too, and llms.txt, which lists them
(https://llmstxt.org).
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/dsload/dsload"  # where the files are that are not in the site

# Path in the checkout -> page of the site.
OUTSIDE = {
    "README.md": "index.md",
    "python/README.md": "python.md",
    "shard/FORMAT.md": "shard-format.md",
    "SECURITY.md": "reporting.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "bench.md",
    "bench/feed/README.md": "bench-feed.md",
    "bench/fuzz_tokenizers/README.md": "bench-fuzz.md",
}
# Links to these are to a copy of the file.
COPIED = re.compile(r"examples/[^/]+\.ipynb|CITATION\.cff")
# Marks of snippets for the tests, and other comments.
COMMENT = re.compile(r"^ *<!--.*?-->\n", re.M)
LINK = re.compile(r"(\]\(|\]: |(?:src|srcset|href)=\")([^)\s\"]+)")

PAGES = {}  # page of the site -> its Markdown, with the site's links


def on_files(files, config):
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    for path in [*sorted(ROOT.glob("examples/*.ipynb")), ROOT / "CITATION.cff"]:
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
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
            kind = "tree" if (ROOT / path).is_dir() else "blob" if (ROOT / path).exists() else None
            return f"{match[1]}{REPOSITORY}/{kind}/main/{path}" if kind else match[0]  # mkdocs warns of what is nowhere
        if path != target:
            path = posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or ".")
        return match[1] + path + ("#" + anchor if anchor else "")

    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    text = "".join(part if part.startswith("```") else LINK.sub(of_site, part) for part in parts)
    PAGES[page.file.src_uri] = COMMENT.sub("", text)
    return text


def first_paragraph(markdown):
    """What a page is about, in a line, without links and marks."""
    blocks = re.split(r"\n\s*\n", markdown)
    text = next((b for b in blocks if re.match(r"[A-Za-z*]|`[^`]", b)), "")
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", text).split())


def listed(item, config):
    """Lines of llms.txt for an item of the navigation: a page, or a section of several."""
    if item.is_section:
        return [f"\n## {item.title}\n", *(line for child in item.children for line in listed(child, config))]
    about = first_paragraph(PAGES[item.file.src_uri])
    return [f"- [{item.title}]({item.file.src_uri}): {about}"]


def on_nav(nav, config, files):
    config["extra"]["nav"] = nav


def on_post_build(config):
    site = pathlib.Path(config["site_dir"])
    for page, text in PAGES.items():
        (site / page).parent.mkdir(parents=True, exist_ok=True)
        (site / page).write_text(text, encoding="utf-8")
    lines = [line for item in config["extra"]["nav"].items for line in listed(item, config)]
    head = f"# {config['site_name']}\n\n> {first_paragraph(PAGES['index.md'])}\n"
    (site / "llms.txt").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def on_post_page(output, **_):
    # The theme takes this small script from another server.
    return output.replace("https://unpkg.com/iframe-worker/shim", "search_from_files.js")


def on_post_template(output_content, **_):
    return on_post_page(output_content)
