"""A weighted sampler gets one weight a class, where it needs one a sample.

`WeightedRandomSampler(weights, num_samples)` draws positions of its weights: with `len(weights)` entries it draws
indices from 0 to `len(weights) - 1`. Given the weights of C classes, it draws the first C samples over and over,
however large `num_samples` is. The training loss falls to zero at once, and nothing is learned of the rest. Every
sample needs the weight of its class: `weights[labels]`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written

(RULE,) = pages("data", ("C294",))
_OF_CLASSES = re.compile(r"(class|label|cls|category|categories)e?s?_?(count|freq|weight|size|total|hist|dist|num)",
                         re.IGNORECASE)  # fmt: skip
_COUNTS = frozenset({"bincount", "value_counts", "compute_class_weight", "Counter"})
_AS_IT_IS = frozenset({
    "tensor", "as_tensor", "DoubleTensor", "FloatTensor", "Tensor", "array", "asarray", "list", "from_numpy", "tuple",
    "reciprocal", "float", "double", "clamp", "clip", "sqrt", "pow", "power", "to", "tolist", "numpy", "values", "cpu",
    "sort_index", "to_numpy", "clamp_min", "log", "log1p", "max", "astype", "softmax", "type", "maximum", "sorted",
})  # fmt: skip
_CLASSES = re.compile(r"(num|n|nb)_?(class|label|categor)|len\(\w*(class|label_names|categor)", re.IGNORECASE)
_DEEP = 10


def check(project: Project) -> Iterator[Finding]:
    """Look at every weighted sampler that a loader is given."""
    codes = [syntax(f) for f in project.files if "WeightedRandomSampler" in f.text]
    if not codes:
        return
    every = [syntax(f) for f in project.files]
    for code in codes:
        for call in code.calls("WeightedRandomSampler"):
            weights = argument(call, 0, "weights")
            if weights is not None and not _drawn_by_hand(code, call) and _by_class(every, code, weights, call, _DEEP):
                yield _finding(every, code, call, weights)


def _drawn_by_hand(code: Syntax, call: ast.Call) -> bool:
    """Whether the program itself goes through what the sampler draws: classes are then what it wants."""
    statement = code.statement(call)
    if isinstance(statement, ast.For):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    name = written(statement.targets[0])
    walked = any(written(loop.iter) == name for loop in code.of(ast.For))
    return walked or any(c.args and written(c.args[0]) == name for c in code.calls("iter", "list", "enumerate", "next"))


def _by_class(every: list[Syntax], code: Syntax, node: ast.expr, call: ast.Call, left: int) -> bool | None:
    """True for one entry a class, False for one a sample, None where nothing says it."""
    if left <= 0:
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        before = code.assigned(node)
        if before is not None and before is not node:
            return _by_class(every, code, before, call, left - 1)
        if isinstance(node, ast.Attribute) and node.attr in ("values", "T"):
            return _by_class(every, code, node.value, call, left - 1)
        return True if _OF_CLASSES.search(last_name(node)) and not code.bindings(node) else None
    if isinstance(node, ast.BinOp):
        sides = [_by_class(every, code, side, call, left - 1) for side in (node.left, node.right)]
        return False if False in sides else True if True in sides else None
    if isinstance(node, (ast.List, ast.Tuple)):
        drawn = argument(call, 1, "num_samples")
        return True if 1 < len(node.elts) <= 40 and isinstance(drawn, ast.Call) else None
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _of_comprehension(every, code, node, call, left)
    if isinstance(node, ast.Subscript):
        unique = isinstance(node.value, ast.Call) and last_name(node.value.func) == "unique"
        return unique and isinstance(node.slice, ast.Constant)
    return _of_call(every, code, node, call, left) if isinstance(node, ast.Call) else None


def _of_comprehension(every: list[Syntax], code: Syntax, node: ast.ListComp | ast.GeneratorExp, call: ast.Call,
                      left: int) -> bool | None:  # fmt: skip
    over = node.generators[0].iter
    if isinstance(over, ast.Call) and last_name(over.func) == "range":
        return True if _CLASSES.search(written(over)) else None
    if isinstance(over, ast.Call) and last_name(over.func) in ("items", "values", "keys") and isinstance(
            over.func, ast.Attribute):  # fmt: skip
        over = over.func.value
    return _by_class(every, code, over, call, left - 1) is True


def _of_call(every: list[Syntax], code: Syntax, node: ast.Call, call: ast.Call, left: int) -> bool | None:
    name = last_name(node.func)
    if name in _COUNTS:
        return True
    own = [(c, f) for c in every for f in c.functions(name)]
    if len(own) == 1:
        of_file, function = own[0]
        returned = [r.value for r in of_file.of(ast.Return) if r.value is not None and of_file.function(r) is function]
        said = {_by_class(every, of_file, value, call, left - 1) for value in returned}
        if None not in said and len(said) == 1:
            return said.pop()
        return True if False not in said and _OF_CLASSES.search(name) else None
    if name in _AS_IT_IS:
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        first = node.args[0] if node.args else None
        whole = [x for x in (first, inner) if x is not None]
        said = {_by_class(every, code, x, call, left - 1) for x in whole}
        return False if False in said else True if True in said else None
    return None


def _finding(every: list[Syntax], code: Syntax, call: ast.Call, weights: ast.expr) -> Finding:
    return RULE.finding(
        f"WeightedRandomSampler at {code.at(call)} is given {written(weights)[:60]}, one weight per class instead "
        "of one weight per sample: it draws only the first few indices, 0 to the number of classes less "
        "one, again and again",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "by class", "weights": written(weights)[:60]},
    )
