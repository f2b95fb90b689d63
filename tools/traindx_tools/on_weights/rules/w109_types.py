"""One block is stored in another type than its siblings, or was rounded to a narrower one.

Matrices in bfloat16 beside scales in float32 is design: compared is the same tensor of other blocks. A float32 tensor
of which every value fits bfloat16 or float16 was cast there and back; where its siblings were not, its last digits are
lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen, Stack
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


def check(seen: Seen) -> Iterator[Finding]:
    """Stacks in which few members have another type, or were rounded."""
    told: set[str] = set()
    for stack in seen.stacks:
        for stats, usual, own in _odd(stack, lambda s: s.tensor.dtype):
            told.add(stats.name)
            yield _finding(seen, stats, stack, f"is stored as {own}", f"are {usual}", "type", own)
        for stats, _, own in _odd(stack, lambda s: s.rounded_to if s.tensor.matrix else ""):
            if own and stats.name not in told:
                yield _finding(seen, stats, stack, f"is float32 with values that were rounded to {own}",
                               "were not rounded", "rounded", own)


def _odd(stack: Stack, ask: Callable[[Stats], str]) -> Iterator[tuple[Stats, str, str]]:
    """The members whose answer is that of at most a quarter, with the usual answer and their own."""
    answers = [ask(s) for s in stack.members]
    usual, count = Counter(answers).most_common(1)[0]
    if count == len(stack) or count < 0.75 * len(stack):
        return
    yield from ((s, usual, a) for s, a in zip(stack.members, answers, strict=True) if a != usual)


def _finding(seen: Seen, stats: Stats, stack: Stack, what: str, others: str, kind: str, own: str) -> Finding:
    edge = stats in (stack.members[0], stack.members[-1]) and own in ("float32", "float64")
    return RULE.finding(
        f"{stats.name} in {seen.path} {what}; its {len(stack) - 1} siblings ({stack.pattern}) {others}",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN, severity=Severity.INFO if edge else None,
        measured={"name": stats.name, "kind": kind, "type": own})
