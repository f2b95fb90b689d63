"""`wandb-summary.json`: the last value of each metric. The history holds them all, so that none of it is used."""

from __future__ import annotations

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import json_records
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.run import Run

FORMAT = "wandb_summary"


def sniff(head: Head) -> float:
    """Sure where what wandb adds to each summary is there."""
    opens = head.text.lstrip()[:1] == "{" and "\n{" not in head.text.strip()
    return 0.95 if opens and '"_wandb":' in head.text and '"_runtime":' in head.text else 0.0


def read(source: Source) -> Run:
    """Counts the values. Raises OSError."""
    told = json_records.load(source)
    count = sum(not str(name).startswith("_") for name in told) if isinstance(told, dict) else 0
    return Run(artifacts=(Artifact(source.name, FORMAT, note=f"the last values of {count} metrics: not used, the run's "
                                                             "history is"),))


READER = Reader(FORMAT, sniff, read)
