"""NumPy's float64 reaches a float32 network.

NumPy makes float64 by default and `torch.from_numpy` keeps it, as `torch.tensor` does for NumPy arrays. The first
linear layer then raises ("expected m1 and m2 to have the same dtype, but got: double != float"), or, where the model
itself was cast to double to quiet it, everything runs at half the speed or less. Seen where arrays that NumPy makes or
reads become tensors without a cast, and those are what a module of float32 is called with, or what a data set returns.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C224",
    name="float64-inputs",
    title="float64 from NumPy reaches a float32 network",
    severity=Severity.HIGH,
    sees="torch.from_numpy of what numpy.random, linspace, loadtxt and the like make, never cast, given to a model.",
    matters="The first forward pass raises, or the whole model is cast to double and runs slowly.",
    alike=("integer inputs of an embedding", "a model that is double on purpose"),
    confirm=("print(x.dtype, next(model.parameters()).dtype)",),
)
_MAKERS = re.compile(
    r"^numpy\.(random\.(rand|randn|normal|uniform|standard_normal|random)|linspace|loadtxt|genfromtxt|zeros|ones|sin|cos)$"
)
_CASTS = re.compile(
    r"float32|float16|bfloat16|\.float\(\)|\.half\(\)|FloatTensor|set_default_dtype|\.double\(\)|float64|get_default_dtype"
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every array that becomes a tensor, in files that cast nothing."""
    for file in project.files:
        text = file.text
        if "from_numpy" not in text and "torch.tensor(" not in text and "as_tensor" not in text:
            continue
        if "numpy" not in text or file.mentions(_CASTS) or "nn." not in text or "backward(" not in text:
            continue
        code = syntax(file)
        for call in code.calls("from_numpy", "tensor", "as_tensor"):
            array = argument(call, 0, "ndarray", "data")
            given = argument(call, 1, "dtype")
            if array is None or given is not None or not code.qualified(call.func).startswith("torch."):
                continue
            if _is_double(code, array) and _reaches_a_module(code, call):
                library = written(call.func.value) if isinstance(call.func, ast.Attribute) else "torch"
                yield RULE.finding(
                    f"{file.segment(call)} at {code.at(call)} keeps NumPy's float64; the network's weights are float32",
                    code.place(call),
                    file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "double"},
                    patch=forms.as_float32(file, call, library),
                )
                return


def _is_double(code: Syntax, node: ast.expr, left: int = 8) -> bool:
    """Whether an array certainly holds float64: made by NumPy without a dtype, then only added to and multiplied."""
    origin = code.origin(node)
    if isinstance(origin, ast.BinOp):
        return left > 0 and any(_is_double(code, side, left - 1) for side in (origin.left, origin.right))
    if isinstance(origin, ast.Call):
        if argument(origin, 99, "dtype") is not None or last_name(origin.func) == "astype":
            return False
        return _MAKERS.match(code.qualified(origin.func)) is not None and len(origin.args) < 3
    return False


def _reaches_a_module(code: Syntax, call: ast.Call) -> bool:
    """Whether the tensor is bound to a name that something with layers is called with."""
    statement = code.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or statement.value is not call or not isinstance(target, ast.Name):
        return False
    for other in code.of(ast.Call):
        first = other.args[0] if other.args else None
        while isinstance(first, ast.Subscript):
            first = first.value
        if isinstance(first, ast.Name) and first.id == target.id and code.scope(other) is code.scope(call):
            made = code.origin(other.func) if isinstance(other.func, (ast.Name, ast.Attribute)) else None
            own = {c.name for c in code.of(ast.ClassDef) if any("Module" in written(b) for b in c.bases)}
            if isinstance(made, ast.Call) and (
                code.qualified(made.func).startswith("torch.nn.") or last_name(made.func) in own
            ):
                return True
    return False
