"""The pairs of tokens that a byte-pair encoding beside the data merges, and how often they stand unmerged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array, Column

MOST_MERGES = 2**20
MOST_TOKENS = 2**21
"""Tokens of a shard that are looked at."""
FEWEST_MERGES = 50
_WIDE = np.int64(2**31)
_WHITE = "\u0120\u010a\u0109\u010d\u2581 \n\t\r"
"""White space as byte-level encodings and SentencePiece write it: runs of it are split before they are merged."""


def merges_of(jsons: Iterable[tuple[str, Any]]) -> tuple[str, Array] | None:
    """Where, and int64 shape (pairs, 2): the pairs of ids of the only tokenizer.json of a byte-pair encoding.

    None where there is none or several, and of one that leaves merges out at random (BPE dropout).
    """
    found = [(where, pairs) for where, data in jsons if (pairs := _pairs(data)) is not None]
    return found[0] if len(found) == 1 else None


def _pairs(data: Any) -> Array | None:
    model = data.get("model") if isinstance(data, dict) else None
    if not isinstance(model, dict) or model.get("dropout") or model.get("ignore_merges"):
        return None
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if not isinstance(vocabulary, dict) or not isinstance(merges, list):
        return None
    pairs = []
    for one in merges[:MOST_MERGES]:
        parts = one.split(" ") if isinstance(one, str) else one
        two = isinstance(parts, list) and len(parts) == 2 and all(isinstance(p, str) for p in parts)
        if two and parts[0].strip(_WHITE):
            ids = [vocabulary.get(p) for p in parts]
            if all(isinstance(i, int) and 0 <= i < _WIDE for i in ids):
                pairs.append(ids)
    return np.array(pairs, np.int64) if len(pairs) >= FEWEST_MERGES else None


def unmerged(column: Column, pairs: Array) -> tuple[float, int, Array]:
    """The share of neighbouring tokens that the encoding merges, of how many, and where they stand (the first of each).

    Pairs over the end of a row are none.
    """
    values = np.asarray(column.values)
    flat = values.reshape(-1)[:MOST_TOKENS].astype(np.int64)
    if len(flat) < 2:
        return 0.0, 0, np.zeros(0, np.int64)
    codes = flat[:-1] * _WIDE + flat[1:]
    within = np.ones(len(codes), np.bool_)
    if column.offsets is not None:
        ends = np.asarray(column.offsets[1:-1], np.int64) - 1
        within[ends[(ends >= 0) & (ends < len(within))]] = False
    elif values.ndim > 1:
        width = int(np.prod(values.shape[1:]))
        within[width - 1::width] = False
    within &= (flat[:-1] >= 0) & (flat[1:] >= 0)
    known = np.sort(pairs[:, 0] * _WIDE + pairs[:, 1])
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    found = within & (known[at] == codes)
    count = int(within.sum())
    return (float(found.sum()) / count if count else 0.0), count, np.flatnonzero(found)
