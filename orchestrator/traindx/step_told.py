"""What a replayed step came to, as lines for a person: first whether it is the captured step, then what changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from traindx.step_replay import Answer

SAID = {"removes": "removes the symptom", "moves": "moves it", "no-effect": "no effect", "untried": "cannot be tried"}
MOST = 5
"""Modules and gradients that are named."""


def lines(answer: Answer) -> Iterator[str]:
    """One after the other."""
    told = answer.told
    if answer.why:
        yield f"not replayed: {answer.why}"
    study = told.get("study") or {}
    if study and not answer.why:
        yield f"replayed in {answer.seconds:.1f} s; without a change it is {_same(study)}"
        for finding in answer.findings:
            yield f"{finding.rule}: {finding.statement}"
        yield from _table(study.get("tried", ()))
    if told.get("origin"):
        yield f"origin of what is not finite: {told['origin']}"
    yield from _observed(told.get("observed") or {})
    changed = told.get("changed") or ()
    if changed and not answer.why:
        yield f"set back to what it was at the step: {', '.join(map(str, changed[:8]))}"
    for remark in told.get("remarks") or ():
        yield f"note: {remark}"
    if answer.page is not None:
        yield str(answer.page)


def _same(study: Mapping[str, Any]) -> str:
    if study.get("exact"):
        return "the captured step bit for bit (loss and update)"
    off = float(study.get("difference") or 0.0)
    return f"the captured step within {off:.1g} of its loss" if off else (
        "the captured loss bit for bit, and the update within rounding")


def _table(tried: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    done = [t for t in tried if t["word"] != "untried"]
    width = max((len(str(t["change"])) for t in done), default=0)
    for one in done:
        yield f"  {one['change']!s:<{width}}  {SAID[one['word']]:<19}  {one['why']}"
    rest = [str(t["change"]) for t in tried if t["word"] == "untried"]
    if rest:
        yield f"  cannot be tried (why: in the table): {', '.join(rest)}"


def _observed(observed: Mapping[str, Any]) -> Iterator[str]:
    outputs = observed.get("outputs") or ()
    bad = next((o for o in outputs if _number(o["bad"]) > 0), None)
    if bad is not None:
        yield (f"first output that is not finite: {bad['module']} ({bad['kind']}), {_number(bad['bad']):.1%} of its "
               "values")
    finite = [o for o in outputs if _number(o["bad"]) < 1]
    largest = sorted(finite, key=lambda o: -_number(o["largest"]))[:MOST]
    if largest:
        yield "largest outputs: " + ", ".join(f"{o['module']} {_number(o['largest']):.3g}" for o in largest)
    gradients = sorted(observed.get("gradients") or (), key=lambda g: -_number(g["gradient"]))[:MOST]
    if gradients:
        yield "largest gradients: " + ", ".join(f"{g['parameter']} {_number(g['gradient']):.3g}" for g in gradients)


def _number(value: Any) -> float:
    """A number; one that is not finite stands as text, and sorts first."""
    number = float(value)
    return float("inf") if number != number else number
