"""Which experiment next: the one that is expected to tell most for what it costs.

`catalog/experiments.toml` says which failure modes a change takes the symptom from. Before a run it is known how likely
each mode is; the mutual information between "which mode" and "does the symptom go" is what the experiment is expected
to tell, in bits. It is divided by the seconds that the experiment takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.trace import LOOKED_FOR_BY_ITSELF

SENSITIVITY = 0.9
"""How often a change takes the symptom away where one of its modes is the cause; assumed, for the choice alone: what a
result is worth afterwards is measured (`catalog/precision.py`)."""

FALSE_RATE = 0.1
"""How often it does where none of them is; assumed as above."""

FALSE_SPECIFIC = 0.02
"""The same of a change that undoes one mode and nothing else (one line, one shard): few symptoms go by accident."""

HELD_OUT = "held-out"
"""Of `Decision.moves`: every metric of data that is not trained on."""
HELD_OUT_WORDS = frozenset({"validation", "test"})

LEAST_BITS = 0.02
"""Below, an experiment is not worth a run."""


@dataclass(frozen=True)
class Decision:
    """What a change decides. `removes`: the failure modes whose symptom goes with it; `why`: the reason, a sentence.

    `runs`: how many runs it takes besides the control.
    """

    change: Change
    removes: frozenset[str]
    why: str
    runs: int = 1
    needs: str = ""
    """A regular expression for the run's code, without which the change has nothing to take hold of; "": none."""
    has: tuple[str, ...] = ()
    """Parts (`Trace.parts`) of which a run that was watched shows one where the change has something to take hold of.
    """
    specific: bool = False
    """It undoes these modes and nothing else: its patch, its shard left out."""
    moves: frozenset[str] = frozenset()
    """Outcomes, by kind or HELD_OUT, that it moves whatever the cause is: training on one batch lowers the training
    loss and ruins every held-out metric."""
    seldom: float = 1.0
    """How many times as likely its modes are where the part that it takes hold of was seen: few programs have it.
    Assumed, for the choice alone."""
    said: str = ""
    """The change in words of this run, "" where its name says it."""
    settings: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    """Names of settings, and of sections of them, by which programs make this change themselves: times what the change
    says, or off."""

    def fits(self, code: str, parts: Mapping[str, str]) -> bool:
        """Whether it has something to take hold of. `parts`: what a run was seen to have, empty where none was watched;
        then the program's text says it."""
        if any(p in parts for p in self.has):
            return True
        if self.has and not parts.keys() <= LOOKED_FOR_BY_ITSELF:
            return False
        return not self.needs or re.search(self.needs, code) is not None

    def seen(self, parts: Mapping[str, str]) -> str:
        """What of the program it takes hold of, in words; "" where nobody looked."""
        return next((parts[p] for p in self.has if p in parts), "")

    def decides(self, outcome: Outcome) -> bool:
        """Whether the outcome, seen with the change, says anything of its modes."""
        held_out = any(w in HELD_OUT_WORDS for name in (outcome.metric, outcome.other) for w in name.lower().split())
        return outcome.kind not in self.moves and not (held_out and HELD_OUT in self.moves)


@dataclass(frozen=True)
class Choice:
    """The experiment to make next, what it is expected to tell (bits) and to cost (seconds)."""

    decision: Decision
    bits: float
    seconds: float
    suspects: tuple[str, ...]
    """The modes that it would speak for, the likeliest first."""


def information(decision: Decision, beliefs: Mapping[str, float]) -> float:
    """Mutual information in bits between the cause and whether the symptom goes.

    `beliefs`: probability of each mode; what is missing to 1 is on causes that nothing is known of.
    """
    total = sum(beliefs.values())
    scale = 1.0 / total if total > 1.0 else 1.0
    inside = scale * sum(p for mode, p in beliefs.items() if mode in decision.removes)
    falsely = FALSE_SPECIFIC if decision.specific else FALSE_RATE
    gone = inside * SENSITIVITY + (1.0 - inside) * falsely
    return _entropy(gone) - inside * _entropy(SENSITIVITY) - (1.0 - inside) * _entropy(falsely)


def choose(decisions: Iterable[Decision], beliefs: Mapping[str, float], *, run_seconds: float, left: float,
           done: Iterable[str] = ()) -> Choice | None:
    """The experiment that tells most a second, None where none is worth a run or fits into what is left.

    `run_seconds`: what one run takes; `left`: seconds of the budget; `done`: changes that were tried, as text.
    """
    tried = frozenset(done)
    found = [weighed(d, beliefs, run_seconds) for d in decisions if str(d.change) not in tried]
    worth = [c for c in found if c.bits >= LEAST_BITS and c.seconds <= left]
    return max(worth, key=lambda c: (c.bits / max(c.seconds, 1e-9), c.bits, str(c.decision.change)), default=None)


def with_seen(beliefs: Mapping[str, float], decisions: Iterable[Decision], parts: Mapping[str, str]
              ) -> dict[str, float]:
    """Beliefs once it is known what the watched run has; their sum stays, and so does what is unknown."""
    times = {mode: d.seldom for d in decisions if d.seldom > 1 and d.seen(parts) for mode in d.removes}
    raised = {mode: p * times.get(mode, 1.0) for mode, p in beliefs.items()}
    before, after = sum(beliefs.values()), sum(raised.values())
    return {mode: p * before / after for mode, p in raised.items()} if after > 0 else raised


def weighed(decision: Decision, beliefs: Mapping[str, float], run_seconds: float) -> Choice:
    """What a change is expected to tell and to cost."""
    suspects = sorted((m for m in beliefs if m in decision.removes), key=lambda m: (-beliefs[m], m))
    return Choice(decision, information(decision, beliefs), run_seconds * decision.runs, tuple(suspects))


def beliefs_of(ranked: Sequence[tuple[str, float]], others: Iterable[str]) -> dict[str, float]:
    """Probabilities of modes: the ranked ones at their confidence, the others share half of what is left.

    `others`: modes that would show the same symptom and for which nothing speaks yet. The other half stays unknown.
    """
    told = dict(ranked)
    total = sum(told.values())
    if total > 1.0:
        told = {mode: p / total for mode, p in told.items()}
    rest = [m for m in dict.fromkeys(others) if m not in told]
    left = max(0.0, 1.0 - sum(told.values())) / 2.0
    return {**told, **({m: left / len(rest) for m in rest} if rest else {})}


def _entropy(p: float) -> float:
    return 0.0 if p <= 0.0 or p >= 1.0 else -(p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p))
