"""Tracebacks that the rich library draws in a box, turned back into plain lines.

`│ /home/user/train.py:59 in main │` becomes a frame and `│ ❱ 59 │   loss.backward() │` its code; the exception's own
line stands below the box as usual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.on_logs.tracebacks.lines import Line

_TOP = re.compile(r"╭─+ .{0,20}Traceback \(most recent call last\).{0,20} ─+╮")
_FRAME = re.compile(r"│ (?P<file>\S.{0,1000}?):(?P<line>\d{1,9}) in (?P<function>\S.{0,200}?)\s*│?$")
_CODE = re.compile(r"│ ❱ +(?P<line>\d+) [│┃](?P<code>.{0,500}?)\s*│?$")


class Boxes:
    """Turns boxed tracebacks into Python's own notation; all other lines pass unchanged."""

    def __init__(self) -> None:
        self._inside: set[str | None] = set()

    @property
    def idle(self) -> bool:
        """Whether no box is open."""
        return not self._inside

    def feed(self, line: Line) -> Iterator[Line]:
        """The plain lines that `line` stands for: none for a border, one for most."""
        if "╭" in line.text and _TOP.search(line.text):
            self._inside.add(line.stream)
            yield line._replace(text="Traceback (most recent call last):")
        elif line.stream not in self._inside:
            yield line
        elif "╰" in line.text or "│" not in line.text:
            self._inside.discard(line.stream)
            if "╰" not in line.text:
                yield line
        else:
            yield from _inside(line)


def _inside(line: Line) -> Iterator[Line]:
    text = line.text.strip()
    frame = _FRAME.match(text)
    if frame is not None:
        yield line._replace(text=f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}')
        return
    code = _CODE.match(text)
    if code is not None:
        yield line._replace(text=f"    {code['code'].strip()}")
