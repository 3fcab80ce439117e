"""The live pages in a real browser: what they show, that they update, and that everyone can read them."""

import http.server
import json
import pathlib
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from reference_data import build
from waiting import HANGS

HOSTILE = "<img src=x onerror=alert(1)>"
WORDS = "a of the sea tree stone bread light water corner house green kitchen butter seven lemon salt".split()
CLIENT = """
import sys, time, urllib.request
body = urllib.request.urlopen(sys.argv[1])
while body.read(4096): time.sleep(0.02)
"""
SIZES = [(390, 844), (1280, 800), (1920, 1080)]
CHARTS = """[...document.querySelectorAll('canvas')].filter(c => c.getBoundingClientRect().height > 50).map(c => {
  const pixels = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer), colours = new Map();
  for (const p of pixels) colours.set(p, (colours.get(p) || 0) + 1);
  return {drawn: pixels.length - Math.max(...colours.values()), figures: [...(c.written || [])].filter(t => /\\d/.test(t)).length};
})"""


def lines(n, seed=1):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(min(420, 1 + int(rng.expovariate(1 / 60))))) for _ in range(n)]


@pytest.fixture(scope="module")
def kitchen(dsload, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    text = folder / "kitchen.txt"
    text.write_text("".join(line + "\n" for line in lines(12345)))
    return build(dsload, folder / "kitchen-corpus", text, "--format", "text")


@pytest.fixture()
def serve(dsload, start):
    """Serves datasets over TCP; the address."""

    def run(*args, at="127.0.0.1:0", cwd=None):
        run.process = start(dsload, "serve", *args, "--listen", at, "--json", stdout=subprocess.PIPE, text=True, cwd=cwd)
        return json.loads(run.process.stdout.readline())["url"] + "/"

    return run


def reads(start, url, query):
    return start(sys.executable, "-c", CLIENT, f"{url}v1/batches?{query}")


def looks(page):
    """Checks that the page fits windows of every size, and that axe-core finds nothing serious at any."""
    for width, height in SIZES:
        page.ask("size", width=width, height=height)
        page.wait(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width}")
        page.accessible()


def test_page_of_a_server(browser, serve, start, kitchen):
    url = serve(kitchen)
    clients = [reads(start, url, f"batch_size=16&epochs=0&seed=3&world=8&rank={rank}") for rank in (5, 7)]
    with browser.open(url) as page:
        policy = page.response["headers"]["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        page.wait("document.querySelectorAll('#clients tr').length === 2 && /busy with its step|waits for data/.test(document.querySelector('#clients').innerText)")
        text = page.text()
        for want in ("kitchen-corpus", "gpt2", "12,345 rows", "5 of 8", "7 of 8", "tokens/s", "Padding efficiency", "Lengths of batches", "2 trainers"):
            assert want in text
        assert "2 reading" in page.run("document.title")
        page.wait(f"{CHARTS}.filter(c => c.drawn > 500 && c.figures >= 4).length === 6")
        first = page.run("document.getElementById('tokens-sub').textContent")
        page.wait(f"document.getElementById('tokens-sub').textContent !== {json.dumps(first)}")
        looks(page)
        clients[1].kill()
        page.wait("![...document.querySelectorAll('#clients th')].some(h => h.innerText.includes('7 of 8'))")
        assert "5 of 8" in page.text()
        page.clean()


@pytest.mark.parametrize("which", ["build", "serve"])
def test_pages_before_the_first_event_show_no_empty_cards(browser, which):
    static = pathlib.Path(__file__).resolve().parents[2] / "internal/page/static"
    over = threading.Event()

    class Page(http.server.SimpleHTTPRequestHandler):
        """The page's files, and a stream of events that says nothing."""

        def translate_path(self, path):
            return str(static / (f"{which}.html" if path == "/" else path.removeprefix("/page/")))

        def do_GET(self):
            if self.path == "/v1/live":
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                over.wait()
            else:
                super().do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser.open(f"http://127.0.0.1:{server.server_port}/") as page:
            page.wait("typeof past === 'object' && document.querySelectorAll('.plot').length > 2")
            assert "The first figures are on their way." in page.text()
            cards = "[...document.querySelectorAll('section, .bar')].filter(s => s.checkVisibility({visibilityProperty: true})).length"
            assert page.run(cards) == 0 and "No clients are reading" not in page.text()
    finally:
        over.set()
        server.shutdown()


def test_page_of_a_server_that_goes_and_comes_back(browser, serve, kitchen):
    url = serve(kitchen)
    with browser.open(url) as page:
        page.wait("/No clients are reading/.test(document.body.innerText) && /12,345 rows/.test(document.body.innerText)")
        assert "curl" in page.text() and page.run("document.getElementById('gone').hidden")
        looks(page)
        serve.process.kill()
        serve.process.wait()
        page.wait("/No answer since/.test(document.body.innerText)")
        assert "12,345 rows" in page.text()
        serve(kitchen, at=url.split("/")[2])
        page.wait("document.getElementById('gone').hidden")


def test_keys_read_a_chart_out(browser, serve, start, kitchen):
    url = serve(kitchen)
    reads(start, url, "batch_size=4&epochs=0")
    with browser.open(url, reducedMotion="reduce") as page:
        page.wait("past.times.length > 4 && document.querySelector('#chart-memory canvas')")
        assert page.run("document.querySelectorAll('.plot[tabindex=\"0\"][role=img]').length") == 6
        page.run("document.querySelector('#chart-memory .plot').focus()")
        page.ask("press", key="Home")
        at = "document.querySelector('#chart-memory .plot').getAttribute('aria-label')"
        page.wait(f"/, at \\d\\d:\\d\\d:\\d\\d/.test({at})")
        first = page.run(at)
        assert "cap 48 MiB" in first
        page.wait("/at \\d/.test(document.querySelector('#chart-padding .keys').innerText)")  # all charts show the same moment
        page.ask("press", key="ArrowRight")
        page.wait(f"{at} !== {json.dumps(first)}")
        page.run("document.querySelector('#chart-memory details').open = true")
        page.wait("document.querySelectorAll('#chart-memory tbody tr').length > 3")


def test_names_stay_text(browser, serve, start, dsload, tmp_path):
    text = tmp_path / "h.txt"
    text.write_text("".join(f"{HOSTILE} {line}\n" for line in lines(300)))
    build(dsload, tmp_path / HOSTILE, text, "--format", "text")
    url = serve("./" + HOSTILE, cwd=tmp_path)
    reads(start, url, "batch_size=4&epochs=0&seed=1")
    with browser.open(url) as page:
        shown = HOSTILE.replace("=", "_")  # which a parameter mix could not name
        page.wait(f"document.body.innerText.includes({json.dumps(shown)}) && document.querySelectorAll('#clients tr').length === 1")
        page.clean()


def test_page_needs_the_token(browser, serve, kitchen, tmp_path):
    token = tmp_path / "token"
    token.write_text("correct-horse\n")
    token.chmod(0o600)
    url = serve(kitchen, "--token-file", token)
    for path in ("", "page/live.js", "v1/live", "v1/dataset"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url + path)
    with browser.open(url, headers={"Authorization": "Bearer correct-horse"}) as page:
        page.wait("/kitchen-corpus/.test(document.body.innerText)")
        page.clean()


def slowly(process, bad):
    """Feeds a build JSON lines, each bad-th no JSON, until it takes no more."""

    def feed():
        try:
            for i in range(1, 10**7):
                record = json.dumps({"text": f"{HOSTILE} line {i}"}) if i % bad else '{"text": ' + HOSTILE
                process.stdin.write(record.encode() + b"\n")
                if i % 500 == 0:
                    process.stdin.flush()
                    time.sleep(0.02)
        except (OSError, ValueError):
            pass

    threading.Thread(target=feed, daemon=True).start()


def page_of(process):
    """The address of a build's page, which is the first thing it says."""
    said, url = process.stderr.readline().decode().rstrip("\n").split(": ", 1)
    assert said == "live page"
    return url


def test_page_of_a_build(browser, start, dsload, tmp_path):
    process = start(dsload, "build", "-", "--format", "jsonl", "--on-bad-record", "skip", "--out", tmp_path / HOSTILE, "--progress", "none", "--memory", "128MiB",
                    "--http", "127.0.0.1:0", "--max-examples", "1000000", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    url = page_of(process)
    slowly(process, 97)
    with browser.open(url) as page:
        assert "unsafe" not in page.response["headers"]["content-security-policy"]
        page.wait(f"{CHARTS}.filter(c => c.drawn > 300 && c.figures >= 4).length === 3")
        page.wait("/\\d+ (s|min|h) left/.test(document.querySelector('h1').innerText) && document.querySelectorAll('#rejects-rows tr').length > 0")
        text = page.text()
        for want in ("of 1,000,000", "128 MiB", "gpt2", HOSTILE, "malformed JSON", "continues at row", "tokens/s", "busy"):
            assert want in text
        first = page.run("document.querySelector('h1').innerText")
        drawn = page.run("past.times.length")
        page.wait(f"document.querySelector('h1').innerText !== {json.dumps(first)} && past.times.length > {drawn + 1}")
        looks(page)
        page.clean()
        process.terminate()
        page.wait("/Resumable: the same command continues at row/.test(document.querySelector('h1').innerText)")
        assert process.wait(HANGS) == 5
        assert page.run("document.getElementById('gone').hidden")
        page.accessible()


def test_page_of_a_build_that_ends(browser, start, dsload, tmp_path):
    process = start(dsload, "build", "-", "--format", "text", "--out", tmp_path / "done", "--progress", "none", "--http", "127.0.0.1:0",
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    url = page_of(process)
    process.stdin.write(b"one line\n" * 1000)
    with browser.open(url, scheme="dark") as page:
        page.wait("/Looking at the sources/.test(document.body.innerText)")
        process.stdin.close()
        process.stdin = None
        page.wait("/^Done in/.test(document.querySelector('h1').innerText)")
        assert "1,000 rows" in page.text() and "stopped: the sources ended" in page.text()
        assert process.wait(HANGS) == 0
        page.clean(ended=True)


def test_page_of_a_build_that_fails(browser, start, dsload, tmp_path):
    process = start(dsload, "build", "-", "--format", "jsonl", "--out", tmp_path / "bad", "--progress", "none", "--http", "127.0.0.1:0",
                    stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    url = page_of(process)
    process.stdin.write(b'{"text": "fine"}\n')
    with browser.open(url) as page:
        page.wait("/Looking at the sources/.test(document.body.innerText)")
        process.stdin.write(b'{"text": ' + HOSTILE.encode() + b"\n")
        process.stdin.close()
        process.stdin = None
        page.wait("/^Failed: .*row 2/.test(document.querySelector('h1').innerText)")
        assert process.wait(HANGS) == 3
        page.clean(ended=True)


RECORD = "".join(json.dumps(line) + "\n" for line in [
    {"type": "start", "device": HOSTILE, "device_total": 8 << 30},
    *({"type": "snapshot", "step": step, "phase": phase, "allocated": (step + k) << 28, "peak": (step + k + 1) << 28, "reserved": 7 << 30}
      for step in range(1, 9) for k, phase in enumerate(("forward", "backward"))),
    {"type": "oom", "step": 9, "phase": "backward", "message": HOSTILE, "requested": 3 << 30},
])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_files(browser, dsload, kitchen, tmp_path, scheme):
    """The report of a dataset, of two side by side, and the page of a memory record, without a server."""
    (tmp_path / "record.jsonl").write_text(RECORD)
    for command in (["stats", kitchen, "--html", "one.html"], ["stats", kitchen, kitchen, "--html", "two.html"], ["doctor", "record.jsonl", "--html", "record.html"]):
        done = subprocess.run([dsload, *map(str, command)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with browser.open((tmp_path / command[-1]).as_uri(), scheme=scheme) as page:
            looks(page)
            assert page.ask("seen")["errors"] == []


def test_screenshots_are_small():
    """The pictures of docs/pages.md exist and are small."""
    docs = pathlib.Path(__file__).resolve().parents[2] / "docs"
    shown = [part.split(")")[0] for part in (docs / "pages.md").read_text().split("](")[1:] if part.split(")")[0].endswith((".png", ".webp"))]
    assert len(shown) >= 2
    for name in shown:
        assert 2000 < (docs / name).stat().st_size <= 100 * 1024
