"""What a log says of the script that wrote it: the command, its arguments, the frames of a traceback, files with lines.

A log may come from another machine: a path in it means the one file of the tree with the longest equal end, and where
the log quotes a line of the file, that line must stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from traindx_tools.scope.commands import Launch, launches
from traindx_tools.scope.model import LogLines
from traindx_tools.scope.tree import Tree

HEAD = 400
"""Lines at the beginning of a log among which the command that started it is looked for."""
_PROMPT = r"(?:[\w.@~/:-]{0,60}[$#>%] +|\++ +|\[[^\]]{0,40}\] *)?"
_LABEL = (r"(?:(?:the )?(?:command(?: line)?|cmd|launch(?:ed|ing)?(?: with| command)?|run(?:ning)?(?: command)?|"
          r"executing|exec|invoked(?: as| with)?|started with)\b[^:=]{0,20}[:=] *)?")
_STARTER = (r"(?:/\S*/)?(?:python[\d.]*|torchrun|accelerate +launch|deepspeed|srun|mpirun|mpiexec|horovodrun|bash|sh|"
            r"uv +run|poetry +run|nohup|time|env|nice)\b")
_SHOWN_COMMAND = re.compile(
    rf"\W{{0,3}}{_PROMPT}{_LABEL}['\"`]?(?P<command>(?:\w+=\S+ +)*{_STARTER}.*(?:\.py|\.sh|\s-m\s).*)", re.IGNORECASE)
"""A line that shows a command: after a prompt, after a label, or alone."""
_ARGV = re.compile(r"\[\s*['\"](?P<script>[^'\"\s]+\.py)['\"]\s*[,\]]")
_USAGE = re.compile(r"^(?:usage: )?(?P<script>[\w./-]+\.py)(?:: error: | \[-h\])")
_FRAME = re.compile(r"File \"(?P<file>[^\"]+\.py)\", line (?P<line>\d+)(?:, in (?P<name>\S+))?")
_PLACE = re.compile(r"(?:^|[\s\[(<|])(?P<file>[\w./-]*\w\.py):(?P<line>\d+)(?!\.?\d)")
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen")
_MAIN = "<module>"


@dataclass
class Told:
    """What a log tells: launches, scripts that were named as such, files of which lines ran."""

    launches: list[Launch] = field(default_factory=list)
    named: list[tuple[Path, str]] = field(default_factory=list)
    """Scripts with where the log names them, in words."""
    ran: dict[Path, str] = field(default_factory=dict)
    """Files of which the log names a line that ran, and where."""


def told_by(log: LogLines, tree: Tree, base: Path) -> Told:
    """What one log says of its script."""
    told = Told()
    for number, text in log.lines:
        if ".py" not in text and (number > HEAD or not (".sh" in text or " -m " in text)):
            continue
        where = f"{Path(log.name).name}:{number}"
        if number <= HEAD:
            told.launches += _launches(text, tree, base)
        told.named += _named(text, where, tree)
    _frames(log, tree, told)
    return told


def _launches(text: str, tree: Tree, base: Path) -> Iterable[Launch]:
    line = text.strip()[:2000]
    shown = _SHOWN_COMMAND.match(line)
    if shown is None:
        return ()
    quote = line[shown.start("command") - 1:shown.start("command")]
    command = shown["command"]
    return launches(command.rstrip(quote) if quote and quote in "'\"`" else command, tree, base)


def _named(text: str, where: str, tree: Tree) -> Iterator[tuple[Path, str]]:
    for pattern, what in ((_ARGV, "the arguments"), (_USAGE, "its usage")):
        found = pattern.search(text)
        script = tree.by_tail(found["script"]) if found else None
        if script is not None:
            yield script, f"{what} in {where}"


def _frames(log: LogLines, tree: Tree, told: Told) -> None:
    """Files whose lines ran; the outermost frame of a traceback is the script that was started."""
    lines = dict(log.lines)
    outermost = False
    for number, text in log.lines:
        outermost = outermost or "Traceback (most recent" in text
        if ".py" not in text:
            continue
        where = f"{Path(log.name).name}:{number}"
        for found in (*_FRAME.finditer(text), *_PLACE.finditer(text)):
            file = _that_ran(found, lines.get(number + 1, ""), tree)
            if file is None:
                continue
            told.ran.setdefault(file, where)
            if found.re is _FRAME:
                if outermost and found["name"] == _MAIN:
                    told.named.append((file, f"the traceback in {where}"))
                outermost = False


def _that_ran(found: re.Match[str], below: str, tree: Tree) -> Path | None:
    """The file of the tree that a frame or a `file.py:line` means; the line that a frame quotes has to stand in it."""
    file = None if _INSTALLED.search(found["file"]) else tree.by_tail(found["file"])
    quoted = re.sub(r"^(?:\[[^\]]*\]:?|\d+:)", "", below.strip()).strip() if found.re is _FRAME else ""
    if file is None or not quoted or quoted.startswith(("File ", "^", "~", "Traceback")):
        return file
    return file if quoted in tree.text(file) else None
