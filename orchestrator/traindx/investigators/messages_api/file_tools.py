"""Read, Grep and Glob of our own, under the names and arguments that the prompts and the policy know.

They are called only after the policy allowed the call. Each answer is bounded, and says what was left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from traindx.policy import WALKED_AT_MOST, resolve
from traindx_tools.errors import BadUsage

LINES, CHARS, LINE = 2_000, 40_000, 2_000
"""Of one answer: lines, characters, characters of one line."""
HITS, NAMES = 200, 300
SEARCH_SECONDS = 20.0
_READ_AT_MOST = 64 * 2**20


def _properties(**named: tuple[str, str]) -> dict[str, Any]:
    return {name: {"type": kind, **({"description": said} if said else {})} for name, (kind, said) in named.items()}


DEFINITIONS: dict[str, dict[str, Any]] = {
    "Read": {
        "description": f"Reads a text file, numbered by line: `limit` lines (at most {LINES}) from line `offset`.",
        "input_schema": {"type": "object", "required": ["file_path"], "properties": _properties(
            file_path=("string", ""), offset=("integer", ""), limit=("integer", ""))}},
    "Grep": {
        "description": "Searches file contents for a Python regular expression, line by line.",
        "input_schema": {"type": "object", "required": ["pattern"], "properties": _properties(
            pattern=("string", "Regular expression."), path=("string", "File or folder; the workspace by default."),
            glob=("string", "Only files with such names, e.g. *.py."),
            ignore_case=("boolean", "Ignore case."), context=("integer", "Lines around each match."))}},
    "Glob": {
        "description": "Lists files by a pattern such as **/*.py.",
        "input_schema": {"type": "object", "required": ["pattern"], "properties": _properties(
            pattern=("string", "Relative pattern."), path=("string", "Folder; the workspace by default."))}},
}
"""What the API is told of each tool."""


async def read(arguments: Mapping[str, Any], workspace: Path) -> str:
    """Lines of a file."""
    return await asyncio.to_thread(_read, arguments, workspace)


def _read(arguments: Mapping[str, Any], workspace: Path) -> str:
    path = resolve(_text(arguments, "file_path"), workspace)
    if not path.is_file():
        raise BadUsage(f"{path.name} is no file: list files with Glob")
    with path.open("rb") as file:
        content = file.read(_READ_AT_MOST)
    if b"\0" in content[:8192]:
        raise BadUsage(f"{path.name} is a binary file: the instruments read what can be read of it")
    lines = content.decode("utf-8", "replace").split("\n")
    first = max(_whole(arguments, "offset", 1), 1)
    last = min(first - 1 + min(max(_whole(arguments, "limit", LINES), 1), LINES), len(lines))
    out, room = [], CHARS
    for number in range(first, last + 1):
        row = f"{number}\t{_cut(lines[number - 1])}"
        room -= len(row) + 1
        if room < 0:
            last = number - 1
            break
        out.append(row)
    if last < len(lines):
        out.append(f"[lines {first}-{last} of {len(lines)}; go on with offset={last + 1}]")
    return "\n".join(out)


async def grep(arguments: Mapping[str, Any], workspace: Path) -> str:
    """Lines that match, with file and number. A pattern that takes too long is given up."""
    root = resolve(str(arguments.get("path") or "."), workspace)
    names = arguments.get("glob")
    request = {"pattern": _text(arguments, "pattern"), "root": str(root),
               "glob": names if isinstance(names, str) else None, "ignore_case": bool(arguments.get("ignore_case")),
               "context": min(max(_whole(arguments, "context", 0), 0), 20), "limit": HITS}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(Path(__file__).with_name("search_worker.py")), stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
    try:
        printed, _ = await asyncio.wait_for(worker.communicate(json.dumps(request).encode()), SEARCH_SECONDS)
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise BadUsage(f"the search took more than {SEARCH_SECONDS:g} s: use a simpler pattern or a smaller folder") \
            from error
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    return _hits([json.loads(row) for row in printed.decode().splitlines()], workspace)


def _hits(records: list[dict[str, Any]], workspace: Path) -> str:
    if records and "error" in records[0]:
        raise BadUsage(str(records[0]["error"]))
    rows = [f"{_name(Path(r['file']), workspace)}:{r['line']}{':' if r['hit'] else '-'}{r['text']}"
            for r in records if "file" in r]
    shown = "\n".join(rows)[:CHARS]
    more = "\n[more matches were left out: narrow the pattern, path or glob]" if len(rows) < len(records) or \
        len(shown) == CHARS else ""
    return f"{shown}{more}" if rows else "no matches"


async def glob(arguments: Mapping[str, Any], workspace: Path) -> str:
    """Files whose path below the folder matches the pattern."""
    return await asyncio.to_thread(_glob, arguments, workspace)


def _glob(arguments: Mapping[str, Any], workspace: Path) -> str:
    root = resolve(str(arguments.get("path") or "."), workspace)
    wanted = _translated(_text(arguments, "pattern"))
    found, seen = [], 0
    for here, below, names in os.walk(root):
        below[:] = sorted(n for n in below if n not in (".git", "__pycache__"))
        seen += len(names)
        there = [Path(here) / n for n in sorted(names)]
        found += [p for p in there if wanted.fullmatch(p.relative_to(root).as_posix())]
        if seen > WALKED_AT_MOST or len(found) > NAMES:
            break
    rows = [_name(p, workspace) for p in found[:NAMES]]
    more = "\n[more files were left out: narrow the pattern]" if len(found) > NAMES or seen > WALKED_AT_MOST else ""
    return "\n".join(rows) + more if rows else "no files"


_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", re.DOTALL)
_MEANS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
PATTERN_AT_MOST = 200


def _translated(pattern: str) -> re.Pattern[str]:
    """`**/` stands for any folders, also none; `*` for all but a slash. Raises BadUsage."""
    if len(pattern) > PATTERN_AT_MOST:
        raise BadUsage(f"the pattern has more than {PATTERN_AT_MOST} characters")
    pieces = [_MEANS.get(p) or (p.replace("[!", "[^") if len(p) > 2 and p[0] == "[" else re.escape(p))
              for p in _PIECE.findall(pattern)]
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error as error:
        raise BadUsage(f"the pattern {pattern!r} cannot be read: {error}") from error


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise BadUsage(f"{name} is missing")
    return value


def _whole(arguments: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = arguments.get(name, otherwise)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise


def _cut(row: str) -> str:
    return row if len(row) <= LINE else f"{row[:LINE]} [... {len(row) - LINE} more characters]"


def _name(path: Path, workspace: Path) -> str:
    real = workspace.resolve()
    return path.relative_to(real).as_posix() if path.is_relative_to(real) else str(path)


Tool = Callable[[Mapping[str, Any], Path], Awaitable[str]]
TOOLS: dict[str, Tool] = {"Read": read, "Grep": grep, "Glob": glob}
