"""A row of scores can be masked completely.

`scores.masked_fill(~keep, -inf)` with a mask that comes from the data, and a softmax of it: a row that keeps nothing
(an empty text, a sample that is all padding) is exp(-inf - -inf) = NaN. Most data never has such a row, so this is a
remark and no fault by itself; where a loss turned NaN without a ramp it is the first place to look. A triangle always
keeps the diagonal and is left alone, as are a large finite number in place of -inf and code that repairs the row
(`nan_to_num`, a `where` on isnan).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C277",
    name="row-may-be-masked",
    title="A row of scores can be masked completely",
    severity=Severity.INFO,
    sees="scores that a mask from the data fills with -inf, and a softmax of them in the same function.",
    matters="One sample without a kept position makes the output, the loss and then every weight NaN.",
    alike=("a causal mask, which keeps the diagonal", "-1e9 in place of -inf: an even row instead of NaN"),
    confirm=("print((~mask.any(dim=-1)).sum())  # rows that keep nothing, over the data",),
)
_INFINITE = re.compile(r"-?\s*float\(['\"]-?inf(inity)?['\"]\)|-\s*(\w+\.)*inf\b|(\w+\.)*NINF", re.IGNORECASE)
_REPAIRED = re.compile(r"nan_to_num|isnan|isfinite|safe_softmax|nan=")
_TRIANGULAR = re.compile(r"causal|tri[lu]|future|subsequent|look_?ahead|autoregressive|diagonal", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every fill with -inf whose result goes through a softmax."""
    for file in project.files:
        if "softmax" not in file.text or "inf" not in file.text:
            continue
        code = syntax(file)
        for call, mask in _fills(code):
            scope = code.scope(call)
            if isinstance(scope, ast.Module) or not _softmax_behind(code, call):
                continue
            text = written(scope)
            named = f"{written(mask)} {written(code.origin(mask))}"
            if _REPAIRED.search(text) or _TRIANGULAR.search(named):
                continue
            yield RULE.finding(
                f"{code.file.segment(call)} at {code.at(call)} fills with -inf where a mask from the data says so, and "
                "a softmax follows: a row that keeps nothing becomes NaN",
                code.place(call),
                code.file.path,
                bearing=Bearing.COMPANION,
                measured={"kind": "masked row", "mask": written(mask)[:80]},
            )


def _fills(code: Syntax) -> Iterator[tuple[ast.Call, ast.expr]]:
    """(call, mask) of `x.masked_fill(mask, -inf)`, `where(mask, x, -inf)` and `where(mask, -inf, x)`."""
    for call in code.calls("masked_fill", "masked_fill_"):
        own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) != "torch.masked_fill"
        mask, value = argument(call, 0 if own else 1, "mask"), argument(call, 1 if own else 2, "value")
        if mask is not None and _infinite(value):
            yield call, mask
    for call in code.calls("where"):
        if len(call.args) == 3 and any(_infinite(a) for a in call.args[1:]):
            yield call, call.args[0]


def _infinite(value: ast.expr | None) -> bool:
    return value is not None and _INFINITE.fullmatch(written(value)) is not None


def _softmax_behind(code: Syntax, fill: ast.Call) -> bool:
    """Whether the same function takes a softmax, after the fill, of what it was stored as, or of the fill itself."""
    statement = code.statement(fill)
    if any(isinstance(a, ast.Call) and last_name(a.func) == "softmax" for a in code.above(fill)):
        return True
    stored = {written(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    if last_name(fill.func) == "masked_fill_" and isinstance(fill.func, ast.Attribute):
        stored.add(written(fill.func.value))
    for call in code.calls("softmax"):
        if code.scope(call) is code.scope(fill) and call.lineno >= fill.lineno:
            given = call.args[0] if call.args else None
            own = call.func.value if isinstance(call.func, ast.Attribute) else None
            if any(n is not None and written(n) in stored for n in (given, own)):
                return True
    return False
