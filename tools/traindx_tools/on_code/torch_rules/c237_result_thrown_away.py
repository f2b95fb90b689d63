"""The result of an operation that leaves its tensor as it is is thrown away.

`logits.masked_fill(mask, -inf)` gives a new tensor; on a line of its own it does nothing, and no error says so. Methods
that change their tensor end in an underscore. The same with `x.to(device)` of a tensor (a Module is moved in place, a
tensor is not), `x.clamp(0, 1)`, `x.detach()` and with the functions of torch that have no `out=`. What was meant - a
mask, a bound, a cut of the graph, a scaling of the gradient - does not take place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C237",
    name="result-thrown-away",
    title="The result of an operation that changes nothing is thrown away",
    severity=Severity.HIGH,
    sees="A statement that is only a call of a tensor's method without an underscore, or of a function of torch.",
    matters="The mask, the bound, the normalisation or the cut of the graph that was meant does not take place.",
    alike=("methods that end in an underscore", "Module.to(), which moves the module itself",
           "an object of one's own with a method of the same name", "a call that is timed or tried for its error"),
    confirm=("compare the tensor before and after the line: torch.equal(before, after)",),
)
_TENSOR_ONLY = frozenset({
    "masked_fill", "masked_scatter", "clamp", "clamp_min", "clamp_max", "unsqueeze", "index_add", "index_fill",
    "index_copy", "scatter_add", "scatter_reduce", "log_softmax", "view_as", "reshape_as", "expand_as", "type_as",
    "nan_to_num", "tril", "triu", "addcmul", "addcdiv", "repeat_interleave",
})  # fmt: skip
"""Methods that only tensors have (numpy's, pandas' and a module's objects have none of them)."""
_SHARED = frozenset({
    "to", "cuda", "cpu", "float", "half", "double", "long", "bfloat16", "mul", "div", "add", "sub", "pow", "sqrt",
    "exp", "log", "abs", "view", "reshape", "transpose", "scatter", "relu", "tanh", "round", "floor",
    "clip", "neg", "flatten", "expand", "repeat", "roll", "flip", "type", "bool", "int", "t", "detach",
    "squeeze", "permute", "softmax", "sigmoid", "contiguous", "lerp", "renorm",
})  # fmt: skip
"""Methods that other objects have too: said only of what certainly is a tensor. No reductions: nobody expects a mean to
change its tensor, and a forgotten one does no harm."""
_FUNCTIONS = frozenset({
    "masked_fill", "clamp", "clip", "where", "softmax", "log_softmax", "sigmoid", "relu", "normalize", "dropout", "mul",
    "div", "add", "sub", "exp", "log", "abs", "squeeze", "unsqueeze", "transpose", "permute", "reshape", "flatten",
    "cat", "stack", "nan_to_num", "tanh", "layer_norm", "pad", "scatter", "index_add", "tril", "triu", "gelu",
    "one_hot", "interpolate", "detach", "clone", "zeros_like", "flip", "roll", "round", "sqrt",
})  # fmt: skip
_MAKERS = frozenset({
    "randn", "rand", "zeros", "ones", "tensor", "as_tensor", "from_numpy", "randint", "arange", "linspace",
    "randn_like", "zeros_like", "ones_like", "full", "full_like", "rand_like", "cat", "stack", "einsum", "matmul",
    "bmm", "where", "softmax", "log_softmax", "sigmoid", "cross_entropy", "mse_loss", "linear", "relu", "logsumexp",
    "multinomial",
})  # fmt: skip
_IN_PLACE = frozenset({"mul", "div", "add", "sub", "clamp", "clamp_min", "clamp_max", "masked_fill", "nan_to_num"})
_MOVES = frozenset({"to", "cuda", "cpu", "float", "half", "double", "long", "bfloat16", "type", "type_as",
                    "contiguous", "int"})  # fmt: skip
"""What puts a tensor elsewhere or in another dtype: where that matters, the next operation raises."""
_LAYERS = re.compile(r"^(Lazy)?(Linear|Conv\d?d|ConvTranspose\dd|Embedding|LayerNorm|BatchNorm\dd|Sequential|ReLU|GELU|"
                     r"Softmax|Dropout|Tanh|Sigmoid)$")  # fmt: skip
_MODEL = re.compile(
    r"^((target|online|ema|frozen|teacher|student|q|value|text|image|momentum)_)?(model|net|network|classifier|generator|"
    r"discriminator|critic|actor|decoder|encoder|backbone|policy|student|teacher)\d*$", re.IGNORECASE)  # fmt: skip
"""What gives a tensor when it is called. (Not what a model's methods give.)"""
_TEST = re.compile(r"^\s*(import|from) (pytest|unittest)|common_utils import", re.MULTILINE)
_TESTING = ("pytest", "unittest", "common_utils")
_WATCHED = re.compile(r"raises|warns|time|prof|record_function|nvtx|Mode\(|capture")
_MOST_STEPS = 6


def check(project: Project) -> Iterator[Finding]:
    """Look at every statement that is a bare call."""
    for file in project.files:
        if "torch" not in file.text or (any(w in file.text for w in _TESTING) and file.mentions(_TEST)):
            continue
        code = syntax(file)
        for statement in code.of(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or any(k.arg == "out" for k in call.keywords):
                continue
            kept = _kept(code, call)
            if kept is not None and not any(meant(code, statement) for meant in (_tried, _measured, _shown)):
                yield _finding(code, statement, call, kept)


def _tried(code: Syntax, statement: ast.stmt) -> bool:
    """Whether only the error or the time of a call matters: in a `try`, an `assertRaises`, a timer."""
    for up in code.above(statement):
        if isinstance(up, ast.Try) and any(s is statement for s in up.body) and len(up.body) <= 2:
            return True
        if isinstance(up, ast.With) and _WATCHED.search(written(up.items[0].context_expr)):
            return True
    return False


def _shown(code: Syntax, statement: ast.stmt) -> bool:
    """Whether a notebook shows the value: the top level of a cell."""
    cells = ".ipynb" in code.file.path or "# %%" in code.file.text
    return cells and isinstance(code.parent(statement), ast.Module)


def _measured(code: Syntax, statement: ast.stmt) -> bool:
    """Whether a line is there for speed alone: warm-up before a measurement."""
    function = code.function(statement)
    name = function.name if function is not None else ""
    return bool(re.search(r"warm|bench|profil|timeit|speed|trace|flops", name, re.IGNORECASE))


def _kept(code: Syntax, call: ast.Call) -> ast.expr | None:
    """The tensor that stays as it is; None where it is not certainly one."""
    name = last_name(call.func)
    library = code.qualified(call.func)
    if library:
        plain = library.startswith(("torch.", "torch.nn.functional.")) and library.count(".") in (1, 3)
        plain = plain and name in _FUNCTIONS and not library.startswith("torch.nn.init")
        inplace = any(k.arg == "inplace" for k in call.keywords) or (name in ("relu", "dropout") and len(call.args) > 1)
        return call.args[0] if plain and call.args and not inplace else None
    if not isinstance(call.func, ast.Attribute) or name.endswith("_") or code.qualified(call.func.value):
        return None
    owner = call.func.value
    if name in _TENSOR_ONLY:
        return owner if _may_be_tensor(code, owner) else None
    return owner if name in _SHARED and _is_tensor(code, owner, _MOST_STEPS) else None


def _may_be_tensor(code: Syntax, node: ast.expr) -> bool:
    """Nothing speaks against a tensor: not self, not made by a class of the project or of another package."""
    if isinstance(node, ast.Name) and node.id in ("self", "cls"):
        return False
    made = code.origin(node)
    if isinstance(made, ast.Call):
        name = last_name(made.func)
        own = any(c.name == name for c in code.of(ast.ClassDef))
        library = code.qualified(made.func)
        return not own and not (name[:1].isupper() and not library.startswith("torch.")) and (
            not library or library.startswith(("torch.", "einops.")))  # fmt: skip
    return not isinstance(made, (ast.Dict, ast.List, ast.Constant, ast.Lambda))


def _is_tensor(code: Syntax, node: ast.expr, left: int) -> bool:
    """Whether a value certainly is a tensor of torch."""
    if left <= 0:
        return False
    if isinstance(node, ast.Attribute) and node.attr in ("grad", "data") and not code.qualified(node):
        return not isinstance(node.value, ast.Name) or node.value.id not in ("self", "jax", "np", "dataset", "args")
    if isinstance(node, ast.BinOp):
        return _is_tensor(code, node.left, left - 1) or _is_tensor(code, node.right, left - 1)
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = code.assigned(node)
        if made is None or any(n is node for n in below(made)):
            return isinstance(node, ast.Name) and _from_loader(code, node)
        return _is_tensor(code, made, left - 1)
    if isinstance(node, ast.Subscript):
        inner = isinstance(node.slice, (ast.Slice, ast.Tuple))
        return inner and _is_tensor(code, node.value, left - 1)
    if not isinstance(node, ast.Call):
        return False
    library = code.qualified(node.func)
    if library:
        return library.startswith("torch.") and last_name(node.func) in _MAKERS
    maker = code.assigned(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else None
    if isinstance(maker, ast.Call) and _LAYERS.match(last_name(maker.func)):
        return code.qualified(maker.func).startswith("torch.nn.")
    called = last_name(node.func)
    if _MODEL.search(called) and not called[:1].isupper() and not any(
            f.name == called for f in code.of(ast.FunctionDef)):  # fmt: skip
        return bool(node.args)
    if isinstance(node.func, ast.Attribute) and last_name(node.func) in {*_TENSOR_ONLY, *_SHARED}:
        return last_name(node.func) in _TENSOR_ONLY or _is_tensor(code, node.func.value, left - 1)
    return False


def _from_loader(code: Syntax, name: ast.Name) -> bool:
    """Whether a name is a tensor of a batch: unpacked in the head of a loop over a loader, assigned nowhere else."""
    if code.bindings(name) or "geometric" in code.file.text or "dgl" in code.aliases:
        return False
    for loop in code.loops(name):
        if not isinstance(loop, ast.For) or not re.search(r"\b(\w+_)?(data_?)?loader\b|_dl\b", written(loop.iter)):
            continue
        pair = loop.target
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and isinstance(pair.elts[1], ast.Tuple):
            pair = pair.elts[1]
        if pair is not loop.target or (isinstance(pair, ast.Tuple) and "enumerate" not in written(loop.iter)):
            return any(isinstance(e, ast.Name) and e.id == name.id for e in getattr(pair, "elts", ()))
    return False


def _finding(code: Syntax, statement: ast.Expr, call: ast.Call, kept: ast.expr) -> Finding:
    name, target = last_name(call.func), written(kept)
    patch: tuple[Patch, ...] = ()
    change = Change(code.file, "keep the result")
    if isinstance(kept, ast.Attribute) and kept.attr in ("grad", "data"):
        if name in _IN_PLACE:
            patch = change.insert(call.func.end_lineno or 1, call.func.end_col_offset or 0, "_").patches()
    elif isinstance(kept, (ast.Name, ast.Attribute)):
        patch = change.insert(call.lineno, call.col_offset, f"{target} = ").patches()
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} leaves {target} as it is, and its result is thrown away: "
        f"{name} gives a new tensor",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=Severity.MEDIUM if name in _MOVES else Severity.HIGH,
        measured={"kind": "discarded", "operation": name, "tensor": target},
        patch=patch,
    )
