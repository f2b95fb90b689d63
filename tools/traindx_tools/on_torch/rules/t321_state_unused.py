"""A checkpoint is read and its weights never reach the model.

A file was read whose keys and shapes are those of a model that is called afterwards. `kind`: "trained" or "evaluated"
where no `load_state_dict` was given its tensors and no parameter holds its values: somebody reads the epoch or the
metrics and forgets the weights, or filters keys until none is left; "overwritten" where they were loaded and none of
them was there at the next call, before any step (an initialisation that runs after the loading). A file in which
another state was used (an average beside the weights), a data file, and one that is only looked at are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, ReadFile
from traindx_tools.rules import Rule, Threshold

FITTING = 0.5

RULE = Rule(
    id="T321",
    name="state-never-used",
    title="A checkpoint is read and its weights are not used",
    severity=Severity.CRITICAL,
    sees="tensors that torch.load or safetensors gave, against every load_state_dict and every parameter's values",
    matters="training or evaluation goes on from other weights than one believes",
    alike=("a file that is read for its metrics or its step alone, in a program that runs no model afterwards",
           "an average of weights beside the weights"),
    confirm=("before, after = p.clone(), p after loading: torch.equal(before, after)",),
    thresholds={"fitting": Threshold(FITTING, "of its keys fit the model by name and shape",
                                     "a data file or another model's fits by less")},
)


def check(files: Sequence[ReadFile]) -> Iterator[Finding]:
    """One finding a file."""
    for f in files:
        if f.overwritten:
            yield _finding(f, "overwritten", f"was loaded into {f.model}, and none of its {f.keys} tensors was there "
                                             "when that model was called next")
            continue
        if f.used or f.sibling_used or not f.keys or f.fitting < FITTING * f.keys or not f.calls_after:
            continue
        yield _finding(
            f, "trained" if f.steps_after else "evaluated",
            f"was read after step {f.at.step} and none of its {f.keys} tensors reached {f.model}, which {f.fitting} of "
            f"them fit by name and shape and which was called {f.calls_after} times afterwards")


def _finding(f: ReadFile, kind: str, what: str) -> Finding:
    part = f" ({f.part})" if f.part else ""
    return RULE.finding(
        f"{f.path}{part} {what}", f.at.where(), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": kind, "path": f.path, "keys": f.keys, "fitting": f.fitting, "module": f.model,
                  "calls": f.calls_after, "steps": f.steps_after})
