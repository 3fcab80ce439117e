"""Runs Python blocks of pages, one JSON line each from stdin: {"page", "line", "folder", "code"}. A page has names of its own; modules are
imported once for all pages, since torch alone takes seconds. Answers {"error": ...} on a line of the given descriptor."""

import json
import os
import sys
import traceback

answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
page, names = None, {}
for line in sys.stdin:
    block = json.loads(line)
    if block["page"] != page:
        page, names = block["page"], {"__name__": "__main__"}
    os.chdir(block["folder"])
    error = None
    try:
        # Blank lines before the code make its line numbers those of the page.
        exec(compile("\n" * block["line"] + block["code"], page, "exec"), names)
    except BaseException:
        error = traceback.format_exc()
    sys.stdout.flush()
    answers.write(json.dumps({"error": error}) + "\n")
