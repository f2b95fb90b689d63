"""One cell of a notebook as Python with as many lines: IPython's own forms rewritten, what is no Python left out.

A cell that parses is taken as it is: `%` and `!` within brackets or strings are Python there. In any other cell the
lines at which a statement begins are looked at, as IPython does it: shell commands, magics and questions about objects
become `pass`, code behind `%time` and its like stays code, and what a command gives becomes a value that nobody knows.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_OTHER_LANGUAGES = frozenset({
    "bash", "sh", "cmd", "script", "system", "sx", "perl", "ruby", "html", "HTML", "javascript", "js", "latex", "svg",
    "markdown", "sql", "bigquery", "R", "cython", "julia", "writefile", "file", "pypy", "powershell", "css", "mermaid",
    "dot", "ai"})  # fmt: skip
"""Cell magics whose body is no Python, even where it happens to parse as such."""
_RUNS_CODE = frozenset({"time", "timeit", "prun", "memit", "mprun", "lprun", "capture", "debug", "snakeviz", "heat",
                        "scalene", "pyinstrument"})  # fmt: skip
"""Magics that run the Python behind their name."""
_OPTION = re.compile(r"\s*-(?:[nrpslTDfm]\s*\S+|\w+)(?=\s)")
_CELL_MAGIC = re.compile(r"\s*%%(\S+)(.*)")
_PYTHON_FILE = re.compile(r"\s.*\.py\s*$")
_MAGIC = re.compile(r"%{1,2}(\w+)\s*(.*)")
_GIVEN = re.compile(r"(\s*)([A-Za-z_][\w.,\s\[\]'\"]*?)\s*=\s*(!|%)\s*(.*)")
_PROMPT = re.compile(r"(\s*)(?:>>>|\.\.\.)(?: |$)")
_PIECE = re.compile(r"""("{3}|'{3})|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|(\#.*)|([(\[{])|([)\]}])""")


@dataclass(frozen=True)
class Cell:
    """The code of a cell, and why it was left out ("" where it was not); its lines are then empty."""

    code: str
    left_out: str = ""


def python_of(source: str) -> Cell:
    """The Python of a cell's source, line for line."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    if why_not(text) is None:
        return Cell(text)
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
    magic = _CELL_MAGIC.match(lines[first])
    if magic is not None:
        name = magic[1]
        writes_python = name in ("writefile", "file") and _PYTHON_FILE.match(magic[2])
        if name.startswith("!") or (name in _OTHER_LANGUAGES and not writes_python):
            return _nothing(lines, f"%%{name}")
        lines[first] = "pass  #" + lines[first]
    if _PROMPT.match(lines[first]):
        lines = [_PROMPT.sub(r"\1", line, count=1) for line in lines]
    code = "\n".join(_rewritten(_undented(lines, first)))
    why = why_not(code)
    if why is None:
        return Cell(code)
    return _nothing(lines, f"%%{magic[1]}" if magic is not None and magic[1] not in _RUNS_CODE else why)


def why_not(code: str) -> str | None:
    """Why code does not parse; None where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return f"{error.msg} in its line {error.lineno}"
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting beyond the parser's stack
        return f"{type(error).__name__}: {str(error)[:80]}"
    return None


def _nothing(lines: list[str], why: str) -> Cell:
    return Cell("\n" * (len(lines) - 1), why)


def _undented(lines: list[str], first: int) -> list[str]:
    """Without the white space that the first line of code begins with: IPython takes it off too."""
    pad = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    return [line.removeprefix(pad) for line in lines] if pad else lines


def _rewritten(lines: list[str]) -> list[str]:
    found: list[str] = []
    depth, quote, goes_on, of_command = 0, "", False, False
    for line in lines:
        if of_command:
            found.append("#" + line)
            of_command = line.endswith("\\")
            continue
        begins = not depth and not quote and not goes_on
        code, was_command = _statement(line) if begins else (line, False)
        found.append(code)
        if was_command:
            of_command = line.endswith("\\")
        else:
            depth, quote, goes_on = _state(code, depth, quote)
    return found


def _statement(line: str) -> tuple[str, bool]:
    """A line at which a statement begins, as Python, and whether it was a command, which only a backslash continues."""
    body = line.lstrip()
    pad = line[: len(line) - len(body)]
    if body.startswith("%") and (code := _code_of_magic(body)):
        return pad + code, False
    if body.startswith(("%", "!", "?", ",", ";", "/")) or _asks(line):
        return f"{pad}pass  #{body}", True
    given = _GIVEN.fullmatch(line) if "!" in line or "%" in line else None
    if given is None:
        return line, False
    if given[3] == "%" and (code := _code_of_magic("%" + given[4])):
        return f"{given[1]}{given[2]} = {code}", False
    return f"{given[1]}{given[2]} = get_ipython()  #{given[3]}{given[4]}", True


def _code_of_magic(body: str) -> str:
    """The code that a line's magic runs; "" where there is none, or none that is whole."""
    magic = _MAGIC.match(body)
    if magic is None or magic[1] not in _RUNS_CODE:
        return ""
    code = magic[2]
    while option := _OPTION.match(code):
        code = code[option.end() :].lstrip()
    return code if code and why_not(code) is None else ""


def _asks(line: str) -> bool:
    """`name?`, `name??`, with a comment or not; a question mark in a string or a comment asks nothing."""
    if "?" not in line:
        return False
    bare = _PIECE.sub(lambda m: "" if m[2] else "''" if m[0][0] in "\"'" else m[0], line).rstrip()
    return bare.endswith("?")


def _state(line: str, depth: int, quote: str) -> tuple[int, str, bool]:
    """The open brackets, the open triple quote and whether a backslash goes on, behind a line."""
    at = 0
    while at < len(line):
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return depth, quote, False
            at, quote = end + 3, ""
            continue
        piece = _PIECE.search(line, at)
        if piece is None:
            break
        at = piece.end()
        if piece[1]:
            quote = piece[1]
        elif piece[2]:
            return depth, "", False
        elif piece[3]:
            depth += 1
        elif piece[4]:
            depth = max(depth - 1, 0)
    return depth, quote, not quote and line.endswith("\\")
