"""The diff of `--patch` on files of every form: git and patch apply it, and every other byte stays."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from traindx_tools.code_reports.unified_diff import Proposed, proposed
from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity
from traindx_tools.source_files.texts import Text, text_of

CODE = "import torch\na = 1\nb = 2  # é\nc = 3\nd = 4\n"
MARK = b"\xef\xbb\xbf"
FORMS = {
    "plain": CODE.encode(),
    "returns": CODE.replace("\n", "\r\n").encode(),
    "mark": MARK + CODE.encode(),
    "mark and returns": MARK + CODE.replace("\n", "\r\n").encode(),
    "mixed": CODE.replace("\n", "\r\n", 2).encode(),
    "mixed the other way": CODE.encode().replace(b"c = 3\nd = 4\n", b"c = 3\r\nd = 4\r\n"),
    "no end": CODE.rstrip("\n").encode(),
    "no end, returns, mark": MARK + CODE.rstrip("\n").replace("\n", "\r\n").encode(),
    "latin": ("# -*- coding: latin-1 -*-\n" + CODE.split("\n", 1)[1]).encode("latin-1"),
    "one line": b"import torch",
    "one line with a mark": MARK + b"import torch",
}  # fmt: skip
TOOLS = {"git": ["git", "apply", "--whitespace=nowarn"],
         "patch": ["patch", "-p1", "-s", "--binary", "--no-backup-if-mismatch"]}


def finding(*patches: Patch) -> Finding:
    return Finding("C101", "t", Severity.HIGH, Bearing.CAUSE, "s", Location(file="a.py", line=1), "a", patch=patches)


def diff(path: str, raw: bytes, *patches: Patch) -> Proposed:
    text = text_of(path, raw)
    assert isinstance(text, Text)
    return proposed([finding(*patches)], {path: text}, ".")


def put(folder: Path, tool: str, path: str, raw: bytes, made: Proposed) -> bytes:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(raw)
    subprocess.run(TOOLS[tool], input=made.raw, cwd=folder, check=True, capture_output=True)
    return (folder / path).read_bytes()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["replace first", "before first", "remove first", "replace last", "behind last"])
def test_every_other_byte_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, form: str,
                                where: str) -> None:
    monkeypatch.chdir(tmp_path)
    raw = FORMS[form]
    lines = raw.removeprefix(MARK).decode("latin-1" if form == "latin" else "utf-8").splitlines()
    many, first, last = len(lines), lines[0], lines[-1]
    patch = {
        "replace first": Patch("a.py", 1, 1, first, "import jax", "s"),
        "before first": Patch("a.py", 1, 0, "", "import os\nimport io", "s"),
        "remove first": Patch("a.py", 1, 1, first, "", "s"),
        "replace last": Patch("a.py", many, many, last, "x = 5\ny = 6", "s"),
        "behind last": Patch("a.py", many + 1, many, "", "x = 5\ny = 6", "s"),
    }[where]
    if ("first" in where and form == "latin") or ("remove" in where and many == 1):
        return  # the line that names the encoding stays, and a file that ends up empty is none
    after = put(tmp_path, tool, "a.py", raw, diff("a.py", raw, patch))
    assert after.startswith(MARK) == raw.startswith(MARK)
    assert after.count(MARK) == raw.count(MARK)
    assert after.endswith(b"\n") == raw.endswith(b"\n")
    old, new = (b.removeprefix(MARK).splitlines(keepends=True) for b in (raw, after))
    written = [line.rstrip(b"\r\n").decode("utf-8", "replace") for line in new]
    if where == "replace first":
        assert (written[0], new[1:]) == ("import jax", old[1:])
    elif where == "before first":
        assert (written[:2], new[2:]) == (["import os", "import io"], old)
    elif where == "remove first":
        assert new == old[1:]
    elif where == "replace last":
        assert (written[-2:], new[:-2]) == (["x = 5", "y = 6"], old[:-1])
    else:
        assert written[-2:] == ["x = 5", "y = 6"]
        assert b"".join(new[:-2]).rstrip(b"\r\n") == b"".join(old).rstrip(b"\r\n")
    if len(old) > 1:
        ends = {line[len(line.rstrip(b"\r\n")) :] for line in old} - {b""}
        assert {line[len(line.rstrip(b"\r\n")) :] for line in new} - {b""} <= ends


@pytest.mark.parametrize("tool", TOOLS)
def test_a_line_ends_as_its_neighbours_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    monkeypatch.chdir(tmp_path)
    raw = b"a = 1\r\nb = 2\r\nc = 3\nd = 4\n"
    patches = (Patch("a.py", 2, 2, "b = 2", "b = 3", "s"), Patch("a.py", 5, 4, "", "e = 5", "s"))
    assert put(tmp_path, tool, "a.py", raw, diff("a.py", raw, *patches)) == b"a = 1\r\nb = 3\r\nc = 3\nd = 4\ne = 5\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_the_last_line_is_changed_and_something_put_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              tool: str) -> None:
    monkeypatch.chdir(tmp_path)
    patches = (Patch("a.py", 1, 1, "a = 1", "a = 2", "s"), Patch("a.py", 2, 1, "", "b = 3", "s"))
    assert put(tmp_path, tool, "a.py", b"a = 1", diff("a.py", b"a = 1", *patches)) == b"a = 2\nb = 3"


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("path", ["my code/a b.py", "naïve.py", 'say "hi".py', "back\\slash.py"])
def test_names_that_would_end_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    made = diff(path, b"a = 1\n", Patch(path, 1, 1, "a = 1", "a = 2", "s"))
    assert put(tmp_path, tool, path, b"a = 1\n", made) == b"a = 2\n"


def test_a_letter_that_the_encoding_lacks_leaves_the_change_out() -> None:
    raw = b"# -*- coding: latin-1 -*-\na = 1\n"
    made = diff("a.py", raw, Patch("a.py", 2, 2, "a = 1", "a = '\u6f22'", "s"))
    assert (made.raw, len(made.left_out)) == (b"", 1)
