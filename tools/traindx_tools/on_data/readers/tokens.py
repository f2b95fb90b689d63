"""Tokenised text without a header: a file of unsigned integers, as memory maps of language models are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column, Damage
from traindx_tools.on_data.readers.bounds import Bounds, sampled
from traindx_tools.on_data.shard import Shard

FEWEST = 64
"""Tokens below which nothing can be told."""
A_SECOND = 2**19
"""Tokens that are read and judged in a second."""
MOST_TOKEN = 2**20
"""Ids above this are no tokens: the largest vocabularies have 260,000."""
SMALL = MOST_TOKEN >> 16
APART = 0.4
ALIKE = 0.08
"""Total variation of even and odd bytes; of 50,000 ids that are all as frequent it is 0.23."""
UNEVEN = 0.3
"""The same of a text's bytes from bytes that are all as frequent."""
HIGHEST = 65_000
"""Noise of 4,096 words reaches beyond it; a vocabulary of 16 bits seldom does."""


def read_tokens(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The ids, uint8, uint16 or uint32 as the bytes suggest; UnreadableInput for anything that is no text of ids."""
    size = path.stat().st_size
    if size < 2 * FEWEST:
        raise UnreadableInput("too short for tokens")
    form = _dtype(path)
    width = form.itemsize
    cut = Damage(f"its {size:,} bytes are no multiple of {width}: the last token is cut", width=width)
    damage = (cut,) if size % width else ()
    mapped = np.memmap(path, form, "r", shape=(size // width,))
    read, numbers = sampled(mapped, bounds.within_time(A_SECOND))
    notes = () if numbers is None else (f"{len(read):,} of {len(mapped):,} tokens were looked at",)
    column = Column("tokens", "number", read, name)
    return (
        Shard(
            name,
            f"tokens ({form})",
            {"tokens": column},
            len(read),
            len(mapped),
            numbers=numbers,
            damage=damage,
            notes=notes,
        ),
    )


def _dtype(path: Path) -> np.dtype[np.unsignedinteger]:
    """uint32 where every second 16-bit word is nearly always small and the words between them are not, uint8 where both
    bytes of a word are the same text, else uint16."""
    with path.open("rb") as stream:
        head = stream.read(2**20)
    words = np.frombuffer(head[: len(head) // 8 * 8], "<u2")
    wide = words[1::2]
    if len(wide) and float(np.mean(wide < SMALL)) > 0.99 and _apart(words[0::2], wide) > APART:
        return np.dtype("<u4")
    if _looks_random(words):
        raise UnreadableInput("binary data of no known format")
    return np.dtype("u1") if _is_of_bytes(words.view(np.uint8)) else np.dtype("<u2")


def _is_of_bytes(text: Array) -> bool:
    """Whether even and odd bytes are the same text, and one of few frequent bytes.

    The high bytes of 16-bit ids are of far fewer kinds than the low ones, but for ids that use all 65,536 evenly.
    """
    half = max(1, len(text) // 2)
    shares = [np.bincount(text[k::2], minlength=256) / half for k in (0, 1)]
    kinds = int(np.count_nonzero(shares[0] + shares[1]))
    by_chance = math.sqrt(kinds / (math.pi * half))  # mean total variation of two samples of one text, at most
    even = float(np.abs(shares[0] + shares[1] - 2.0 / 256).sum()) / 4.0
    return by_chance < ALIKE and even > UNEVEN and float(np.abs(shares[0] - shares[1]).sum()) / 2.0 < ALIKE + by_chance


def _apart(low: Array, high: Array) -> float:
    """Total variation of two samples of words, those from `SMALL` on taken together.

    Of tokens of 16 bits both are the same text: near 0 also where the vocabulary has four letters.
    """
    shares = [np.bincount(np.minimum(w, SMALL), minlength=SMALL + 1) / len(w) for w in (low, high)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2.0


def _looks_random(words: Array) -> bool:
    """Whether 16-bit words are spread over all values as no text is: half of a text's tokens are of few kinds."""
    counts = np.sort(np.unique(words, return_counts=True)[1])[::-1]
    top = counts[: max(1, len(counts) // 10)].sum() / max(1, len(words))
    return bool(len(words) > 4096 and top < 0.15 and words.max() > HIGHEST)
