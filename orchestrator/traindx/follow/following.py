"""Looks at files again and again while they are written, and says what comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from traindx.follow.alarms import Alarm
from traindx.follow.hysteresis import Hysteresis, News
from traindx.follow.watched import Change, Watched
from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run
from traindx_tools.triage import CONFIDENT

RESTS = 4.0
"""How many times as long as a look took of a processor is waited before the next one: a fifth of one at most, whatever
the size of the log."""
QUIET, LONGER = 60.0, 5.0
"""Seconds, and how many times the longest pause before, without a word in the files from which on that is said."""
_ANEW: dict[Change, str] = {"shorter": "was cut or written anew", "another": "is another file now (rotated)",
                            "back": "is there again"}


class Look(Protocol):
    """What one look gives: `traindx.diagnose.Report`."""

    @property
    def seen(self) -> Any:
        """What was read and judged."""

    @property
    def places(self) -> Any:
        """How places are named."""


class Words(Protocol):
    """Says things to a person, or to a program."""

    def remark(self, text: str) -> None:
        """A word on the files, or on the following itself."""

    def news(self, news: News, place: str) -> None:
        """A finding that came or has gone."""

    def cause(self, claim: str, mode: str, confidence: float) -> None:
        """A cause that is sure."""


@dataclass
class Follower:
    """Follows files until Ctrl-C. `look` reads and judges them; it raises UnreadableInput where there is nothing."""

    paths: Sequence[str]
    look: Callable[[], Look]
    words: Words
    alarm: Alarm = field(default_factory=Alarm)
    every: float = 5.0
    """Seconds between two looks at whether something was written."""
    clock: Callable[[], float] = time.monotonic
    spent: Callable[[], float] = time.process_time
    """Seconds of a processor so far."""
    sleep: Callable[[float], None] = time.sleep
    _watched: Watched = field(init=False)
    _findings: Hysteresis = field(default_factory=Hysteresis)
    _causes: set[str] = field(default_factory=set)
    _earlier: set[str] = field(default_factory=set)
    """Causes that were told of a file before it began anew."""
    _last: Look | None = None
    _unclear: bool = False
    """Whether it was said that there is nothing to judge; once is enough."""
    _next: float = 0.0
    _pending: bool = False
    _final: bool = False
    """Whether the last look was at what is still the whole of the files, and was repeated."""
    _heard: float | None = None
    _longest: float = 0.0
    _called_quiet: bool = False
    _reached: float | None = None
    """The last step of the last look; `_ended`: of the file before it began anew; `_anew_at`: its first step since."""
    _ended: float | None = None
    _anew_at: float | None = None
    _before: int = 0
    """Findings that were told of files before they began anew."""

    def __post_init__(self) -> None:
        self._watched = Watched(self.paths)

    def follow(self) -> int:
        """Until Ctrl-C; 1 where a finding was told that is still there, 0 where a look found none, 3 where nothing was
        judged yet or a finding was seen once and not yet a second time."""
        try:
            self.words.remark(f"following {', '.join(self.paths)}; Ctrl-C ends it")
            while True:
                self.once()
                self.sleep(self.every)
        except KeyboardInterrupt:
            rest, code = self._summary()
            self.words.remark(f"no longer following: {rest}. `traindx diagnose {' '.join(self.paths)}` gives the whole "
                              "report")
            return code

    def _summary(self) -> tuple[str, int]:
        """What is left at the end, in words, and the exit code."""
        told, waiting = len(self._findings.told), len(self._findings.waiting)
        if told:
            return f"{told} finding{'s' if told != 1 else ''} still there", 1
        if waiting:
            return f"{waiting} finding{'s' if waiting != 1 else ''} seen in the last look alone, not yet confirmed", 3
        nothing, code = ("nothing was judged", 3) if self._last is None else ("nothing was found", 0)
        if self._before:
            return f"{nothing} since a file began anew; what was told before is of what stood there then", code
        return (f"{nothing} yet", code) if code else (nothing, code)

    def once(self) -> None:
        """One look at the files, and at what is in them where that is due."""
        changes = self._watched.changes()
        for name, change in changes:
            self._of_file(name, change)
        if self._watched.there:
            self._note_quiet(any(change != "gone" for _, change in changes))
        self._pending = self._pending or any(change != "gone" for _, change in changes)
        if self.clock() < self._next or not self._watched.there:
            return
        if self._pending:
            self._look()
        elif self._last is not None and not self._final:
            self._final = True  # nothing was written since: a second look would see the same
            self._judge(self._last)

    def _of_file(self, name: str, change: Change) -> None:
        if change == "gone":
            self.words.remark(f"{name} is not there any more; waiting for it")
        elif change in _ANEW:
            self.words.remark(f"{name} {_ANEW[change]}: what is found is told anew, unless it goes on "
                              "where it ended")
            self._before += len(self._findings.told)
            self._findings.begin_anew()
            self._ended, self._anew_at = self._reached, None
            self._earlier, self._causes = self._causes | self._earlier, set()
            self._last = None

    def _goes_on(self, run: Run) -> bool:
        """Whether a file that began anew holds the steps behind those that it ended with: it was rotated."""
        loss = run.loss
        if loss is None or loss.unit != "step" or not len(loss):
            return False
        first, last = float(loss.position[0]), float(loss.position[-1])
        if self._ended is not None and self._anew_at is None:
            self._anew_at = first
        goes_on = self._ended is not None and self._anew_at is not None and self._anew_at > self._ended
        self._reached = last
        return goes_on

    def _look(self) -> None:
        start, first = self.spent(), self._last is None
        self._pending = False
        try:
            self._last = self.look()
        except UnreadableInput as nothing:
            self._last = None
            if not self._unclear:
                self.words.remark(f"nothing to judge yet: {nothing}")
            self._unclear = True
        self._final = False
        rest = 0.0 if first else RESTS * (self.spent() - start)  # the first one also loads what it needs
        self._next = self.clock() + rest
        if self._last is not None:
            self._unclear = False
            self._judge(self._last)

    def _judge(self, look: Look) -> None:
        seen = look.seen
        names = [n for s in seen.run.series for n in (s.name, s.original)]
        goes_on = self._goes_on(seen.run)
        self._causes |= self._earlier if goes_on else set()
        for news in self._findings.take(_of_runs(seen.findings), names, seen.which, same_run=goes_on):
            place = look.places.describe(news.finding)
            self.words.news(news, place)
            for wrong in self.alarm.raise_for(news.finding, place) if news.kind == "came" else ():
                self.words.remark(wrong)
        if self._findings.told:
            self._tell_causes(seen.verdict)

    def _tell_causes(self, verdict: Any) -> None:
        """The causes that are sure, each once, behind the findings that they rest on."""
        sure = verdict.causes if verdict.status == "diagnosis_complete" else ()
        for cause in sure:
            if cause.confidence >= CONFIDENT and cause.mode.id not in self._causes:
                self._causes.add(cause.mode.id)
                self.words.cause(cause.mode.claim, cause.mode.id, cause.confidence)

    def _note_quiet(self, heard: bool) -> None:
        now = self.clock()
        if self._heard is None:
            self._heard = now
        pause = now - self._heard
        if heard:
            self._longest, self._heard = max(self._longest, pause), now
            if self._called_quiet:
                self.words.remark(f"written to again, after {pause:.0f} s")
            self._called_quiet = False
        elif pause >= max(QUIET, LONGER * self._longest) and not self._called_quiet and self._longest:
            self._called_quiet = True
            self.words.remark(f"nothing was written for {pause:.0f} s; the longest pause before was "
                              f"{self._longest:.0f} s")


def _of_runs(findings: Sequence[Finding]) -> list[Finding]:
    """What was seen in what the run wrote: the text of its code does not change while it runs."""
    return [f for f in findings if f.rule[0] in "LRTJ"]
