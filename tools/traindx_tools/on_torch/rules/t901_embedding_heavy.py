"""Most of the parameters are embeddings and little is left to compute with them.

A table of token vectors learns the frequency of tokens. If the trunk behind it is starved (a vocabulary of 50,000 on a
width of 512 with two blocks), the cheapest solution is the most frequent token for every input: the loss falls to the
unigram entropy and stays. Large tables are right in recommenders and in small models with large vocabularies that still
have depth; alone this is a remark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.architecture.counts import Counts

SHARE, FEWEST = 0.7, 10_000

RULE = Rule(
    id="T901",
    name="embedding-heavy",
    title="Most parameters are embeddings",
    severity=Severity.LOW,
    sees="parameter counts by kind of layer, tied tensors once",
    matters="a starved trunk answers with the most frequent token whatever the input",
    alike=("recommenders, whose tables are the model", "embeddings tied to the output, counted once here"),
    confirm=("outputs for different inputs are the same token", "a trunk twice as deep lowers the loss at once"),
    thresholds={"share": Threshold(SHARE, "of all parameters",
                                   "one part with more than 70 to 80 % of the parameters and a starved trunk")},
)


def check(architecture: Counts, source: str, beside: int = 0) -> Iterator[Finding]:
    """One finding where embeddings hold at least 70 % of the parameters.

    `beside`: parameters of other modules that are trained with this one, as where a program has no one model around
    its parts.
    """
    parameters = architecture.parameters + beside
    embedded = architecture.by_kind.get("embedding", 0)
    if parameters < FEWEST or embedded < SHARE * parameters:
        return
    share, trunk = embedded / parameters, parameters - embedded
    path = next(p for p, *_ in architecture.largest)
    yield RULE.finding(
        f"{share:.0%} of the {parameters:,} parameters are embeddings (largest: {path}); the rest of the model has "
        f"{trunk:,}", Location(module=path.rpartition(".")[0] or path), source, bearing=Bearing.COMPANION,
        measured={"share": round(share, 3), "parameters": parameters, "trunk": trunk})
