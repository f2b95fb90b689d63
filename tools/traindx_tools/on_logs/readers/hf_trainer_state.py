"""`trainer_state.json` of the Hugging Face Trainer: `log_history`, with the planned steps beside it."""

from __future__ import annotations

import re
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import columns, json_records
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.run import Run, merge

_SIGNATURE = re.compile(r'"(?:log_history|best_model_checkpoint|is_world_process_zero)"\s*:')


def sniff(head: Head) -> float:
    """Sure where the names of its fields are there."""
    return 0.95 if head.text.lstrip()[:1] == "{" and _SIGNATURE.search(head.text) else 0.0


def read(source: Source) -> Run:
    """Reads the log history. Raises OSError."""
    state = json_records.load(source)
    damaged = isinstance(state, list)
    history: Any = state if damaged else state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        return Run(artifacts=(Artifact(source.name, "hf_trainer_state", note="no log_history in it"),))
    records = [r for r in history if isinstance(r, dict)]
    run = json_records.rows(source, records, "hf_trainer_state", "damaged: the records before the damage were read"
                            if damaged else "")
    planned = state.get("max_steps") if isinstance(state, dict) else None
    count = columns.number(planned)
    return merge([run, Run(planned_steps=count if count and count > 0 else None)])


READER = Reader("hf_trainer_state", sniff, read)
