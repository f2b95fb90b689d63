"""Missing values are left out of the statistics and stay in the data.

`np.nanmean` and `np.nanstd` exist because the data have NaN. A scaling by them leaves each NaN where it was: the first
batch with such a row makes the loss NaN, and one step later every weight. They have to be filled or dropped, or masked
in the model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.breach import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax, written

(RULE,) = pages("data", ("C217",))
_FILLS = re.compile(r"nan_to_num|isnan|isfinite|notna|isna\(|dropna|fillna|interpolate|Imputer|isnull|notnull|nanmask")
_DATA = re.compile(r"read_|load|DataFrame|Dataset|h5py|genfromtxt|parquet|backward\(|optax\.|\.fit\(|optimizer", re.I)
"""Data are read, or a network is trained: else it is a helper, and who calls it may have no missing values."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every scaling by statistics that leave NaN out."""
    for file in project.files:
        if not ("nanmean" in file.text or "nanstd" in file.text) or file.mentions(_FILLS):
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            if not (isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp)):
                continue
            if not isinstance(node.left.op, ast.Sub):
                continue
            sources = [written(code.origin(s)) for s in (node.left.right, node.right)]
            if any("nanmean" in s or "nanstd" in s or "nanmedian" in s for s in sources):
                yield RULE.finding(
                    f"{file.segment(node)} at {code.at(node)} scales by statistics that leave NaN out (the data have "
                    "missing values), and nothing fills or drops them: they stay in the inputs",
                    code.place(node),
                    file.path,
                    bearing=Bearing.CAUSE if file.mentions(_DATA) else Bearing.SIGN,
                    severity=None if file.mentions(_DATA) else Severity.MEDIUM,
                    measured={"kind": "missing"},
                )
                return
