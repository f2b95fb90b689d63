"""What a session does, while it does it: a view that is drawn over at a terminal, lines in a pipe.

The view has the phase, the specialists side by side with what they are at, tokens and dollars, and the newest evidence.
It is drawn with `rich`, which comes with the extras `agent` and `api`; without it a terminal gets lines as well.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from traindx.notices import Hear, Kind, Notice, as_lines
from traindx.safe_text import line

EVIDENCE_SHOWN = 6
WHO, DOING = 26, 24
"""Columns of a specialist's name, and of what it is at in a narrow terminal."""

_MARKS: dict[Kind, str] = {"asked": "..", "working": "..", "answered": "ok", "failed": "--", "checked": "ok"}
_STAYS = frozenset({"said", "answered", "failed", "checked"})
"""Kinds that are also printed above the view, and stay there."""


@dataclass(frozen=True)
class Row:
    """One specialist: `mark` is ".." at work, "ok" answered, "--" no answer."""

    mark: str = ".."
    doing: str = ""
    tokens: int = 0
    dollars: float = 0.0


@dataclass
class Picture:
    """What the view shows; it only listens."""

    clock: Callable[[], float] = time.monotonic
    phase: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def take(self, notice: Notice) -> None:
        """Put one notice where it belongs."""
        if notice.kind == "phase":
            self.phase = notice.text
        elif notice.kind == "evidence":
            self.evidence.append(line(notice.line))
        elif notice.who:
            old = self.rows.get(notice.who, Row())
            again = Row(tokens=old.tokens, dollars=old.dollars) if notice.kind == "asked" else old
            mark = old.mark if notice.kind == "said" else _MARKS[notice.kind]
            self.rows[notice.who] = replace(again, mark=mark, doing=line(notice.text) or old.doing,
                                            tokens=old.tokens + notice.tokens, dollars=old.dollars + notice.dollars)

    def lines(self, width: int = 100) -> list[str]:
        """The view as plain lines of at most `width` columns."""
        tokens, dollars = sum(r.tokens for r in self.rows.values()), sum(r.dollars for r in self.rows.values())
        total = f", {tokens:,} tokens" if tokens else ""
        total += f", ${dollars:.4f}" if dollars else ""
        out = [f"{self.phase or 'starting'}  {_clock(self.clock() - self._begun)}{total}"]
        doing = max(width - WHO - 36, DOING)
        out += [f"  {r.mark}  {who:<{WHO}} {_cut(r.doing, doing):<{doing}} {_took(r)}" for who, r in self.rows.items()]
        if self.evidence:
            out.append(f"evidence  {len(self.evidence)} pieces, the newest last")
            out += [f"  {e}" for e in self.evidence[-EVIDENCE_SHOWN:]]
        return [_cut(text, width) for text in out]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width - 3]}..."


def _took(row: Row) -> str:
    tokens = f"{row.tokens:>10,} tokens" if row.tokens else ""
    return f"{tokens}  ${row.dollars:.4f}" if row.dollars else tokens


class Watch(Protocol):
    """Where notices go while a session runs, and how a person is asked meanwhile."""

    def hear(self, notice: Notice) -> None:
        """One notice."""

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """The terminal is the person's for as long as this lasts."""
        ...


@dataclass
class Lines:
    """A line for each notice."""

    say: Callable[[str], None]
    phases: bool = True
    _hear: Hear = field(init=False)

    def __post_init__(self) -> None:
        self._hear = as_lines(lambda text: self.say(line(text)))

    def hear(self, notice: Notice) -> None:
        """One notice."""
        if notice.kind != "phase" or self.phases:
            self._hear(notice)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lines need no pause."""
        yield


class LiveView:
    """The picture, drawn over while things happen. To be closed."""

    def __init__(self, stream: Any = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self.picture = Picture()
        self._console = Console(file=stream or sys.stderr, highlight=False, markup=False, emoji=False)
        self._live = Live(get_renderable=self._drawn, console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def _drawn(self) -> Any:
        from rich.text import Text

        shown = Text("\n".join(self.picture.lines(max(self._console.width - 1, 40))), no_wrap=True)
        shown.highlight_regex(r"(?m)^\S.*$", "bold")
        shown.highlight_regex(r"(?m)^  ok ", "green")
        shown.highlight_regex(r"(?m)^  -- ", "yellow")
        return shown

    def hear(self, notice: Notice) -> None:
        """One notice; what a person may want to read again stays above the view."""
        self.picture.take(notice)
        if notice.kind in _STAYS:
            self._console.print(line(notice.line), style="dim")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The view is taken away, and drawn again after."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def close(self) -> None:
        """Take the view away for good."""
        self._live.stop()


@contextlib.contextmanager
def watching(say: Callable[[str], None], *, phases: bool = True) -> Iterator[Watch]:
    """The view where standard error is a terminal and `rich` is installed, else lines through `say`."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield Lines(say, phases)
        return
    view = LiveView()
    try:
        yield view
    finally:
        view.close()
