"""Terms of the field in plain words: read from `terms.toml`, named on the pages of `traindx explain`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.errors import CatalogError

MOST = 6
"""Terms that one page explains: a longer list is not read."""

EVERYDAY = frozenset({"loss", "batch", "epoch", "gradient", "optimizer", "learning rate"})
"""Left out first where a page holds more than `MOST`: who trains a model meets them daily."""


@dataclass(frozen=True)
class Term:
    """`words` finds it in a page; `plain` says what it is, without other terms."""

    name: str
    words: re.Pattern[str]
    plain: str


@lru_cache(maxsize=1)
def load_terms() -> tuple[Term, ...]:
    """What comes with traindx. Raises CatalogError that says what is wrong."""
    rows = table(shipped("terms.toml")).get("term")
    if not isinstance(rows, list):
        raise CatalogError("terms.toml names no [[term]]: install traindx anew")
    try:
        return tuple(Term(str(r["name"]), re.compile(r["words"], re.IGNORECASE), str(r["plain"])) for r in rows)
    except (KeyError, TypeError, re.error) as error:
        raise CatalogError(f"terms.toml: {error!r} in a [[term]]: it has name, words and plain") from error


def terms_in(text: str) -> tuple[Term, ...]:
    """The terms that a text holds, in the order in which they come, at most `MOST`."""
    first = {t: found.start() for t in load_terms() if (found := t.words.search(text))}
    kept = sorted(first, key=lambda t: (t.name in EVERYDAY, first[t]))[:MOST]
    return tuple(sorted(kept, key=lambda t: first[t]))
