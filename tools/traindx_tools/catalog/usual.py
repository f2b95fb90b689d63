"""Which causes are usual: the order of those between which the evidence of a run does not decide. See `usual.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.errors import CatalogError

NOT_USUAL = 10_000
"""The place of a cause that is not named."""


@lru_cache(maxsize=1)
def usual_first() -> Mapping[str, int]:
    """Failure modes and their places, the most usual first.

    Raises CatalogError where the table names none, or one twice.
    """
    named = table(shipped("usual.toml")).get("order")
    if not isinstance(named, list) or not named or len(set(named)) != len(named):
        raise CatalogError("usual.toml has no `order` that names each failure mode once: install traindx anew")
    return {str(name): place for place, name in enumerate(named)}
