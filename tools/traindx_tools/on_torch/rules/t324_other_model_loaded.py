"""The weights of a file went into a model that is never called; another one with the same keys is.

A second instance is built (by a helper, a wrapper, a re-initialisation after loading) and the one that was loaded is
dropped. Models that are parts of a called model, or wrap it, count as called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, OtherModel
from traindx_tools.rules import Rule

RULE = Rule(
    id="T324",
    name="other-model-loaded",
    title="The model that was loaded is not the one that runs",
    severity=Severity.CRITICAL,
    sees="which module took a file's state, and which modules are called afterwards",
    matters="what runs has the weights it was made with",
    alike=("a teacher that is loaded and called", "an average that is restored beside the weights"),
    confirm=("print(id(loaded_model), id(model))",),
)


def check(these: Sequence[OtherModel]) -> Iterator[Finding]:
    """One finding a model."""
    for seen in these:
        what = "trained" if seen.trained else "called"
        yield RULE.finding(
            f"the state of {seen.path} was loaded into a {seen.loaded} that is never called; "
            f"another {seen.called} with the same keys is {what} ({seen.calls} calls) and did not get it",
            seen.at.where(), SOURCE,
            bearing=Bearing.CAUSE, measured={"kind": what, "path": seen.path, "module": seen.called,
                                             "calls": seen.calls})
