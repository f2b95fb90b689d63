"""Conversations within one field: what each speaker says in a row.

Lists of messages come with it (`Column.turns`); a text of one field is cut where lines name who speaks: `User: ...`,
`### Response:`, `<|assistant|>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 2000
"""Characters of what a speaker says in a row that are kept."""
FEWEST, MOST = 2, 6
"""Speakers."""
COVERED = 0.8
"""Share of the rows that each speaker of a text has, so that the marks are marks."""
_MARK = re.compile(
    r"(?im)^\s*(?:#+\s*)?(?:<\|(?:im_start\|>|start_header_id\|>)?)?\s*(system|human|user|question|q|instruction|input|"
    r"prompt|assistant|gpt|answer|a|response|output|completion)\s*(?:\|>|<\|end_header_id\|>|:)"
    r"|^<\|im_start\|>(system|user|assistant)\s*$")


def of_messages(rows: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """By speaker, the texts of each row; {} where the entries are no messages: two texts, one of which is of few."""
    first = next((m for row in rows for m in row), None)
    if not isinstance(first, dict):
        return {}
    words = [k for k, v in first.items() if isinstance(v, str)]
    values = {k: [m.get(k) for row in rows[:500] for m in row if isinstance(m, dict)] for k in words}
    kinds = {k: {v for v in said if isinstance(v, str)} for k, said in values.items()}
    who = [k for k in words if FEWEST <= len(kinds[k]) <= MOST and max(map(len, kinds[k])) <= 20]
    what = [k for k in words if len(kinds[k]) > MOST]
    if len(who) != 1 or len(what) != 1:
        return {}
    said: dict[str, list[str]] = {name: [""] * len(rows) for name in sorted(kinds[who[0]])}
    for i, row in enumerate(rows):
        for message in row:
            name, text = (message.get(who[0]), message.get(what[0])) if isinstance(message, dict) else (None, None)
            if name in said and isinstance(text, str):
                said[name][i] = f"{said[name][i]}\n{text}"[:LONGEST].strip()
    return {name: tuple(texts) for name, texts in said.items()}


def of_texts(texts: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The same of texts that name their speakers, {} of others."""
    some = texts[:: max(1, len(texts) // 200)]
    if not some or sum(len(_MARK.findall(t)) >= FEWEST for t in some) < COVERED * len(some):
        return {}
    said: dict[str, list[str]] = {}
    for i, text in enumerate(texts):
        marks = list(_MARK.finditer(text))
        for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
            rows = said.setdefault((mark[1] or mark[2]).lower(), [""] * len(texts))
            rows[i] = f"{rows[i]}\n{text[mark.end():end]}"[:LONGEST].strip()
    return {n: tuple(rows) for n, rows in said.items() if sum(map(bool, rows)) >= COVERED * len(texts)}
