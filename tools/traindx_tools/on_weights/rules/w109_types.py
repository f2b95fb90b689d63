"""One block is stored in another type than its siblings, or passed through a narrower one.

Matrices in bfloat16 beside scales in float32 is design: compared is the same tensor of other blocks. A tensor of
float32 or float64 of which every value fits a narrower type, or is a whole number of steps of eight bits, was
cast or quantised
there and back; where its siblings were not, its last digits are lost. A matrix without siblings is compared with all
others of its type; there a table of words or what is called frozen may have come from a file of narrower numbers, and
is remarked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.grain import grain_of, in_steps
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.rules.w118_stale_part import said_frozen
from traindx_tools.on_weights.seen import FEWEST_SIBLINGS, Seen, Stack
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule

RULE = Rule(
    id="W109",
    name="mixed-types",
    title="One block has another type or fewer digits than its siblings",
    severity=Severity.MEDIUM,
    sees="The stored type of each tensor and whether its values were rounded, against the same tensor of other blocks.",
    matters="Operations between the types fail or promote; what was rounded has lost small updates.",
    alike=("scales kept in float32 on purpose", "a first or last layer kept wider on purpose"),
    confirm=("print the types of the state dict", "look for the module that is cast alone (.half(), .to(bfloat16))"),
)
_PASSED = {"bfloat16": "were rounded to bfloat16", "float16": "were rounded to float16",
           "float32": "were rounded to float32", "steps": "are whole steps of eight bits or fewer: it was quantised"}


def check(seen: Seen) -> Iterator[Finding]:
    """Stacks in which few members have another type, or were rounded."""
    told: set[str] = set()
    for stack in seen.stacks:
        for stats, usual, own in _odd(stack.members, lambda s: s.tensor.dtype):
            told.add(stats.name)
            yield _finding(seen, stats, stack, f"is stored as {own}", f"are {usual}", "type", own)
        for stats, _, own in _odd(stack.members, lambda s: grain_of(s) if s.tensor.matrix else ""):
            if own and stats.name not in told and not _all_in_steps(own, stats, stack.members):
                told.add(stats.name)
                yield _finding(seen, stats, stack, f"is {stats.tensor.dtype} with values that {_PASSED[own]}",
                               "were not rounded", "rounded", own)
    yield from _alone(seen, told)


def _alone(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """Matrices that no stack holds, against all of their type."""
    for dtype in ("float32", "float64"):
        alike = [s for s in seen.weights if s.tensor.dtype == dtype]
        if len(alike) < FEWEST_SIBLINGS:
            continue
        for stats, _, own in _odd(alike, grain_of):
            if own and stats.name not in told and stats.name not in seen.stack_of and not _all_in_steps(
                    own, stats, alike):
                kept = own != "steps" and (is_embedding(stats) or said_frozen(stats.name))
                yield RULE.finding(
                    f"{stats.name} in {seen.path} is {dtype} with values that {_PASSED[own]}; the other matrices of "
                    f"that type ({len(alike)} with it) were not rounded", seen.where(stats.name), seen.path,
                    bearing=Bearing.SIGN, severity=Severity.INFO if kept else None,
                    measured={"name": stats.name, "kind": "rounded-alone", "type": own})


def _all_in_steps(own: str, stats: Stats, members: Sequence[Stats]) -> bool:
    """Whether the siblings are whole steps as well: even ones, as of few training steps, are not called so by grain."""
    return own == "steps" and all(in_steps(m) for m in members if m is not stats)


def _odd(members: Sequence[Stats], ask: Callable[[Stats], str]) -> Iterator[tuple[Stats, str, str]]:
    """The members whose answer is that of at most a quarter, with the usual answer and their own."""
    answers = [ask(s) for s in members]
    usual, count = Counter(answers).most_common(1)[0]
    if count == len(members) or count < 0.75 * len(members):
        return
    yield from ((s, usual, a) for s, a in zip(members, answers, strict=True) if a != usual)


def _finding(seen: Seen, stats: Stats, stack: Stack, what: str, others: str, kind: str, own: str) -> Finding:
    edge = stats in (stack.members[0], stack.members[-1]) and own in ("float32", "float64")
    return RULE.finding(
        f"{stats.name} in {seen.path} {what}; its {len(stack) - 1} siblings ({stack.pattern}) {others}",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN, severity=Severity.INFO if edge else None,
        measured={"name": stats.name, "kind": kind, "type": own})
