"""A language model's target is its own input.

`cross_entropy(model(ids), ids)` with a causal mask asks position t for token t, which it sees: the loss goes to 0 in a
few hundred steps, and the model has learned to copy. Logits of position t belong to token t + 1.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C178",
    name="target-not-shifted",
    title="A language model's target is its own input",
    severity=Severity.HIGH,
    sees="Cross entropy between model(ids) and the same ids, unshifted, in a project with a causal mask.",
    matters="The loss goes to 0 and the model only copies: generations repeat the last token.",
    alike=("a masked language model, whose inputs are changed", "a model that shifts inside"),
    confirm=("generate: the model repeats the prompt's last token",),
)
_CAUSAL = re.compile(r"is_causal|\btril\(|\btriu\(|generate_square_subsequent_mask|make_causal_mask|[Cc]ausal")
_SHIFTED = re.compile(r"1:\]|:-1\]|1:,|:-1,|\.roll\(|shift|mlm|mask_token|\[MASK\]|\bx\[\d*:|\+ 1\s*:|\+ 1\]|i \+ 1")
_FLAT = frozenset({"view", "reshape", "flatten", "contiguous", "transpose", "long", "to", "permute"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every cross entropy."""
    losses = [f for f in project.files if "cross_entropy" in f.text or "CrossEntropyLoss" in f.text]
    if not losses or not any(_CAUSAL.search(f.text) for f in project.files):
        return
    if any(_SHIFTED.search(f.text) for f in project.files):
        return
    for file in losses:
        code = syntax(file)
        for call in _losses(code):
            logits, target = _plain(argument(call, 0, "input", "logits")), _plain(argument(call, 1, "target", "labels"))
            made = code.origin(logits) if isinstance(logits, ast.expr) else None
            if isinstance(made, ast.Call) and isinstance(target, ast.Name) and _reads(made, target.id):
                yield RULE.finding(
                    f"{code.file.segment(call)} at {code.at(call)} compares the logits of {ast.unparse(made)} with "
                    f"{target.id} itself: position t is asked for token t, which it sees",
                    code.place(call),
                    file.path,
                    strength=Strength.CIRCUMSTANTIAL,
                    measured={"kind": "unshifted", "input": target.id},
                )


def _losses(code: Syntax) -> Iterator[ast.Call]:
    yield from code.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels")
    for call in code.of(ast.Call):
        made = code.origin(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
        if isinstance(made, ast.Call) and last_name(made.func) == "CrossEntropyLoss":
            yield call


def _plain(node: ast.AST | None) -> ast.AST | None:
    """Without reshapes."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FLAT:
        node = node.func.value
    return node


def _reads(call: ast.Call, name: str) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Name) and call.args[0].id == name and not call.keywords
