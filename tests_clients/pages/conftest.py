"""A real browser, driven by playwright-core, and pages for it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from reference_data import need
from waiting import HANGS

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODE = pathlib.Path(__file__).parent / "node"


class Browser:
    """Chromium, driven by JSON lines over a pipe."""

    def __init__(self, chromium, modules):
        self.process = subprocess.Popen(["node", str(NODE / "browser.cjs"), chromium], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "NODE_PATH": str(modules)})
        self.pages = 0
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, "the browser has ended"
        reply = json.loads(line)
        assert "error" not in reply, reply["error"]
        return reply.get("value")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def open(self, url, **options):
        self.pages += 1
        return Page(self, self.pages, url, options)

    def close(self):
        self.process.stdin.close()
        self.process.wait(HANGS)


class Page:
    """An open page. It is closed at the end of a with statement."""

    def __init__(self, browser, number, url, options):
        self.browser, self.number, self.url = browser, number, url
        self.response = self.ask("open", url=url, **options)

    def ask(self, op, **request):
        return self.browser.ask(op=op, page=self.number, **request)

    def run(self, script):
        return self.ask("eval", script=script)

    def wait(self, script, **options):
        return self.ask("wait", script=script, **options)

    def text(self):
        return self.run("document.body.innerText")

    def clean(self, ended=False):
        """Checks that the console has no error, no other origin got a request, and the data brought no script or image. A browser asks for the icon when
        it likes, also of a server that has ended."""
        seen = self.ask("seen")
        icon = " " + self.url + "page/icon.svg"
        assert [e for e in seen["errors"] if not (ended and "net::ERR_" in e and e.endswith(icon))] == []
        assert seen["dialogs"] == []
        origin = "/".join(self.url.split("/")[:3]) + "/"
        assert [r for r in seen["requests"] if not r.startswith(origin)] == []
        assert self.run("document.querySelectorAll('img,[onerror],[onload],script:not([src]),iframe').length") == 0

    def accessible(self):
        """Checks that axe-core finds nothing serious or critical."""
        assert [v for v in self.ask("axe") if v["impact"] in ("serious", "critical")] == []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("close")


class NoBrowser(Exception):
    """What drives the browser cannot be installed."""


def modules():
    """Installs what drives the browser where it is missing; the program of the browser, and the folder of what drives it."""
    target = pathlib.Path(os.environ.get("DSLOAD_NODE_PACKAGES") or ROOT / ".venv-node") / "pages"
    if not (target / "node_modules/playwright-core").is_dir():
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(NODE / "package.json", target)
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=target, capture_output=True, text=True)
        if done.returncode:
            raise NoBrowser("playwright-core cannot be installed: " + done.stderr[-200:])
    return shutil.which("chromium"), target / "node_modules"


@pytest.fixture(scope="session")
def browser():
    for program in ("node", "npm", "chromium"):
        need(program)
    try:
        browser = Browser(*modules())
    except NoBrowser as missing:
        pytest.skip(str(missing))
    yield browser
    browser.close()


@pytest.fixture()
def start():
    """Starts processes; those that still run at the end are ended."""
    processes = []

    def run(*command, **options):
        process = subprocess.Popen([str(c) for c in command], **options)
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                with contextlib.suppress(BrokenPipeError):  # what was still to be written to a process that ended
                    pipe.close()
