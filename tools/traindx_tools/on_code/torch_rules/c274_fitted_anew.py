"""A scaler, encoder or vocabulary is fitted anew on validation or test data.

What was fitted on the training data is part of the model: mean and deviation, the numbers of labels, the columns of a
vocabulary, the axes of a PCA. Fitted once more on held-out data they are others. A level shift is taken out of inputs
that the model should see it in, label 3 is another label, and column 17 another word, while results are scaled back
with the statistics of the training data: good in training, far off in validation, and it looks like overfitting.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.refits import refits
from traindx_tools.rules import Rule

RULE = Rule(
    id="C274",
    name="fitted-anew",
    title="A scaler or encoder is fitted anew on held-out data",
    severity=Severity.HIGH,
    sees="One kind of scaler, encoder, vectorizer or decomposition that is fitted on the training part and on the "
         "held-out part, directly or in a function or data set that is given both.",
    matters="The two parts come in different units: validation is wrong from the first epoch on.",
    alike=("transform of held-out data by what was fitted on the training part", "cross-validation, fitted on each "
           "fold's training part"),
    confirm=("print the statistics of both: they should be one object's",),
)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Tell of everything that is fitted on both parts."""
    for one in refits(project):
        yield RULE.finding(
            one.statement,
            one.code.place(one.node),
            one.code.file.path,
            bearing=Bearing.CAUSE if one.proven else Bearing.SIGN,
            severity=Severity.HIGH if one.proven else Severity.MEDIUM,
            measured={"kind": one.kind},
            patch=one.patch,
        )
