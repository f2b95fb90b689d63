"""A discriminator is told the same label for real and for generated samples.

It learns to say one thing always: its loss goes to 0 at once, its output no longer depends on the input, and the
gradient that the generator gets through it vanishes. The two losses look like a discriminator that has won.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C250",
    name="one-label-for-both",
    title="Real and generated samples get the same label",
    severity=Severity.HIGH,
    sees="Two losses of one network that are added or sent backward together: real and detached samples, one label.",
    matters="The discriminator says one thing always, and the generator gets no gradient from it.",
    alike=("the generator's loss, which asks for the real label", "smoothed labels, 0.9 and 0.1"),
    confirm=("print(discriminator(real).mean(), discriminator(fake).mean()): both go to the same end",),
)
_LOSSES = re.compile(r"binary_cross_entropy|BCE|mse_loss|MSELoss|sigmoid_binary_cross_entropy")
_FAKE = re.compile(r"fake|generated|synth|(^|_)gen(_|$)|(^|_)g_?z(_|$)|forged|sampled", re.IGNORECASE)
_REAL = re.compile(r"real|true|data|(^|_)x(_|$)|images?|batch|genuine", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every sum of two terms."""
    for file in project.files:
        if "BCE" not in file.text and "entropy" not in file.text and "mse" not in file.text.lower():
            continue
        code = syntax(file)
        for node in code.of(ast.BinOp):
            if isinstance(node.op, ast.Add):
                found = _judged(code, node.left, node.right)
                if found is not None:
                    yield found
        backwards = [c for c in code.calls("backward") if isinstance(c.func, ast.Attribute)]
        updates = sorted(c.lineno for c in code.calls("step", "zero_grad"))
        for before, after in pairwise(backwards):
            one = _one_update(code, before, after, updates)
            found = _judged(code, _sent(before), _sent(after)) if one else None
            if found is not None:
                yield found


def _sent(call: ast.Call) -> ast.expr:
    return call.func.value if isinstance(call.func, ast.Attribute) else call


def _one_update(code: Syntax, before: ast.Call, after: ast.Call, updates: list[int]) -> bool:
    """Whether two backward calls stand in one block with no step or zero_grad between them."""
    one, other = code.statement(before), code.statement(after)
    if one is None or other is None or code.parent(one) is not code.parent(other):
        return False
    return bisect_right(updates, one.lineno) >= bisect_left(updates, other.lineno)


def _judged(code: Syntax, left: ast.expr, right: ast.expr) -> Finding | None:
    one, other = _term(code, left), _term(code, right)
    if one is None or other is None:
        return None
    terms = [(one, _judges(code, one)), (other, _judges(code, other))]
    labels = [_label_at(code, call) for call, _ in terms]
    judges = [j for _, j in terms if j is not None]
    if len(judges) != 2 or labels[0] is None or labels[0] != labels[1]:
        return None
    (first, first_in), (second, second_in) = judges
    fakes = [_is_fake(code, i) for i in (first_in, second_in)]
    if first != second or fakes.count(True) != 1 or not _REAL.search(written(second_in if fakes[0] else first_in)):
        return None
    fake = one if fakes[0] else other
    return _finding(code, left, fake, first, labels[0])


def _term(code: Syntax, node: ast.expr) -> ast.Call | None:
    """The call of a loss that a term is, over names."""
    node = code.origin(node)
    if not isinstance(node, ast.Call) or len(node.args) + len(node.keywords) < 2:
        return None
    made = code.origin(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else node.func
    name = last_name(node.func) + (last_name(made.func) if isinstance(made, ast.Call) else "")
    return node if _LOSSES.search(name) else None


def _judges(code: Syntax, call: ast.Call) -> tuple[str, ast.expr] | None:
    """Which network a loss judges, and what that network was given."""
    node = argument(call, 0, "input", "logits")
    for _ in range(6):
        if node is None:
            return None
        node = code.origin(node)
        if not isinstance(node, ast.Call):
            return None
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in ("squeeze", "view", "reshape", "flatten", "mean"):
            node = node.func.value
        elif name == "sigmoid" and node.args:
            node = node.args[0]
        else:
            return (written(node.func), node.args[0]) if node.args else None
    return None


def _is_fake(code: Syntax, node: ast.expr) -> bool:
    """Whether a network's input is a generated sample: cut from its generator, or named so and made by a network."""
    cut = isinstance(node, ast.Call) and last_name(node.func) == "detach" and isinstance(node.func, ast.Attribute)
    made = code.origin(node)
    cut = cut or (isinstance(made, ast.Call) and last_name(made.func) == "detach")
    return cut and bool(_FAKE.search(written(node)) or "rand" in written(made) or "gen" in written(made).lower())


def _label_at(code: Syntax, call: ast.Call) -> float | None:
    """The number that fills the target of a loss where that is computed; None where it was changed in another way."""
    target = argument(call, 1, "target")
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return _label(code, target)
    made = max((s.lineno for s, _ in code.bindings(target) if s.lineno <= call.lineno), default=0)
    scope = code.scope(call)
    changed = [c for c in code.of(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr.endswith("_")
               and written(c.func.value) == written(target) and code.scope(c) is scope]  # fmt: skip
    stored = any(s.lineno <= call.lineno for s in code.item_stores.get(last_name(target), ()))
    between = sorted((c for c in changed if made < c.lineno <= call.lineno), key=lambda c: c.lineno)
    if stored or len(code.bindings(target)) > 1:
        return None
    if not between:
        return _label(code, target)
    last = between[-1]
    name = last.func.attr if isinstance(last.func, ast.Attribute) else ""
    return 0.0 if name == "zero_" else code.number(last.args[0]) if name == "fill_" and last.args else None


def _label(code: Syntax, node: ast.expr | None) -> float | None:
    """The number that fills a target."""
    for _ in range(4):
        if node is None:
            return None
        node = code.origin(node)
        if not isinstance(node, ast.Call):
            return None
        name = last_name(node.func)
        if name in ("ones", "ones_like", "zeros", "zeros_like"):
            return 1.0 if name.startswith("ones") else 0.0
        if name in ("full", "full_like"):
            return code.number(argument(node, 1, "fill_value"))
        node = node.func.value if isinstance(node.func, ast.Attribute) and name in (
            "to", "float", "cuda", "type_as", "unsqueeze", "view") else None  # fmt: skip
    return None


def _finding(code: Syntax, node: ast.expr, fake: ast.Call, judge: str, label: float) -> Finding:
    target = argument(fake, 1, "target")
    change = Change(code.file, "the other label for generated samples")
    certain = isinstance(target, ast.Call) and last_name(target.func) in ("ones", "ones_like") and label == 1
    if certain and isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute):
        text = written(target)
        change = change.replace(target, text.replace("ones", "zeros", 1))
    else:
        change = change.spoil()
    return RULE.finding(
        f"{judge} is told {label:g} for real and for generated samples in the loss at {code.at(node)} "
        f"(generated: line {fake.lineno}): it learns to say one thing always",
        code.place(fake),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "one label", "label": label},
        patch=change.patches(),
    )
