"""Data are prepared before they are split.

Oversampling before the split puts copies (or blends) of one sample on both sides: validation measures memory. A scaler
or a selection that is fitted on all data before the split uses statistics (or labels) of what should be unseen; of a
scaler the effect is mostly small.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written

(RULE,) = pages("data", ("C194",))
_FITTED = re.compile(r"(Scaler|PCA|Imputer|PowerTransformer|QuantileTransformer|KBest|TargetEncoder)$")
"""Classes whose fit takes statistics of samples; encoders of categories and labels learn names and are left alone."""
_LABELS = re.compile(r"(KBest|TargetEncoder)$")
"""Those that read the labels: what they choose fits the held-out part as well."""
_RESAMPLES = ("fit_resample", "resample", "fit_sample")


def check(project: Project) -> Iterator[Finding]:
    """Look at what is split and was prepared above."""
    for code in (syntax(f) for f in project.files if "train_test_split" in f.text or "random_split" in f.text):
        resampled, fitted = _stored(code, _RESAMPLES), _stored(code, ("fit_transform",))
        for split in code.calls("train_test_split", "random_split"):
            given = set().union(*(names_in(a) for a in split.args)) if split.args else set()
            yield from _oversampled(code, split, _before(code, split, given, resampled))
            yield from _fitted_on_all(code, split, _before(code, split, given, fitted))


def _before(code: Syntax, split: ast.Call, given: set[str], stored: Mapping[str, list[ast.Call]]) -> list[ast.Call]:
    """The calls above a split in its scope whose results it splits."""
    named = {id(c): c for name in given for c in stored.get(name, ())}
    return [c for c in sorted(named.values(), key=lambda c: c.lineno) if c.lineno < split.lineno
            and code.scope(c) is code.scope(split) and code.loops(c) == code.loops(split)]


def _stored(code: Syntax, methods: Sequence[str]) -> dict[str, list[ast.Call]]:
    """Calls of these methods by the names that their results are given."""
    found: dict[str, list[ast.Call]] = {}
    for call in code.calls(*methods):
        statement = code.statement(call)
        for name in names_in(statement.targets[0]) if isinstance(statement, ast.Assign) else ():
            found.setdefault(name, []).append(call)
    return found


def _oversampled(code: Syntax, split: ast.Call, before: Sequence[ast.Call]) -> Iterator[Finding]:
    for call in before[:1]:
        yield _finding(code, split, f"{written(split)[:70]} splits data that were oversampled at line {call.lineno}: "
                       "copies of one sample lie on both sides", "oversampled", Severity.HIGH)


def _fitted_on_all(code: Syntax, split: ast.Call, before: Sequence[ast.Call]) -> Iterator[Finding]:
    if last_name(split.func) != "train_test_split":
        return
    for call in before:
        kind = _class_of(code, call)
        if kind:
            what, severity = ("labels", Severity.MEDIUM) if _LABELS.search(kind) else ("statistics", Severity.LOW)
            yield _finding(code, call, f"{kind} is fitted on all samples before line {split.lineno} splits them: the "
                           f"training part knows the {what} of the held-out one. Split first, then fit on the training "
                           "part and only transform the other", "fitted-on-all", severity)
            return


def _class_of(code: Syntax, call: ast.Call) -> str:
    """The class of what is fitted, where it is one that takes statistics: `Scaler().fit_transform`, or by its name."""
    owner: ast.expr | None = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        made = [a.value for a in code.inside(code.scope(call), ast.Assign) if a.lineno <= call.lineno
                and any(isinstance(t, ast.Name) and t.id == owner.id for t in a.targets)]
        owner = made[-1] if made else None
    name = last_name(owner.func) if isinstance(owner, ast.Call) else ""
    return name if _FITTED.search(name) else ""


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, severity: Severity) -> Finding:
    return RULE.finding(f"At {code.at(node)} {why}", code.place(node), code.file.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"kind": kind})
