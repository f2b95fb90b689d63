"""Features are made of, or chosen by, the labels of all rows, and the rows are split afterwards.

The mean outcome of a category (target encoding), of a group or a class, and a selection of features by their relation
to the labels all carry the labels into the inputs. Taken over all rows they carry those of the validation rows as well,
and for a category of few rows the row's own: validation is excellent, and new data, whose labels nobody knows, are not.
They have to be taken from the training rows alone, for the training rows themselves out of fold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.label_statistics import Statistic, is_label, label_columns, split_after, statistics
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C352",
    name="labels-of-all-rows",
    title="Features are computed from the labels of all rows before the split",
    severity=Severity.HIGH,
    sees="Means of the labels by group or category, or a selection of features by labels, over all rows, whose result "
         "becomes features, and a split of the rows afterwards.",
    matters="Validation knows its own labels: it looks excellent and says nothing about new data.",
    alike=("statistics of the training rows", "out-of-fold encoding", "class weights", "means that are only printed"),
    confirm=("shuffle the labels of all rows and train: validation stays above chance",),
)  # fmt: skip
_USES = frozenset({"map", "merge", "join", "get", "replace", "reindex", "apply", "hstack", "column_stack", "stack",
                   "concatenate", "concat", "assign", "take"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at everything that is computed from labels."""
    words = ("groupby(", "bincount(", "zip(", ".fit(", "fit_transform(", "corrcoef(", "mutual_info", "add.at(",
             "f_classif", "+= ", ".mean(")  # fmt: skip
    if not any(w in f.text for f in project.files for w in words):
        return
    if not any(w in f.text for f in project.files for w in ("torch", "jax", "sklearn", "keras", "tensorflow")):
        return
    look = lookup(project)
    columns = label_columns(look)
    told: set[tuple[str, int]] = set()
    for found in statistics(look, columns):
        place = found.code.file.path, getattr(code_scope(found), "lineno", 0)
        if place in told or not _becomes_features(found) or _without_itself(found):
            continue
        split = split_after(look, found)
        if split and is_label(look, found.code, found.labels, columns | _columns_of(found)):
            told.add(place)
            yield _finding(found, split)


def code_scope(found: Statistic) -> ast.AST:
    """The function around a statistic, or its file."""
    return found.code.scope(found.node)


def _columns_of(found: Statistic) -> frozenset[str]:
    """The fit of a selection reads labels whatever their name."""
    return frozenset(names_in(found.labels)) if found.chosen else frozenset()


def _becomes_features(found: Statistic) -> bool:
    """Whether the result is looked up for rows, stored as a column, chooses columns, or is returned."""
    if found.chosen or "[]" in found.names:
        return True
    code, names = found.code, set(found.names)
    scope = code_scope(found)
    for _ in range(4):
        for step in code.inside(scope, ast.Assign):
            if step.lineno >= found.node.lineno and names & names_in(step.value):
                if any(isinstance(t, ast.Subscript) for t in step.targets):
                    return True
                names |= {n for t in step.targets for n in names_in(t)}
    return any(_used(code, read) for name in names for read in code.reads(scope, name))


def _used(code: Syntax, read: ast.Name) -> bool:
    if read.lineno == 0:
        return False
    for up in code.above(read):
        if isinstance(up, ast.Call) and last_name(up.func) in ("print", "info", "plot", "bar", "debug", "format"):
            return False
        if isinstance(up, ast.JoinedStr):
            return False
        if isinstance(up, ast.Call) and last_name(up.func) in _USES:
            return True
        if isinstance(up, ast.Subscript) and not isinstance(up.ctx, ast.Store) and read in below(up.slice):
            return True
        if isinstance(up, (ast.ListComp, ast.DictComp)) and isinstance(code.parent(up), ast.Call):
            return True
        if isinstance(up, ast.Return):
            return True
        if isinstance(up, ast.stmt):
            return False
    return False


def _without_itself(found: Statistic) -> bool:
    """`(sums[level] - label) / (counts[level] - 1)`: each row's own label is left out."""
    code = found.code
    labels = names_in(found.labels)
    return any(
        isinstance(step.op, ast.Sub) and labels & names_in(step.right)
        and any(n in found.names or "sum" in n for n in names_in(step.left))
        for step in code.inside(code_scope(found), ast.BinOp))  # fmt: skip


def _finding(found: Statistic, split: str) -> Finding:
    code, node = found.code, found.node
    return RULE.finding(
        f"{written(node)[:80]} at {code.at(node)} computes {found.kind} from the labels of all rows, which become "
        f"features, and the rows are split afterwards ({split}): the labels of the validation rows leak into their own "
        "inputs. Take them from the training rows alone (out of fold for those)",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": found.kind.partition(" of ")[0] if found.chosen else found.kind},
    )
