"""`--line '{step} | {loss} | {lr}'`: what the numbers of a line mean, said by one example with names in their places.

Blanks of the example stand for any number of blanks, a digit for any digit, `{}` for anything that is passed over; all
other signs are meant as they are. The example may be a part of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.readers.counters import EPOCH, RANK, counter_kind
from traindx_tools.on_logs.readers.line_plans import Counter, Field, Plan
from traindx_tools.on_logs.readers.names import TRAIN, identify
from traindx_tools.on_logs.readers.numbers import magnitude
from traindx_tools.on_logs.readers.recorder import Key

LONGEST = 400
"""Characters of an example."""
MOST = 50
"""Examples that are taken at once."""
_PLACE = re.compile(r"\{([^{}]*)\}")
_SKIPPED = re.compile(r"\{\s*_?\s*\}")
_NAME = re.compile(r"[^\W\d][\w ./@-]{0,79}")
_NUMBER = (r"([-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|NaN|NAN|inf|Inf|INF))"
           r"(?![\d.]*\d)")
_COUNT = r"(\d{1,3}(?:,\d{3})+|\d{1,15})(?![\d.]*\d)"
_NOT_WITHIN = r"(?<![\w.])"
"""Before a number with nothing but blanks before it: it does not begin within a word or another number."""
_SUREST = 5
"""How surely a step counts that a person has named: as surely as any counter does."""


@dataclass(frozen=True)
class LineForm:
    """One shape of line, as a person wrote it down."""

    text: str
    patterns: tuple[re.Pattern[str], ...]
    """What stands between two `{}`: each is sought behind the one before, without going back."""
    names: tuple[str, ...]
    """Of each number that is taken, in the order of the line."""
    scales: tuple[float, ...] = ()
    """What each of these numbers is times where it is a count: 1,000 in "{step}k"."""
    optional: bool = False
    """Whether it stands somewhere for any log, so that this one need not hold such a line."""

    @property
    def plan(self) -> Plan:
        """What the numbers mean, the first one being token 0."""
        fields: list[Field] = []
        step = epoch = rank = None
        for token, name in enumerate(self.names):
            kind = counter_kind(name.lower())
            if kind is None:
                fields.append(Field(token, Key(name, identify(name).group or TRAIN), identify(name).factor))
            elif kind[0] == RANK:
                rank = token
            elif kind[0] == EPOCH:
                epoch = Counter(token, None, 0)
            else:
                step = Counter(token, None, _SUREST, scales=(self.scales[token], 1.0))
        return Plan(tuple(fields), step, epoch, rank)

    def spans(self, line: str, start: int) -> list[tuple[int, int]] | None:
        """From where to where each number stands, None where the line has another shape. `start`: behind its prefix."""
        return self._spans(line, start) or (self._spans(line, 0) if start else None)

    def _spans(self, line: str, at: int) -> list[tuple[int, int]] | None:
        spans: list[tuple[int, int]] = []
        for pattern in self.patterns:
            found = pattern.search(line, at)
            if found is None:
                return None
            spans += (found.span(i + 1) for i in range(pattern.groups))
            at = found.end()
        return spans


def parse_form(text: str) -> LineForm:
    """The shape that an example tells of. Raises UnreadableInput that says what is wrong with it."""
    told = text.strip("\n")
    names = [p.strip() for p in _PLACE.findall(told)]
    taken = tuple(n for n in names if n not in ("", "_"))
    if not told.strip() or len(told) > LONGEST or "\n" in told:
        raise _refused(text, f"expected one line of at most {LONGEST} characters")
    if not any(counter_kind(n.lower()) is None for n in taken):
        raise _refused(text, "it names no metric: put a name in braces where a number stands")
    for name in taken:
        if not _NAME.fullmatch(name):
            raise _refused(text, f"{{{name[:40]}}} is no name of a metric")
    twice = next((n for n in taken if taken.count(n) > 1), None)
    if twice is not None:
        raise _refused(text, f"{{{twice}}} stands in it twice; {{}} passes over what is not needed")
    if "}{" in told:
        raise _refused(text, "between two names there must be something that parts their numbers")
    scales = tuple(magnitude(told[p.end():]) for p in _PLACE.finditer(told) if p[1].strip() in taken)
    return LineForm(told, tuple(re.compile(_pattern(t)) for t in _SKIPPED.split(told) if t), taken, scales)


def parse_forms(given: Iterable[str | LineForm]) -> tuple[LineForm, ...]:
    """Several examples, each once. Raises UnreadableInput."""
    forms = tuple({f.text: f for f in (parse_form(g) if isinstance(g, str) else g for g in given)}.values())
    if len(forms) > MOST:
        raise UnreadableInput(f"{len(forms)} examples of lines were given: at most {MOST} are taken")
    return forms


def told_by(forms: Iterable[LineForm], line: str, start: int) -> Iterator[tuple[LineForm, list[tuple[int, int]]]]:
    """The first of the forms that a line has, and where its numbers stand; nothing where it has none of them."""
    for form in forms:
        spans = form.spans(line, start)
        if spans is not None:
            yield form, spans
            return


def _refused(text: str, why: str) -> UnreadableInput:
    return UnreadableInput(f"--line {text[:80]!r}: {why}. An example: --line '{{step}} | {{loss}} | {{lr}}'")


def _pattern(told: str) -> str:
    parts, at = [], 0
    for place in _PLACE.finditer(told):
        before = told[at:place.start()]
        parts += [_literal(before), _place(place[1].strip(), before, told[place.end():])]
        at = place.end()
    return "".join([*parts, _literal(told[at:])])


def _place(name: str, before: str, after: str) -> str:
    kind = counter_kind(name.lower())
    whole = kind is not None and kind[0] != EPOCH and magnitude(after) == 1.0
    number = _COUNT if whole else _NUMBER
    return number if before.strip() else _NOT_WITHIN + number


def _literal(text: str) -> str:
    """Text between two places: blanks where there is nothing else part two numbers, elsewhere they may be missing."""
    pieces = re.split(r"(\s+)", text)
    return "".join(_blanks(pieces, i) if piece.isspace() else re.sub(r"\d+", r"\\d+", re.escape(piece))
                   for i, piece in enumerate(pieces))


def _blanks(pieces: list[str], at: int) -> str:
    before, after = pieces[at - 1][-1:], pieces[at + 1][:1]
    glued = (before and not before.isalnum()) or (after and not after.isalnum())
    return r"\s*" if glued else r"\s+"
