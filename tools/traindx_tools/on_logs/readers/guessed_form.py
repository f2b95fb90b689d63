"""A template for `--line`, guessed from lines of which nothing was used: which number counts, which may be the loss.

What it names is a suggestion for a person to correct, never read by itself. Only the course of the numbers is asked: a
whole number that grows from line to line counts, one that is written with an exponent may be a learning rate, and the
first other fraction may be the loss where none was read. All further fractions get a name that stands for nothing yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.readers.counters import EPOCH, counter_kind
from traindx_tools.on_logs.readers.line_forms import parse_form
from traindx_tools.on_logs.readers.line_tokens import split
from traindx_tools.on_logs.readers.numbers import value, whole

FEWEST = 2
"""Lines of one shape from which it can be told what grows."""
_NAMED = 4
"""Metrics that a template names at most."""


def guessed(lines: Sequence[str], known: Collection[str]) -> str:
    """A template that all of the lines have, "" where none can be guessed.

    `lines`: messages without the prefix of a logger, in their order; those of the first one's shape are compared.
    `known`: canonical names that the log gave by itself.
    """
    cut = [split(line.strip()) for line in lines]
    alike = [parts for parts in cut if parts[::2] == cut[0][::2]]
    if len(alike) < FEWEST or any(mark in text for text in alike[0][::2] for mark in "{}"):
        return ""
    texts, numbers = alike[0][::2], list(zip(*(parts[1::2] for parts in alike), strict=True))
    names = _names(texts, numbers, known)
    last = max((i for i, name in enumerate(names) if name not in ("", "{}")), default=-1)
    if last < 0 or all(name in ("", "{}", "{step}", "{epoch}") for name in names):
        return ""
    first = next(i for i, name in enumerate(names) if name != "{}")
    told = texts[first] if first or texts[first].strip() else ""
    for i in range(first, last + 1):
        told += names[i] or numbers[i][0]
        told += texts[i + 1] if i < last else ""
    return told.strip() if _holds(told.strip(), lines[:1]) else ""


def _names(texts: Sequence[str], numbers: Sequence[tuple[str, ...]], known: Collection[str]) -> list[str]:
    """What stands in the place of each number: a name, "{}" for what is passed over, "" for what stays as it is."""
    names: list[str] = []
    free = [n for n in ("loss",) if n not in known] + [f"metric_{i}" for i in range(1, _NAMED + 1)]
    for i, seen in enumerate(numbers):
        before, after = texts[i], texts[i + 1]
        glued = before[-1:].isalpha() or before[-1:] == "_" or after[:1].isalpha() or after[:1] == "_"
        total = before.strip() == "/" and all(whole(n) is not None for n in seen)
        if glued or total or any(value(n) is None for n in seen):
            names.append("" if glued or total else "{}")
        elif _grows(seen):
            names.append(_counter(before) if not {"{step}", "{epoch}"} & set(names) else "{}")
        elif all("e" in n.lower() for n in seen) and "{lr}" not in names and "learning_rate" not in known:
            names.append("{lr}")
        elif free and any("." in n for n in seen):
            names.append(f"{{{free.pop(0)}}}")
        else:
            names.append("{}")
    return names


def _grows(seen: Sequence[str]) -> bool:
    counts = [whole(n) for n in seen]
    return all(c is not None for c in counts) and all(
        a < b for a, b in itertools.pairwise(counts) if a is not None and b is not None)


def _counter(before: str) -> str:
    word = before.split()[-1].strip("[(:=#").lower() if before.split() else ""
    kind = counter_kind(word)
    return "{epoch}" if kind is not None and kind[0] == EPOCH else "{step}"


def _holds(template: str, lines: Sequence[str]) -> bool:
    """Whether it is one that `--line` takes and the lines have."""
    try:
        form = parse_form(template)
    except UnreadableInput:
        return False
    return all(form.spans(line, 0) is not None for line in lines)
