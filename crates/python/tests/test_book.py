"""The pages about this module as their readers use them: every block of Python and every command, in an empty directory.

A block behind a paragraph that ends with a file's name and a colon is that file. A block `text` is what the block before
it prints; a line `…` stands for any number of lines. With UPDATE_EXPECTED=1 outputs without such a line are written into
the pages. A block that needs Dask is left out where Dask is missing; the nightly tests have it.
"""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ["book/python.md", "python.md", "cluster.md"]
GAP = "…"


def blocks(text):
    """Language, text, first and last line of what is between the fences, and the paragraph before each block."""
    before, begin, language, lines = "", None, None, text.splitlines()
    for at, line in enumerate(lines):
        if begin is not None and line == "```":
            yield language, "\n".join(lines[begin:at]), (begin, at), before
            begin = None
        elif begin is None and line.startswith("```"):
            language, begin = line[3:], at + 1
        elif begin is None and line:
            before = line


def fits(shown, printed):
    if not shown:
        return not printed
    if shown[0].strip() == GAP:
        return any(fits(shown[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and shown[0].rstrip() == printed[0].rstrip() and fits(shown[1:], printed[1:])


def test_a_gap_stands_for_any_number_of_lines():
    for shown, printed, wanted in [
        ("a b", "a b", True), ("a b", "a", False), ("a", "a b", False), ("… b", "a a b", True), ("a …", "a", True),
        ("a … d", "a b c", False),
    ]:
        assert fits(shown.split(), printed.split()) == wanted, (shown, printed)


def by_shell(command, folder):
    if command.startswith(("pip ", "crates/")):
        print(f"not run, as it builds or installs: {command}")
        return ""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    ran = subprocess.run(["sh", "-c", f"exec 2>&1\n{command}"], cwd=folder, env=environment, capture_output=True, text=True)
    return ran.stdout


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows(page, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEROSTAT", command)
    path = DOCS / page
    text = path.read_text()
    space, printed, wrong, changes = {"__name__": "page"}, None, [], []
    for language, code, (begin, end), before in blocks(text):
        file = re.search(r"`([^`]+\.py)`:$", before)
        if language == "python" and file:
            Path(file[1]).write_text(code + "\n")
        elif language == "python" and "distributed" in code and importlib.util.find_spec("distributed") is None:
            print(f"{page}:{begin}: not run, as Dask is missing")
            printed = None
        elif language == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile("\n" * begin + code, str(path), "exec"), space)
            printed = said.getvalue().splitlines()
        elif language == "sh":
            printed = by_shell(code, tmp_path).splitlines()
        elif language == "text" and printed is not None:
            if fits(code.splitlines(), printed):
                continue
            if os.environ.get("UPDATE_EXPECTED") and GAP not in code.split():
                changes.append((begin, end, printed))
                continue
            wrong.append(f"{page}:{begin}:\n--- the page has\n{code}\n--- printed\n" + "\n".join(printed))
    lines = text.splitlines()
    for begin, end, said in reversed(changes):
        lines[begin:end] = said
    if changes:
        path.write_text("\n".join(lines) + "\n")
    assert not wrong, "\n\n".join(wrong)
