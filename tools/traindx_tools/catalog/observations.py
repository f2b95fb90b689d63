"""What an observation of a run looks like to a person: the symptoms that a finding shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.finding import Finding

TABLE = shipped("observations.toml")


@lru_cache(maxsize=1)
def load_observations() -> Mapping[str, frozenset[str]]:
    """The symptoms (`catalog.SYMPTOMS`) that each rule's findings show, by rule."""
    return {rule: frozenset(kinds) for rule, kinds in table(TABLE).items()}


def shows(finding: Finding) -> frozenset[str]:
    """The symptoms that a finding shows; none where it shows a cause, or is text."""
    return load_observations().get(finding.rule, frozenset())
