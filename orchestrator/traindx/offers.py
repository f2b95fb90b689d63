"""May a diff be offered, and what is said with it? It is tried first, and what was tried in this workspace is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx import patching, trial
from traindx.hindrances import Change
from traindx.model import ProposedEdit
from traindx.patching import PatchRefused
from traindx.places import Places
from traindx.trial_run import TrialRun
from traindx.tried_diffs import TriedDiffs, fingerprint
from traindx.workspace import PathRefused
from traindx_tools.finding import Finding
from traindx_tools.source_files.texts import read_texts


@dataclass(frozen=True)
class Offer:
    """What becomes of a diff: offered, offered with a remark, or told in words because its trial failed."""

    refused: str = ""
    """Why the diff is not offered, "" where it is."""
    remark: str = ""
    """What is said with it."""
    prefers_other: bool = False
    """Whether the other option comes first."""


FREE = Offer()
"""Nothing is known against it."""


def offer(edits: Sequence[ProposedEdit], carriers: Sequence[Finding], places: Places, code: Sequence[Path],
          run: TrialRun | None = None) -> Offer:
    """Try the edits. `carriers`: the findings that they are to remove; `run`: where a person agreed to a run."""
    try:
        contents = patching.preview(places.root, edits)
    except (PatchRefused, PathRefused):
        return FREE  # what cannot be applied at all is refused, with its reason, where it would be
    changes = [Change(p, old.decode("utf-8", "replace"), new.decode("utf-8", "replace"))
               for p, (old, new) in contents.items()]
    known = TriedDiffs(places.root)
    before, failed = known.last(fingerprint(changes)), known.failed(fingerprint(changes))
    if before is not None and (before.own_error or len(failed) > 1):
        return Offer(refused="; ".join(d.said for d in failed[-3:]) or before.said)
    texts, _ = read_texts(code)
    after = {t.path: c.after for t in texts for c in changes if places.name(t.path) == c.path}
    why = trial.what_fails(texts, after, carriers)
    if not why and run is not None:
        error = run.own_error(changes, {p: new for p, (_, new) in contents.items()})
        why = f"run in a copy, it brought an error of its own: {error}" if error else ""
    if why:
        return Offer(refused=why)
    return FREE if before is None else Offer(remark=before.said, prefers_other=before.result != "fixed")
