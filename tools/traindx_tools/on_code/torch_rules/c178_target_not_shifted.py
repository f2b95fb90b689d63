"""A language model's target is its own input.

`cross_entropy(model(ids), ids)` with a causal mask (or a recurrence in one direction) asks position t for token t,
which it sees: the loss goes to 0 in a few hundred steps, and the model has learned to copy. The same where a data set
gives the same window out twice, `data[i : i + n]` as x and as y. Logits of position t belong to token t + 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.on_code.unshifted import (
    bottleneck,
    causal,
    equal_pairs,
    given_twice,
    plain,
    read_by,
    same_value,
    shifted_somewhere,
)
from traindx_tools.rules import Rule

RULE = Rule(
    id="C178",
    name="target-not-shifted",
    title="A language model's target is its own input",
    severity=Severity.HIGH,
    sees="Cross entropy between model(ids) and the same ids, or one window as input and as target, without a shift.",
    matters="The loss goes to 0 and the model only copies: generations repeat the last token.",
    alike=("a masked language model, whose inputs are changed", "a model that shifts inside"),
    confirm=("generate: the model repeats the prompt's last token",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every cross entropy, and at the pairs that data are given out in."""
    losses = [f for f in project.files if "cross_entropy" in f.text or "CrossEntropyLoss" in f.text]
    if not losses or not causal(project) or shifted_somewhere(project):
        return
    look, found = lookup(project), False
    for file in losses:
        code = syntax(file)
        for call in _losses(code):
            ids = _copied(look, code, call)
            if ids is not None:
                found = True
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} compares logits that were computed from {written(ids)} "
                    f"with {written(ids)} itself: position t is asked for token t, which it sees",
                    code.place(call),
                    file.path,
                    bearing=Bearing.SIGN,
                    measured={"kind": "unshifted", "input": written(ids)},
                )
                continue
            inside = plain(argument(call, 1, "target", "labels"))
            given = given_twice(project, code, inside) if isinstance(inside, ast.Name) else None
            if given is not None and not bottleneck(project):
                found = True
                where, model, ids = given
                yield RULE.finding(
                    f"{where.file.segment(model)} at {where.at(model)} hands {written(ids)} over as input and as "
                    f"target, and {code.at(call)} compares them unshifted: position t is asked for token t",
                    where.place(model),
                    where.file.path,
                    bearing=Bearing.SIGN,
                    measured={"kind": "given twice", "input": written(ids)},
                )
    if found or bottleneck(project):
        return
    for code, back, one, other in equal_pairs(project):
        yield RULE.finding(
            f"{code.file.segment(back)} at {code.at(back)} gives out the same as input and as target of a causal "
            "model: position t is asked for token t, which it sees",
            code.place(back),
            code.file.path,
            bearing=Bearing.SIGN,
            measured={"kind": "pair", "input": written(one)[:80]},
            patch=_patch(code, one, other),
        )


def _losses(code: Syntax) -> Iterator[ast.Call]:
    yield from code.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels")
    if "CrossEntropyLoss" not in code.file.text:
        return
    for call in code.of(ast.Call):
        made = code.origin(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
        if isinstance(made, ast.Call) and last_name(made.func) == "CrossEntropyLoss":
            yield call


def _copied(look: Lookup, code: Syntax, call: ast.Call) -> ast.expr | None:
    """The target of a loss, where its logits were computed from it."""
    logits, target = argument(call, 0, "input", "logits"), plain(argument(call, 1, "target", "labels"))
    if logits is None or not isinstance(target, ast.Name):
        return None
    own = plain(logits)
    read = (one for one in read_by(look, code, logits) if one is not own)
    return target if any(same_value(code, one, target) for one in read) else None


def _patch(code: Syntax, one: ast.expr, other: ast.expr) -> tuple[Patch, ...]:
    """`x[:, :-1]` twice: the second one begins a token later."""
    node = other if isinstance(plain(other), ast.Subscript) else code.assigned(other)
    text = source_of(code.file, node) if isinstance(node, ast.expr) else ""
    if node is None or node is one or text.count(":-1]") != 1 or not isinstance(plain(node), ast.Subscript):
        return ()
    return Change(code.file, "the target is one token ahead").replace(node, text.replace(":-1]", "1:]")).patches()
