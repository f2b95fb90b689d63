"""A scaler, encoder or vocabulary is fitted anew on validation or test data.

What was fitted on the training data is part of the model: mean and deviation, the numbers of labels, the columns of a
vocabulary, the axes of a PCA. Fitted once more on held-out data they are others. A level shift is taken out of inputs
that the model should see it in, label 3 is another label, and column 17 another word, while results are scaled back
with the statistics of the training data: good in training, far off in validation, and it looks like overfitting.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.refits import refits

(RULE,) = pages("data", ("C274",))


def check(project: Project) -> Iterator[Finding]:
    """Tell of everything that is fitted on both parts."""
    for one in refits(project):
        yield RULE.finding(one.statement, one.code.place(one.node), one.code.file.path, bearing=Bearing.CAUSE,
                           measured={"kind": one.kind})
