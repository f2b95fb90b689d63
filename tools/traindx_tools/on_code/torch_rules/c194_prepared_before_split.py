"""Data are prepared before they are split.

Oversampling before the split puts copies (or blends) of one sample on both sides: validation measures memory. A scaler
that is fitted on all data before the split, or fitted once more on the test data, uses statistics of what should be
unseen; the effect is small, and a second fit also puts training and test on different scales. Where the data are split
by arithmetic (`x[:n]`, index arrays of a permutation, `random_split`) mean and deviation, smallest and largest value of
all samples are the same leak; in a series, which is cut in time, they tell of the future.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.before_split import early_statistics
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.refits import refits
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C194",
    name="prepared-before-split",
    title="Data are oversampled or scaled before they are split",
    severity=Severity.HIGH,
    sees="fit_resample, resample, a scaler's fit or statistics over all samples before a split; a fit on test data.",
    matters="Validation looks too good and says nothing about new data.",
    alike=("oversampling of the training part alone",),
    confirm=("look for equal rows in both parts",),
)
_FITTED = re.compile(r"(Scaler|PCA|Imputer|PowerTransformer|QuantileTransformer|KBest|TargetEncoder)$")
"""Classes whose fit takes statistics of samples; encoders of categories and labels learn names and are left alone."""
_LABELS = re.compile(r"(KBest|TargetEncoder)$")
"""Those that read the labels: what they choose fits the held-out part as well."""
_STATISTICS = re.compile(r"mean\(|min\(|median\(|Scaler|Transformer")
_TRAINS = re.compile(r"backward\(|optim|\.fit\(|optax|Dataset|apply_updates")
_HELD = re.compile(r"(^|_)(val|valid|test|te|ev|eval|dev|holdout)(_|$)", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at what happens to data before and after a split."""
    for file in project.files:
        if "train_test_split" not in file.text and "fit_transform" not in file.text and "random_split" not in file.text:
            continue
        code = syntax(file)
        yield from _oversampled(code)
        yield from _refitted(code, project)
        yield from _fitted_on_all(code)
    if any(f.mentions(_TRAINS) and f.mentions(_STATISTICS) for f in project.files):
        for early in early_statistics(lookup(project)):
            yield _finding(
                early.code,
                early.node,
                f"{early.how}, and {early.split} splits them afterwards: the training part knows the "
                "statistics of the held-out one. Split first, and take the statistics of the training part",
                "statistics-of-all",
                Severity.INFO,
            )


def _oversampled(code: Syntax) -> Iterator[Finding]:
    for split in code.calls("train_test_split", "random_split"):
        scope, given = code.scope(split), set().union(*(names_in(a) for a in split.args)) if split.args else set()
        for call in code.calls("fit_resample", "resample", "fit_sample"):
            statement = code.statement(call)
            if code.scope(call) is not scope or call.lineno >= split.lineno or not isinstance(statement, ast.Assign):
                continue
            if code.loops(call) != code.loops(split):
                continue
            if names_in(statement.targets[0]) & given:
                yield _finding(
                    code,
                    split,
                    f"{written(split)[:70]} splits data that were oversampled at line {call.lineno}: copies of one "
                    "sample lie on both sides",
                    "oversampled",
                    Severity.HIGH,
                )
                break


def _fitted_on_all(code: Syntax) -> Iterator[Finding]:
    """A scaler's `fit_transform` whose result is split afterwards; low, because the effect mostly is."""
    fitted: dict[tuple[int, str], tuple[ast.Call, str]] = {}
    for call in code.calls("fit_transform") if code.calls("train_test_split") else ():
        statement, kind = code.statement(call), _class_of(code, call)
        if kind is not None and isinstance(statement, ast.Assign):
            for name in names_in(statement.targets[0]):
                fitted.setdefault((id(code.scope(call)), name), (call, kind))
    for split in code.calls("train_test_split"):
        given = set().union(*(names_in(a) for a in split.args)) if split.args else set()
        before = [f for n in given if (f := fitted.get((id(code.scope(split)), n))) and f[0].lineno < split.lineno]
        if before:
            call, kind = min(before, key=lambda f: (f[0].lineno, f[0].col_offset))
            yield _finding(
                code,
                call,
                f"{kind} is fitted on all samples before line {split.lineno} splits them: the training part knows "
                f"{'the labels' if _LABELS.search(kind) else 'the statistics'} of the held-out one. Split first, "
                "then fit on the training part and only transform the other",
                "fitted-on-all",
                Severity.MEDIUM if _LABELS.search(kind) else Severity.LOW,
            )


def _class_of(code: Syntax, call: ast.Call) -> str | None:
    """The class of what is fitted, where it is one that takes statistics: `Scaler().fit_transform`, or by its name."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        made = [a.value for a in code.inside(code.scope(call), ast.Assign) if a.lineno <= call.lineno
                and any(isinstance(t, ast.Name) and t.id == owner.id for t in a.targets)]
        owner = made[-1] if made else None
    name = last_name(owner.func) if isinstance(owner, ast.Call) else ""
    return name if _FITTED.search(name) else None


def _refitted(code: Syntax, project: Project) -> Iterator[Finding]:
    """`fit_transform` of test data; C274 tells of those where one was fitted on the training data as well."""
    for call in code.calls("fit_transform"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        first = call.args[0] if call.args else None
        if owner is None or not isinstance(first, (ast.Name, ast.Attribute)) or not _HELD.search(last_name(first)):
            continue
        if "train" in last_name(first).lower() or any(r.node is call for r in refits(project)):
            continue
        yield _finding(
            code,
            call,
            f"{written(call)} fits the scaler on held-out data: it uses their statistics, and training and evaluation "
            "are put on different scales",
            "refitted",
            Severity.MEDIUM,
        )


def _finding(code: Syntax, node: ast.AST, why: str, kind: str, severity: Severity) -> Finding:
    return RULE.finding(
        f"At {code.at(node)} {why}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={"kind": kind},
    )
