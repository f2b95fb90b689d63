"""A screen as lines for a terminal, as a page, and as findings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.experiments.finding import finding_of
from traindx_tools.experiments.screening.screen import Screened, Tried
from traindx_tools.finding import Finding
from traindx_tools.rules import rules_in

ROOM = "traindx_tools.experiments.screening.rules"
WORDS = {"goes": "the symptom goes", "better": "better", "alike": "no difference", "same": "bit for bit the same",
         "worse": "worse", "failed": "says nothing", "unread": "not measured"}
_ORDER = ("goes", "better", "worse", "alike", "same", "failed", "unread")
SHOWN = 12
"""Rows on a terminal; the page has all."""


def findings_of(screened: Screened) -> Iterator[Finding]:
    """What stands out, and the verdict of each experiment that was made on it."""
    for module in rules_in(ROOM):
        yield from module.check(screened)
    arms = {str(t.arm.change): t.arm for t in screened.tried}
    for result in screened.confirmed:
        told, arm = finding_of(result), arms[str(result.design.change)]
        yield replace(told, measured={**told.measured, "decides": ",".join(sorted(arm.modes)),
                                      "specific": arm.specific, "setting": arm.what, "now": arm.now,
                                      "to": arm.to})


def ordered(screened: Screened) -> list[Tried]:
    """What stands out first, then what makes it worse, then the rest by how much it changes."""
    return sorted(screened.tried, key=lambda t: (_ORDER.index(t.judged.word), -abs(t.judged.gain), t.arm.said))


def rows(screened: Screened) -> list[tuple[str, str, str]]:
    """(change, value, what it came to) of each arm."""
    return [(t.arm.said, shown(screened, t), _why(t)) for t in ordered(screened)]


def shown(screened: Screened, one: Tried) -> str:
    """What the run shows of the outcome."""
    if one.judged.word in ("failed", "unread") and math.isnan(one.judged.value):
        return "-"
    if screened.outcome.is_event:
        return "not seen" if math.isinf(one.judged.value) else f"at {one.judged.value:g}"
    return f"{one.judged.value:.4g}"


def _why(one: Tried) -> str:
    why = one.problem or one.judged.why
    return f"{WORDS[one.judged.word]}{f': {why}' if why else ''}"


def heading(screened: Screened) -> str:
    """What came out, in one line."""
    if screened.problem:
        return f"{screened.id}: {screened.problem}"
    found = screened.standing_out
    count = f"{len(screened.tried)} changes, one at a time, on {screened.outcome.said}"
    if not found:
        return f"{screened.id}: {count}: none of them takes it away"
    return f"{screened.id}: {count}: {found[0].arm.said} stands out" + (
        f", and {len(found) - 1} more" if len(found) > 1 else "")


def lines(screened: Screened, *, everything: bool = False) -> list[str]:
    """For a terminal."""
    out = [heading(screened)]
    told = rows(screened)
    most = len(told) if everything else SHOWN
    width = min(72, max((len(r[0]) for r in told[:most]), default=0))
    value = max((len(r[1]) for r in told[:most]), default=0)
    if not screened.problem:
        control = "" if screened.value is None else f"{screened.value:.4g}"
        out.append(f"  {'as it is':<{width}}  {control:<{value}}")
    out += [f"  {name:<{width}}  {seen:<{value}}  {why}" for name, seen, why in told[:most]]
    if len(told) > most:
        out.append(f"  and {len(told) - most} more (the page has all)")
    for result in screened.confirmed:
        out.append(f"  tried again with other seeds, {result.id}: {result.design.change}: {result.verdict.why}")
    if screened.left:
        out.append(f"  {len(screened.left)} more were not tried: {screened.seconds:.0f} of {screened.budget:.0f} s are "
                   "spent; the same command with a larger --budget and --resume goes on")
    return out


def page(screened: Screened) -> str:
    """Markdown: all arms in one table."""
    out = [f"# {heading(screened)}", "", f"- outcome: {screened.outcome.said} (`{screened.outcome}`)",
           f"- as it is: {'-' if screened.value is None else f'{screened.value:.6g}'}",
           f"- runs: {len(screened.tried)}, {screened.seconds:.1f} s of a budget of {screened.budget:.0f} s", "",
           "| change | value | |", "|---|---|---|"]
    out += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows(screened)]
    reasons = [f"- `{t.arm.said}`: {t.arm.why}" for t in screened.tried if t.arm.why]
    if reasons:
        out += ["", "Why each of these was tried, in this order:", "", *reasons]
    if screened.confirmed:
        out += ["", "Tried again with other seeds:", ""]
        out += [f"- {r.id}, `{r.design.change}`: {r.verdict.why}" for r in screened.confirmed]
    if screened.left:
        out += ["", "Not tried, for want of time:", "", *(f"- {a.said}" for a in screened.left)]
    return "\n".join(out) + "\n"
