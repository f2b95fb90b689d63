"""What a session does, while it does it: a view that is drawn over at a terminal, lines in a pipe.

The view has the phase, the specialists side by side with what they are at, tokens and dollars, and the newest evidence.
It comes for what takes longer than `PATIENCE`, and never over a prompt: while a person is asked, there is none, and
what they typed stays. It is drawn with `rich`; without it a terminal gets lines as well.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from traindx.notices import Hear, Kind, Notice, as_lines
from traindx.safe_text import line

PATIENCE = 2.0
"""Seconds after which a view is drawn: what ends before needs none."""
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
    """What the view shows; it only listens. The clock is that of the phase."""

    clock: Callable[[], float] = time.monotonic
    phase: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)
    waited: float = 0.0
    """Seconds in which a person was asked: they are none of the work's."""
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def take(self, notice: Notice) -> None:
        """Put one notice where it belongs."""
        if notice.kind == "phase":
            self.phase, self._begun, self.waited = notice.text, self.clock(), 0.0
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
        out = [f"{self.phase or 'starting'}  {_clock(self.clock() - self._begun - self.waited)}{total}"]
        doing = max(width - WHO - 36, DOING)
        rows = tuple(self.rows.items())  # notices come from other threads
        out += [f"  {r.mark}  {who:<{WHO}} {_cut(r.doing, doing):<{doing}} {_took(r)}" for who, r in rows]
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

    session: str
    """The folder of the session, "" before there is one."""

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
    session: str = ""
    _hear: Hear = field(init=False)

    def __post_init__(self) -> None:
        self._hear = as_lines(lambda text: self.say(line(text)))

    def hear(self, notice: Notice) -> None:
        """One notice."""
        if notice.kind == "opened":
            self.session = notice.text
        elif notice.kind != "phase" or self.phases:
            self._hear(notice)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lines need no pause."""
        yield


class Drawn:
    """Something that is drawn over on a terminal, from `PATIENCE` on, with pauses in which the terminal is a person's.

    Each drawing is a new one: one that goes on after a pause would take away lines that were written meanwhile.
    """

    def __init__(self, drawn: Callable[[int], Any], stream: Any = None, patience: float = PATIENCE) -> None:
        self._drawn, self._stream, self._patience = drawn, stream or sys.stderr, patience
        self._lock = threading.RLock()
        self._live: Any = None
        self._timer: threading.Timer | None = None
        self.console: Any = None
        """Where lines that stay are printed, once something is drawn."""

    def start(self) -> None:
        """Draw after a while."""
        self._timer = threading.Timer(self._patience, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Nothing is drawn from here on, and what was drawn is gone."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            live, self._live, self.console = self._live, None, None
        if live is not None:  # not under the lock: its own thread ends first
            live.stop()

    def say(self, text: str) -> None:
        """A line that stays, above what is drawn."""
        with self._lock:
            console = self.console
        if console is not None:
            console.print(text, style="dim")
        else:
            print(text, file=self._stream, flush=True)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if self._timer is None:
                return
            self.console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
            self._live = Live(get_renderable=self._rendered, console=self.console, refresh_per_second=4, transient=True)
            self._live.start()

    def _rendered(self) -> Any:
        from rich.text import Text

        console = self.console
        shown = Text(self._drawn(console.width if console is not None else 80), no_wrap=True)
        shown.highlight_regex(r"(?m)^\S.*$", "bold")
        shown.highlight_regex(r"(?m)^  ok ", "green")
        shown.highlight_regex(r"(?m)^  -- ", "yellow")
        return shown


class LiveView:
    """The picture, drawn over while things happen. To be closed."""

    def __init__(self, stream: Any = None, patience: float = PATIENCE) -> None:
        self.picture = Picture()
        self.session = ""
        self._view = Drawn(lambda width: "\n".join(self.picture.lines(max(width - 1, 40))), stream, patience)
        self._view.start()

    def hear(self, notice: Notice) -> None:
        """One notice; what a person may want to read again stays above the view."""
        if notice.kind == "opened":
            self.session = notice.text
            return
        self.picture.take(notice)
        if notice.kind in _STAYS:
            self._view.say(line(notice.line))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The view is taken away, and drawn anew after; the clock stands still meanwhile."""
        self._view.stop()
        begun = self.picture.clock()
        try:
            yield
        finally:
            self.picture.waited += self.picture.clock() - begun
            self._view.start()

    def close(self) -> None:
        """Take the view away for good."""
        self._view.stop()


def _drawable() -> bool:
    """Whether standard error is a terminal that can draw over a line (TERM=dumb cannot), and `rich` is there."""
    return (sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
            and importlib.util.find_spec("rich") is not None)


@contextlib.contextmanager
def watching(say: Callable[[str], None], *, phases: bool = True) -> Iterator[Watch]:
    """The view where standard error is a terminal and `rich` is installed, else lines through `say`."""
    if not _drawable():
        yield Lines(say, phases)
        return
    view = LiveView()
    try:
        yield view
    finally:
        view.close()


@contextlib.contextmanager
def working_on(text: str) -> Iterator[Callable[[str], None]]:
    """A line with a clock about work at a terminal, once it takes longer than `PATIENCE`; yields what changes the line.

    Nothing in a pipe, and nothing without `rich`.
    """
    if not _drawable():
        yield lambda said: None
        return
    begun, now = time.monotonic(), [text]
    view = Drawn(lambda width: _cut(f"{now[0]}  {_clock(time.monotonic() - begun)}", max(width - 1, 40)))
    view.start()

    def at(said: str) -> None:
        now[0] = line(said)

    try:
        yield at
    finally:
        view.stop()
