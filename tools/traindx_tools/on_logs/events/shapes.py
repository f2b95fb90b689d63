"""What a line is but for its digits: where its variables stand, and which shapes are one template.

Lines of one mask (each digit replaced by 0) have equal length and their numbers at equal places. Masks become shapes
(runs of digits as one), shapes become templates as in Drain (He, Zhu, Zheng and Lyu 2017): by number of tokens and
first token, then by the share of tokens that agree. Drain sees each shape once and no line twice, so that its cost
does not grow with the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from traindx_tools.on_logs.readers.prefixes import Prefix, parse_prefix

TOKEN = re.compile(r"[^\s,;=()\[\]{}\"'|<>]+")
ALIKE = 0.6
"""Share of equal tokens from which shapes are one template; the authors use 0.4 to 0.6."""
MOST_DIGITS = 18
"""Digits of a variable that a 64-bit integer holds."""
LONGEST = 2000
"""Characters of a line that are looked at."""
_MEASURED = re.compile(r"[-+~$]?(?:0+(?:\.0+)?[eE][-+]?0+|0+\.0+)(?:%|[a-zA-Z/]{0,8})?|\.0+")
"""A measured number: no name of anything."""
_MOMENT = re.compile(r".*(?:0000[-/]00[-/]00|00:00:00|00:00).*")
_RUN = re.compile(r"0+")


@dataclass(frozen=True)
class Variable:
    """A token with digits: `number` among the tokens of the line, `mask`, and where its digits stand in the line."""

    number: int
    mask: str
    digits: tuple[int, ...]

    def text(self, value: int) -> str:
        """The token with the digits of a value put back."""
        left = iter(f"{value:0{len(self.digits)}d}")
        return "".join(next(left) if c == "0" else c for c in self.mask)


@dataclass(eq=False)
class Template:
    """`tokens`: None where they differ. `words`: for each such token without digits, what stood there by shape."""

    tokens: list[str | None]
    shapes: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Mask:
    """What is known of all lines of one mask."""

    shape: int
    template: int
    tokens: tuple[str, ...]
    variables: tuple[Variable, ...]
    example: str


class Templates:
    """Learns templates from masks."""

    def __init__(self) -> None:
        self.found: list[Template] = []
        self._shapes: dict[str, tuple[int, int]] = {}
        self._near: dict[tuple[int, str], list[int]] = {}

    def learn(self, mask: str, example: str) -> Mask:
        """A mask that was not seen before; `example` is a line of it."""
        prefix = parse_prefix(example)
        spans = [m.span() for m in TOKEN.finditer(mask[:LONGEST])]
        tokens = tuple(_RUN.sub("0", mask[a:b]) for a, b in spans)
        shape, template = self._placed(tokens)
        variables = tuple(v for n, (a, b) in enumerate(spans) if (v := _variable(n, a, mask[a:b], prefix)) is not None)
        return Mask(shape, template, tokens, variables, example[prefix.end:LONGEST])

    def _placed(self, tokens: tuple[str, ...]) -> tuple[int, int]:
        key = "\0".join(tokens)
        known = self._shapes.get(key)
        if known is None:
            known = self._shapes[key] = (len(self._shapes), self._template(tokens))
            self.found[known[1]].shapes.append(known[0])
        return known

    def _template(self, tokens: tuple[str, ...]) -> int:
        first = next((t for t in tokens if "0" not in t and t.isalpha()), "")
        near = self._near.setdefault((len(tokens), first), [])
        best = max(near, key=lambda i: _alike(self.found[i].tokens, tokens), default=None)
        if best is not None and _alike(self.found[best].tokens, tokens) >= ALIKE:
            held = self.found[best].tokens
            held[:] = [a if a == b else None for a, b in zip(held, tokens, strict=True)]
            return best
        self.found.append(Template(list(tokens)))
        if len(near) < 200:
            near.append(len(self.found) - 1)
        return len(self.found) - 1


def _alike(held: list[str | None], tokens: tuple[str, ...]) -> float:
    return sum(a == b for a, b in zip(held, tokens, strict=True)) / max(1, len(tokens))


def _variable(number: int, at: int, mask: str, prefix: Prefix) -> Variable | None:
    digits = tuple(at + i for i, c in enumerate(mask) if c == "0")
    ranked = prefix.rank_at is not None and at <= prefix.rank_at[0] < at + len(mask)
    dated = at < prefix.end and not ranked and not any(c.isalpha() for c in mask)
    if not 1 <= len(digits) <= MOST_DIGITS or dated or _MEASURED.fullmatch(mask) or _MOMENT.fullmatch(mask):
        return None
    return Variable(number, mask, digits)
