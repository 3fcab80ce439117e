"""Takes the pictures of docs/pages.md: python tests_clients/pages/screenshots.py DSLOAD DOCS (make screenshots)."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
from conftest import Browser, modules  # noqa: E402
from PIL import Image  # noqa: E402

SECONDS = 40  # of history in the charts
READ = "import sys, time, urllib.request\nbody = urllib.request.urlopen(sys.argv[1])\nwhile body.read(16384): time.sleep(0.01)"


def take(browser, url, path, height):
    """Takes a picture of a page, in few colours, so that it is small."""
    with browser.open(url, height=height) as page:
        time.sleep(SECONDS)
        page.ask("shot", path=str(path), full=False)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
    print(path, path.stat().st_size, "bytes")


def of_build(browser, dsload, docs, folder):
    build = subprocess.Popen([dsload, "build", "synth://wikitext?seed=1", "--max-bytes", "40GB", "--max-examples", "0", "--http", "127.0.0.1:0",
                              "--progress", "none", "--out", "wikitext"], cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        url = next(found[0] for line in build.stderr if (found := re.search(r"http://[\w.:]+/", line)))
        take(browser, url, docs / "pages-build.png", 1140)
    finally:
        build.terminate()
        build.wait()


def of_serve(browser, dsload, docs, folder):
    subprocess.run([dsload, "build", "synth://wikitext?seed=1", "--max-examples", "60000", "--out", "wikitext-103", "--progress", "none"], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([dsload, "serve", "wikitext-103", "--listen", "127.0.0.1:0", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True)
    clients = []
    try:
        url = json.loads(server.stdout.readline())["url"] + "/"
        for rank in range(4):
            query = f"{url}v1/batches?batch_size=32&bucket=2048&epochs=0&world=4&rank={rank}"
            clients.append(subprocess.Popen([sys.executable, "-c", READ, query]))
        take(browser, url, docs / "pages-serve.png", 980)
    finally:
        for process in [*clients, server]:
            process.kill()
            process.wait()


def main(dsload, docs):
    browser = Browser(*modules())
    with tempfile.TemporaryDirectory() as folder:
        for page in (of_build, of_serve):
            (pathlib.Path(folder) / page.__name__).mkdir()
            page(browser, pathlib.Path(dsload).resolve(), pathlib.Path(docs), pathlib.Path(folder) / page.__name__)
    browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
