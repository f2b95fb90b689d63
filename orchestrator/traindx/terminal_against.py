"""The block of `traindx diagnose --against`: where the runs part, what differs, what to change back first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from traindx.page import Page
from traindx.safe_text import block, line

_MOST_IN_BRIEF = 3
_MOST_METRICS, _MOST_DIFFERENCES, _MOST_DIFF_LINES, _MOST_STEPS = 4, 8, 24, 3


def comparison_lines(comparison: Mapping[str, Any] | None, page: Page) -> Iterator[str]:
    """The lines of the block; none where nothing was compared."""
    if comparison is None:
        return
    yield page.heading("Beside the run that works", line(", ".join(comparison["there"])))
    yield from _metrics(comparison, page)
    yield from _events(comparison.get("events", ()), page)
    yield from _ranked(comparison["ranked"], page)
    yield from _code(comparison["code"], page)
    for remark in comparison["remarks"]:
        yield from page.wrap(remark, "    ", "  note: ")


def brief_comparison(comparison: Mapping[str, Any] | None, page: Page) -> Iterator[str]:
    """Where the runs part, and the likeliest differences, in a few lines."""
    if comparison is None:
        return
    parted = [m for m in comparison["metrics"] if m["step"] is not None]
    first = parted[0]["statement"] if parted else "no metric differs beyond noise"
    yield from page.labelled("Beside", f"{line(', '.join(comparison['there']))}: {first}", most=2)
    if comparison.get("nearest"):
        yield from page.labelled("", line(comparison["nearest"]), most=2)
    for number, found in enumerate(comparison["ranked"][:_MOST_IN_BRIEF], 1):
        yield from page.labelled("", f"{number}. {found['kind']}: {found['statement']}", most=2)
    more = len(comparison["ranked"]) - _MOST_IN_BRIEF
    if more > 0:
        yield from page.labelled("", f"and {more} more differences with {page.more}")


def _metrics(comparison: Mapping[str, Any], page: Page) -> Iterator[str]:
    parted = [m for m in comparison["metrics"] if m["step"] is not None]
    for metric in parted[:_MOST_METRICS]:
        yield from page.wrap(metric["statement"], "      ", "  ")
    if len(parted) > _MOST_METRICS:
        yield from page.wrap("later: " + _names(m["name"] for m in parted[_MOST_METRICS:]), "      ", "  ")
    alike = [m["name"] for m in comparison["metrics"] if m["step"] is None]
    for words, names in (("no difference beyond noise", alike),
                         ("logged by the broken run only", comparison["only_here"]),
                         ("logged by the working run only", comparison["only_there"])):
        if names:
            yield from page.wrap(f"{words}: {_names(names)}", "      ", "  ")


def _events(events: Sequence[Mapping[str, Any]], page: Page) -> Iterator[str]:
    for here, run in ((True, "the broken run"), (False, "the run that works")):
        mine = [e for e in events if e.get("here", True) is here]
        if mine:
            yield "  " + page.paint(f"What only the log of {run} says, the earliest first", "bold")
        for event in mine[:_MOST_DIFFERENCES]:
            yield from page.wrap(line(event["statement"]), "       ", "     ")


def _names(names: Any, most: int = 10) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _ranked(ranked: Sequence[Mapping[str, Any]], page: Page) -> Iterator[str]:
    if not ranked:
        return
    yield "  " + page.paint("What differs, the likeliest to explain it first", "bold")
    for i, found in enumerate(ranked[:_MOST_DIFFERENCES], 1):
        why = f" ({'; '.join(found['why'])})" if found["why"] else ""
        yield from page.wrap(f"{found['kind']}: {found['statement']}{why}", "       ", f"    {i:>2} ")
    if len(ranked) > _MOST_DIFFERENCES:
        yield f"       and {len(ranked) - _MOST_DIFFERENCES} more, all in the report and in --json"
    steps = [found["undo"] for found in ranked if found["weight"] >= 0.5][:_MOST_STEPS]
    if steps:
        yield from page.wrap(f"Change one at a time and run again after each: {'; then '.join(steps)}", "    ", "  ")


def _code(code: Sequence[Mapping[str, Any]], page: Page) -> Iterator[str]:
    differ = [c for c in code if c["diff"] and c["functions"]]
    for found in differ[:2]:
        rows = found["diff"].splitlines()
        for row in rows[:_MOST_DIFF_LINES]:
            yield "       " + page.paint(block(row), {"+": "added", "-": "removed"}.get(row[:1], "quiet"))
        if len(rows) > _MOST_DIFF_LINES:
            yield f"       ... {len(rows) - _MOST_DIFF_LINES} more lines of {line(found['name'])}"
