"""Sequences as text with a line of their own for the name: FASTA, and FASTQ with a quality for each letter.

What stands behind the name as `key=value` becomes a field where nearly all records have it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Column, Damage
from traindx_tools.on_data.readers.arrays import text_column
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.delimited import table_column
from traindx_tools.on_data.readers.json_lines import opened
from traindx_tools.on_data.shard import Shard

NEARLY_ALL = 0.9
_SAID = re.compile(r"([A-Za-z_][\w.-]*)=(\S+)")

Record = tuple[str, str, str]
"""The line of the name, the letters, and the qualities ("" of FASTA)."""


def read_fasta(path: Path, name: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The records. Raises UnreadableInput where there are none."""
    damage: list[Damage] = []
    try:
        with opened(path) as raw:
            lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in raw)
            records = list(_bounded(_records(lines, damage), bounds))
    except (OSError, EOFError) as error:
        raise UnreadableInput(f"no sequences ({error})") from None
    if len(records) < 2:
        raise UnreadableInput("no sequences: fewer than two records")
    heads = [r[0].split(None, 1) or [""] for r in records]
    columns = {"name": text_column("name", [h[0] for h in heads], name),
               "sequence": text_column("sequence", [r[1] for r in records], name)}
    columns |= _said([h[1] if len(h) > 1 else "" for h in heads], name)
    if all(len(r[2]) == len(r[1]) for r in records) and any(r[2] for r in records):
        means = np.array([np.frombuffer(r[2].encode("latin-1", "replace"), np.uint8).mean() if r[2] else np.nan
                          for r in records])
        columns["mean_quality"] = Column("mean_quality", "number", means, name)
    return (Shard(name, "fasta", columns, len(records), len(records), damage=tuple(damage)),)


def _bounded(records: Iterator[Record], bounds: Bounds) -> Iterator[Record]:
    letters = 0
    for count, record in enumerate(records):
        letters += len(record[1])
        if count >= bounds.rows or letters > bounds.text or bounds.over:
            return
        yield record


def _records(lines: Iterator[str], damage: list[Damage]) -> Iterator[Record]:
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("@"):
        yield from _fastq(first, lines, damage)
        return
    if not first.startswith(">"):
        raise UnreadableInput("no sequences: the first line is no name (> or @)")
    head, parts = first[1:], list[str]()
    for line in lines:
        if line.startswith(">"):
            yield head, "".join(parts), ""
            head, parts = line[1:], []
        elif not line.startswith(";"):
            parts.append(line.strip())
    yield head, "".join(parts), ""


def _fastq(head: str, lines: Iterator[str], damage: list[Damage]) -> Iterator[Record]:
    count = 0
    while head:
        letters, plus, quality = (next(lines, "") for _ in range(3))
        if not plus.startswith("+") or len(quality) != len(letters):
            damage.append(Damage("a record of FASTQ has no + or not as many qualities as letters", row=count))
        yield head[1:], letters, quality if len(quality) == len(letters) else ""
        head, count = next(lines, ""), count + 1


def _said(descriptions: list[str], file: str) -> dict[str, Column]:
    """`key=value` as fields, and the rest of each description as a text where there is one."""
    told = [dict(_SAID.findall(d)) for d in descriptions]
    counts = Counter(k for t in told for k in t)
    keys = [k for k, n in counts.items() if n >= NEARLY_ALL * len(told)]
    found = {k: table_column(k, tuple(t.get(k, "") for t in told), file) for k in keys if k not in ("name", "sequence")}
    rest = [_SAID.sub("", d).strip() for d in descriptions]
    return found | ({"description": text_column("description", rest, file)} if any(rest) else {})
