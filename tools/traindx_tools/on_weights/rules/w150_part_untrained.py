"""A part of one block is still what an initialiser drew, among trained blocks and beside trained parts of its own.

Loading skipped some names, or a group of the optimizer left them out: an MLP, the half of a block, one projection of
three that are packed in one tensor. Whole blocks are those of `W104`. A part counts where it is independent draws by
three measures at once (spectrum, norms of its units and inputs, shape of the distribution), where the same part of the
other blocks clearly is not by these, and where something exact agrees: a bias of exactly zero whose siblings have
moved, or the bound of an initialiser. The deviation of a normal initialiser is not exact: values of the first block
may have hardly moved by right, so it counts behind that block alone, and between neighbours far from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.freshness import Matrix, freshness, matrix_of, parts
from traindx_tools.on_weights.initialisers import deviations, sharply_drawn
from traindx_tools.on_weights.rules import w104_initialised
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_FEWEST = 3
_SHARE = 0.25
_ERRORS, _FAR, _TIMES = 3.0, 3.0, 1.3
_MOST = 2**27
"""Bytes of all stacks that are looked at."""
_BY_DESIGN = ("expert", "lora", "adapter")
"""Experts that no token chose, and matrices that hardly move before their partner does."""

RULE = Rule(
    id="W150",
    name="part-untrained",
    title="A part of one block was never trained or never loaded",
    severity=Severity.HIGH,
    sees="spectrum, norms of rows and columns and shape of each matrix, and of thirds and halves of packed ones, "
         "against the same matrix of the other blocks; biases of exactly zero",
    matters="The part passes noise on: the block around it is as good as gone.",
    alike=("experts that were never chosen", "adapters before their first step", "a part that all blocks keep frozen"),
    confirm=("compare with an earlier checkpoint: the part has not moved", "print what load_state_dict returns",
             "look for the names in the groups of the optimizer"),
    thresholds={
        "blocks": Threshold(_FEWEST, "blocks", "of which all but a quarter at most are clearly trained in this part"),
        "errors": Threshold(_ERRORS, "standard errors", "from the deviation of an initialiser, where no bias tells"),
        "far": Threshold(_FAR, "tolerances", "of the neighbours above the edge of noise, there"),
        "times": Threshold(_TIMES, "times", "that the deviations of all others are off, or the neighbours' spectrum"),
    },
)


@dataclass(frozen=True)
class _Part:
    """A matrix that is still as it was drawn, or the lines of one.

    `exact`: what agrees with it beside its values; `sure`: to the bit, or to the bound.
    """

    stats: Stats
    lines: str
    exact: str
    sure: bool
    values: int

    @property
    def told(self) -> str:
        lines = f"{self.lines} of " if self.lines else ""
        return f"{lines}{self.stats.name} ({self.exact})"


def check(seen: Seen) -> Iterator[Finding]:
    """Each block with untrained parts, once."""
    blocks: dict[tuple[str, int], list[_Part]] = {}
    left = _MOST
    for stack in seen.stacks_from(_FEWEST):
        left -= sum(s.tensor.nbytes for s in stack.members)
        if stack.members[0].tensor.matrix and left >= 0 and not _by_design(seen, stack):
            for at, part in _untrained(seen, stack):
                blocks.setdefault((stack.pattern.partition("*")[0], stack.indexes[at]), []).append(part)
    if not blocks:
        return
    whole = {str(f.measured["name"]) for f in w104_initialised.check(seen) if f.measured["kind"] == "block"}
    for (head, index), found in sorted(blocks.items()):
        if f"{head}{index}" not in whole:
            yield _finding(seen, f"{head}{index}", found)


def _by_design(seen: Seen, stack: Stack) -> bool:
    return any(word in stack.pattern.lower() for word in _BY_DESIGN) or seen.is_table(stack.members[0])


def _untrained(seen: Seen, stack: Stack) -> Iterator[tuple[int, _Part]]:
    """The members, or their parts, that are draws where those of the others are trained."""
    loaded = [matrix_of(s) for s in stack.members]
    matrices = [m for m in loaded if m is not None]
    if len(matrices) < len(loaded):
        return
    whole = list(_odd(matrices))
    for at in whole:
        part = _whole(seen, stack, at, matrices)
        if part is not None:
            yield at, part
    if whole:
        return
    split = [parts(m) for m in matrices]
    for lines in split[0]:
        own = [p[lines] for p in split]
        for at in _odd(own):
            told = _initialiser(own[at], stack.members[at].tensor.shape) if _between(own, at) else ""
            if told:
                yield at, _Part(stack.members[at], lines, told, False, own[at].size)


def _odd(matrices: Sequence[Matrix]) -> Iterator[int]:
    """The few that are draws, where all others are trained."""
    known = [t for m in matrices if (t := freshness(m)) is not None]
    drawn = [i for i, t in enumerate(known) if t.drawn]
    trained = sum(t.trained for t in known)
    few = max(1, int(_SHARE * len(known)))
    if len(known) == len(matrices) >= _FEWEST and drawn and len(drawn) <= few and trained == len(known) - len(drawn):
        yield from drawn


def _between(matrices: Sequence[Matrix], at: int) -> bool:
    """Whether it stands behind the first block, and its neighbours are far from draws by their spectrum, or all others
    have another deviation by far.
    """
    own = float(np.sqrt((matrices[at] ** 2).mean()))
    others = [float(np.sqrt((m**2).mean())) for i, m in enumerate(matrices) if i != at]
    near = [matrices[i] for i in (at - 1, at + 1) if 0 <= i < len(matrices)]
    return at > 0 and (all(abs(np.log(r / own)) >= np.log(_TIMES) for r in others)
                       or all((t := freshness(m)) is not None and t.above >= _FAR for m in near))


def _whole(seen: Seen, stack: Stack, at: int, matrices: Sequence[Matrix]) -> _Part | None:
    """A whole matrix: None where its bias has moved and no bound says otherwise, or where only a deviation tells."""
    stats = stack.members[at]
    others = [s for s in stack.members if s is not stats]
    bias, biases = seen.bias_of(stats.name), [b for s in others if (b := seen.bias_of(s.name)) is not None]
    if bias is not None and bias.constant and biases and not any(b.constant for b in biases):
        return _Part(stats, "", f"and its bias is all {bias.low:g}", True, stats.size)
    sharp = sharply_drawn(stats)
    if sharp is not None and not any(sharply_drawn(s) for s in others):
        return _Part(stats, "", f"{sharp.name} to its bound", True, stats.size)
    if bias is not None or not _between(matrices, at):
        return None
    told = _initialiser(matrices[at], stats.tensor.shape)
    return _Part(stats, "", told, False, stats.size) if told else None


def _initialiser(values: Matrix, shape: tuple[int, ...]) -> str:
    """The usual normal initialiser that a part agrees with by its deviation, or ""."""
    rms, error = float((values**2).mean()) ** 0.5, _ERRORS / (2 * values.size) ** 0.5
    return next((n for n, d in deviations(shape).items() if abs(rms / d - 1) < error), "")


def _finding(seen: Seen, block: str, found: Sequence[_Part]) -> Finding:
    sure = any(p.sure for p in found)
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return RULE.finding(
        f"a part of {block} in {seen.path} is still as an initialiser drew it, and the same part of the other blocks "
        f"is trained: {', '.join(p.told for p in found[:4])}{more}; {sum(p.values for p in found):,} values",
        seen.where(found[0].stats.name), seen.path, bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.MEDIUM,
        measured={"kind": "part", "name": block, "tensors": tuple(p.stats.name for p in found),
                  "lines": found[0].lines, "values": sum(p.values for p in found)})
