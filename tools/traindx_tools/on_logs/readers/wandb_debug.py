"""`debug.log`: what wandb says of itself, nothing of the training; its process ids must not become metrics."""

from __future__ import annotations

import re

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.run import Run

FORMAT = "wandb_debug"
_LINE = re.compile(r"^\S+ \S+ [A-Z]+\s+\w+:\d+ \[wandb_(?:setup|init|run)\.py:")


def sniff(head: Head) -> float:
    """Sure where the first line is one of wandb's own modules."""
    return 0.97 if _LINE.match(head.text) else 0.0


def read(source: Source) -> Run:
    """Names it."""
    return Run(artifacts=(Artifact(source.name, FORMAT, note="wandb's own log: nothing of the run in it"),))


READER = Reader(FORMAT, sniff, read)
