"""The files of two splits give the same classes other numbers.

A list of files with a number each, or a map of names to numbers, is written for each split; where each counted the
classes by itself, or one was sorted otherwise, a number means one class in training and another one in validation. The
folder, or the name, of each file says which class it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.numbered_names import AGREE, EACH, FEWEST_LINES, Numbered, moved, of_lists, of_tables
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARED = 0.5
"""Share of the smaller one's names that both must have."""
FEWEST_LISTED = 3
SHOWN = 3

RULE = Rule(
    id="D198",
    name="numbered-otherwise",
    title="The same classes have other numbers in another split",
    severity=Severity.HIGH,
    sees="lists of files with a number each (their folder or first word is the class), and maps of names to numbers",
    matters="The model answers with the numbers of training, and the other split means another class by them.",
    alike=("A split that lacks a class, with the numbers of all others as they are.",
           "Numbers of another kind, such as a fold or a count: no folder or word tells them."),
    confirm=("Print one line of each file for each named class, side by side.",),
    thresholds={
        "agree": Threshold(AGREE, "share of the lines", "whose folder or first word tells the number"),
        "lines": Threshold(FEWEST_LINES, "lines", "of a list"),
        "each": Threshold(EACH, "lines", "of a class on both sides"),
        "shared": Threshold(SHARED, "of the smaller one's names", "that both have"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file that disagrees with the first one of training."""
    rows = [*view.numbered, *of_tables(view.sets)]
    for every in (rows, list(of_lists(view.name_lists))):
        told: set[str] = set()
        for usual in sorted(every, key=lambda n: n.split != "train"):
            for odd in every:
                if odd is usual or odd.file in told or usual.file in told or not _belong_together(usual, odd):
                    continue
                if moved(usual, odd):
                    told.add(odd.file)
                    yield _finding(usual, odd)


def _belong_together(usual: Numbered, odd: Numbered) -> bool:
    """Whether two files say the same of two splits, or are shards of one."""
    if usual.pattern != odd.pattern or (usual.split == odd.split and not usual.rows) or usual.field != odd.field:
        return False
    both = len(set(usual.numbers) & set(odd.numbers))
    fewest = 2 if usual.rows else FEWEST_LISTED
    return both >= fewest and both >= SHARED * min(len(usual.numbers), len(odd.numbers))


def _finding(usual: Numbered, odd: Numbered) -> Finding:
    names = moved(usual, odd)
    both = len(set(usual.numbers) & set(odd.numbers))
    one, other = os.path.basename(usual.file), os.path.basename(odd.file)
    shown = ", ".join(f"{n[:40]} is {usual.numbers[n]} in {one} and {odd.numbers[n]} in {other}" for n in names[:SHOWN])
    count = sum(odd.rows.get(n, 0) for n in names)
    return RULE.finding(
        f"{other} numbers {len(names):,} of {both:,} classes in another order than {one}: {shown}"
        + (f"; {count:,} lines" if count else ""),
        Location(file=odd.file),
        odd.file,
        bearing=Bearing.CAUSE,
        measured={"field": odd.field, "files": (usual.file, odd.file), "moved": len(names), "names": both,
                  "count": count, "kind": "lines" if odd.rows else "lists",
                  "map": tuple((n[:40], usual.numbers[n], odd.numbers[n]) for n in names[:20])},
    )
