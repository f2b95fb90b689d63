"""The last round of specialists in the session's folder: `diagnose` reads what `gather` brought, also after a crash."""

from __future__ import annotations

import json

from pydantic import TypeAdapter, ValidationError

from traindx.durable import write_state
from traindx.investigators.base import Case
from traindx.investigators.claude_code import triangulation
from traindx.investigators.claude_code.redaction import redacted_json
from traindx.investigators.claude_code.team import Round

NAME = "specialists.json"
_ROUND = TypeAdapter(Round)


def write_round(case: Case, found: Round) -> None:
    """Keep the round, and the triangulation table for a person. Raises StateNotWritable."""
    rows = triangulation.table(found)
    if rows:
        write_state(case.scratch / "evidence" / "triangulation.md", triangulation.markdown(rows).encode())
    write_json(case, NAME, _ROUND.dump_python(found, mode="json"))


def read_round(case: Case) -> Round:
    """The last round; an empty one where there was none or its file is damaged."""
    try:
        return _ROUND.validate_json((case.scratch / "evidence" / NAME).read_bytes())
    except (OSError, ValidationError):
        return Round()


def write_json(case: Case, name: str, value: object) -> None:
    """Write a file of the session's evidence, redacted. Raises StateNotWritable."""
    text = json.dumps(redacted_json(value), indent=1, ensure_ascii=True)
    write_state(case.scratch / "evidence" / name, text.encode("ascii"))
