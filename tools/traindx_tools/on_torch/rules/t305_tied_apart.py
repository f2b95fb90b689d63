"""Weights that were one parameter, or should be, are two.

`kind`: "came-apart" where two names were one parameter when training began and are two now (one of them was assigned
anew); "not-tied" where the configuration asks for tied embeddings and input and output embedding are two parameters;
"copied" where an output layer began as a copy of the embedding, value by value, and both are trained apart from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.membership import SOURCE
from traindx_tools.rules import Rule

RULE = Rule(
    id="T305",
    name="tied-apart",
    title="Tied weights are two parameters",
    severity=Severity.HIGH,
    sees="identity and values of embedding and output weights when training begins and at its end",
    matters="the two drift apart: the model that is saved, or generates, is not the one that was meant",
    alike=("two layers that start alike because they are copies (encoder layers): only embeddings are compared",),
    confirm=("print(model.get_input_embeddings().weight is model.get_output_embeddings().weight)",),
)

_WORDS = {"came-apart": "were one parameter when training began and are two now",
          "not-tied": "are two parameters although the configuration asks for tied embeddings",
          "copied": "began with the same values and are two parameters, trained apart"}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two names, what is wrong with them, and after how many steps it was seen."""

    kind: str
    one: str
    other: str
    step: int
    rank: int = 0


def check(pairs: Sequence[Pair]) -> Iterator[Finding]:
    """One finding a pair."""
    for pair in pairs:
        yield RULE.finding(
            f"{pair.one} and {pair.other} {_WORDS[pair.kind]} (step {pair.step})",
            Location(module=pair.other, step=float(pair.step), rank=pair.rank), SOURCE, bearing=Bearing.CAUSE,
            severity=Severity.MEDIUM if pair.kind == "copied" else Severity.HIGH,
            measured={"kind": pair.kind, "module": pair.other, "other": pair.one})
