"""Lines with numbers of which nothing was taken: how many, which, and how a person says what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from traindx_tools.artifact import LostLines
from traindx_tools.on_logs.configs.printed import is_setting
from traindx_tools.on_logs.readers.guessed_form import guessed
from traindx_tools.on_logs.readers.line_plans import Plan
from traindx_tools.on_logs.readers.numbers import value
from traindx_tools.on_logs.readers.prefixes import Prefix
from traindx_tools.on_logs.readers.recorder import Key
from traindx_tools.on_logs.tracebacks.exception_lines import exception_line
from traindx_tools.on_logs.tracebacks.fatal_lines import SIGNATURES, cuda_assert
from traindx_tools.on_logs.tracebacks.frames import jupyter_frame_of

QUIET_LEVELS = frozenset({"WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"})
"""Lines of which no metric is read: they are looked at for errors."""
SHOWN, WIDEST = 3, 100
"""Lines, and characters of a line, that are shown."""
TOLD_FROM = ((3, 0.25), (10, 0.05))
"""Lines, and their share of all, from which on a person is told: what is lost of a log recurs, a banner does
not."""
_TRIED = 1_000
"""Lines among which further shapes are looked for."""
_ENDS = re.compile(r"\s*(?:%|[)\],;|]|$|\s(?!\w+/s))")
"""What follows a number that may be a metric."""
_NUMBERS = re.compile(r"[-+\d.]+")
_ARROW = re.compile(r"-+> ?\d+ ")
"""The line at which IPython says that an error was raised."""
_PINNED = re.compile(r"[A-Za-z][\w.-]{0,80}(?:\[[\w, -]{1,80}\])?\s?(?:[=~]=|@ )\s?[\w.:/+!*-]{1,300}(?:\s*[;#].*)?$")
"""A package with its version, as `pip freeze` and the requirements that trackers keep list them."""
_HOW = ("--line '{step} | {loss} | {lr}' says what the numbers of such a line are, --name OWN=KNOWN what a name stands "
        "for")


@dataclass
class Unread:
    """The lines of one text that hold numbers and were used for nothing."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)
    """The number and the text of the first ones."""
    shapes: list[tuple[int, str]] = field(default_factory=list)
    """The same of the first ones that differ in more than digits."""
    beside: tuple[str, tuple[str, ...]] | None = None
    """The first record that holds further numbers than its metrics, and these."""
    _tried: int = 0

    def of_record(self, plan: Plan, parts: Sequence[str], text: str) -> None:
        """Notes the numbers of a record that are none of its metrics, counters, times or clocks."""
        if self.beside is None and (left := left_over(plan, parts)):
            self.beside = text, left

    @property
    def of_records(self) -> str:
        """What a person is told of further numbers in the records, "" where there are none."""
        if self.beside is None:
            return ""
        text, left = self.beside
        more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        return f'not used of its records: {", ".join(left[:SHOWN])}{more}, as in "{printable(text)}". {_HOW}'

    def add(self, count: int, number: int, text: str) -> None:
        """Some lines of a shape; `number` and `text` are those of the first."""
        self.count += count
        if len(self.first) < SHOWN and (number, text) not in self.first:
            self.first.append((number, text))
        self._tried += self.wants_more
        if self.wants_more and all(_NUMBERS.sub("0", text) != _NUMBERS.sub("0", t) for _, t in self.shapes):
            self.shapes.append((number, text))

    @property
    def wants_more(self) -> bool:
        """Whether the text of a further shape would be kept."""
        return len(self.shapes) < SHOWN and self._tried < _TRIED

    @property
    def shown(self) -> list[tuple[int, str]]:
        """A few lines for a person: of as many shapes as there are."""
        return sorted(dict.fromkeys((*self.shapes, *self.first)), key=lambda line: line not in self.shapes)[:SHOWN]

    def matters(self, lines: int, found: bool) -> bool:
        """Whether a person is told of them: where no value was found of all but a single line, else of many.

        A metric recurs; one line among others is what a program says of its start or end.
        """
        many = any(self.count >= fewest and self.count >= part * lines for fewest, part in TOLD_FROM)
        alone = self.count == 1 and lines > 1
        return bool(self.count) and (many or not (found or alone))

    def lost(self, lines: int, read: Collection[Key], prefix: Callable[[str], Prefix]) -> LostLines | None:
        """They as a value, None where they do not matter. `read`: the metrics that were read; `prefix`: what stands
        before the message of a line."""
        if not self.matters(lines, bool(read)):
            return None
        known = {k.name.canonical for k in read}
        number, text = min(self.first)
        form = guessed([t[prefix(t).end:] for _, t in sorted(self.first)], known)
        return LostLines(self.count, lines, number, printable(text), form)

    def note(self, lines: int, found: bool) -> str:
        """What a person is told of them, "" where they do not matter."""
        if not self.matters(lines, found):
            return ""
        shown = quoted(sorted(self.shown))
        if not found:
            return (f"no number in it was taken for a metric, as in {shown}. A line such as \"step 100 loss 0.53 lr "
                    f"1e-4\" is; {_HOW}")
        return (f"{self.count:,} of {lines:,} lines ({share(self.count, lines)}) hold numbers and were not used, as in "
                f"{shown}. {_HOW}")


def loses_a_fraction(plan: Plan, parts: Sequence[str]) -> bool:
    """Whether a line that only says where the next ones stand holds a value as well: "[10/1000] 2.53 (2.61)"."""
    counted = {t for c in (plan.step, plan.epoch) if c for t in (c.token, c.total)}
    return any("." in token and value(token) is not None and not after[:1].isalpha() and at not in counted
               for at, (token, after) in enumerate(zip(parts[1::2], parts[2::2], strict=True)))


def left_over(plan: Plan, parts: Sequence[str]) -> tuple[str, ...]:
    """The numbers with a fraction, or in percent, of a record that nothing was made of: "(0.61)", "a 12.1%".

    A number with a unit of time or of memory behind it, a version and what is part of a longer word are no metrics.
    """
    if not plan.fields or plan.bar or not (plan.step or plan.epoch):
        return ()
    counted = {t for c in (plan.step, plan.epoch) if c for t in (c.token, c.total)}
    used = counted | {f.token for f in plan.fields} | {f.over for f in plan.fields}
    means = {f.average for f in plan.fields} | {at for at in range(1, len(parts) // 2)
                                                if parts[2 * at].strip() == "(" and parts[2 * at + 2].startswith(")")}
    left = {at: token for at, (token, after) in enumerate(zip(parts[1::2], parts[2::2], strict=True))
            if at not in used and "." in token and value(token) is not None and _ENDS.match(after)}
    return tuple(left.values()) if left.keys() - means else ()  # means in brackets alone are known for what they are


def is_read_elsewhere(message: str, level: str | None) -> bool:
    """Whether a line without metrics is one of those from which errors, warnings or settings are read."""
    return (level in QUIET_LEVELS or is_setting(message) or _PINNED.match(message) is not None
            or exception_line(message, right_after_frames=False) is not None
            or cuda_assert(message) is not None
            or jupyter_frame_of(message) is not None or _ARROW.match(message) is not None
            or any(s.needs in message and s.pattern.search(message) for s in SIGNATURES))


def share(part: int, whole: int) -> str:
    """A share in percent, with a digit behind the point where it is small."""
    percent = 100.0 * part / whole if whole else 0.0
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"


def printable(text: str) -> str:
    """A line as it may be shown: without control characters, cut."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= WIDEST else f"{plain[:WIDEST]}..."


def quoted(lines: Sequence[tuple[int, str]]) -> str:
    """Lines with their numbers, for messages."""
    return "; ".join(f'line {number}: "{printable(text)}"' for number, text in lines)
