"""The log that lies beside what was given, where that holds none: a README, a script or a configuration was named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from traindx.course import amount_of
from traindx.offered import seen_from_here, typed, with_words
from traindx_tools.errors import TraindxError
from traindx_tools.examine import Examination
from traindx_tools.on_logs.reading import read_run

ENDINGS = frozenset({"", ".log", ".txt", ".out", ".err", ".csv", ".tsv", ".jsonl", ".json", ".ipynb"})
"""How files are called that training programs write their values into."""
MOST_BYTES = 20_000_000
MOST_LOOKED_AT = 12
MOST_NAMED = 2
FEWEST = 5
"""Values of a loss from which a text is taken for a log."""


def logs_beside(seen: Examination, paths: Sequence[str | Path]) -> dict[Path, str]:
    """What the files hold in the folders of those that were given, the newest first: "385 values of 5 metrics".

    Empty where what was given holds values or errors itself, or is no file.
    """
    if seen.run.series or seen.run.errors or any(str(p) == "-" or not os.path.isfile(p) for p in paths):
        return {}
    given = {os.path.realpath(p) for p in paths}
    near = [f for folder in dict.fromkeys(Path(p).absolute().parent for p in paths) for f in _files(folder)
            if os.path.realpath(f) not in given]
    found = ((file, _held(file)) for file in islice(near, MOST_LOOKED_AT))
    return dict(islice(((file, held) for file, held in found if held), MOST_NAMED))


def in_words(held: dict[Path, str]) -> str:
    """What lies beside, in a sentence."""
    return "; ".join(f"{file.name} beside it holds {amount}" for file, amount in held.items()) + ", and was not given"


def with_folder(held: dict[Path, str], symptom: str) -> str:
    """The command that reads the folder in which it lies."""
    return f"traindx diagnose {typed([seen_from_here(next(iter(held)).parent)])}{with_words(symptom)}"


def _files(folder: Path) -> Iterator[Path]:
    try:
        every = [f for f in folder.iterdir() if f.suffix.lower() in ENDINGS and f.is_file()
                 and 0 < f.stat().st_size <= MOST_BYTES and not f.name.startswith(".")]
    except OSError:
        return
    yield from sorted(every, key=lambda f: -f.stat().st_mtime)


def _held(file: Path) -> str:
    try:
        run = read_run([file])
    except (TraindxError, OSError):
        return ""
    return amount_of(run) if run.errors or (run.loss is not None and len(run.loss) >= FEWEST) else ""
