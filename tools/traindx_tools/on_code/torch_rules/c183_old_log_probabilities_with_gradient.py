"""The old log-probabilities carry a gradient.

The importance ratio exp(new - old) compares the policy with the one that acted. Computed by the same network and left
in the graph, old follows every change of new: their gradients cancel (exactly, at equal values), and the policy term
trains nothing. The old values belong under `no_grad`, behind `detach()`, or in the rollout.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bootstrapping import suspended
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import graph
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C183",
    name="old-log-probabilities-with-gradient",
    title="The old log-probabilities carry a gradient",
    severity=Severity.HIGH,
    sees="old log-probabilities computed by the policy where autograd records, and subtracted without detach.",
    matters="Both sides of the ratio move together: the policy gradient cancels.",
    alike=("advantages that are all zero",),
    confirm=("print(old_log_prob.requires_grad): it should be False",),
)
_OLD = re.compile(
    r"(\w*_)?old_?(log_?p\w*|logprobs?|lp|log_pi|action_log\w*)|(log_?p\w*|logprobs?|lp)_old", re.IGNORECASE
)
_MADE = re.compile(r"log_prob|log_softmax|logprob|logps|log_pi")
_CUT = (
    "detach",
    "no_grad",
    ".item(",
    ".data",
    ".numpy(",
    "stop_gradient",
    "batch",
    "buffer",
    "rollout",
    "memory",
    "storage",
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every difference with old log-probabilities."""
    for file in project.files:
        if "torch" not in file.text or "old" not in file.text or "log" not in file.text:
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            if isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Name) and _OLD.fullmatch(node.right.id):
                made = code.assigned(node.right)
                if made is not None and _attached(code, made, node):
                    yield RULE.finding(
                        f"{node.right.id}, computed at {code.at(made)} as {code.file.segment(made)}, is not detached, "
                        f"and {code.file.segment(node)} at line {node.lineno} compares the policy with it: the two "
                        "gradients cancel",
                        code.place(made),
                        file.path,
                        bearing=Bearing.CAUSE,
                        measured={"kind": "attached", "used_line": node.lineno},
                        patch=graph.cut(file, made),
                    )


def _attached(code: Syntax, made: ast.expr, use: ast.BinOp) -> bool:
    if not isinstance(made, ast.Call) or suspended(code, made) or suspended(code, use):
        return False
    text = written(made)
    if not _MADE.search(text) or any(c in text for c in _CUT):
        return False
    other = code.origin(use.left)
    return last_name(made.func) in ("log_prob", "gather", "squeeze", "sum", "log_softmax") and other is not made
