"""A mask value does not fit into half precision.

float16 ends at 65504. `scores.masked_fill(mask, -1e9)` raises "value cannot be converted to type at::Half without
overflow" as soon as the scores are float16: a model cast by `.half()`, or a matrix product under float16 autocast.
`torch.finfo(scores.dtype).min` fits every type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code import patching
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C174",
    name="mask-value-overflows",
    title="A mask value does not fit into float16",
    severity=Severity.HIGH,
    sees="masked_fill with a number beyond 65504 in a project that computes in float16.",
    matters="The script stops in half precision and runs in float32 and bfloat16.",
    alike=("an overflow of activations", "hardware without half precision"),
    confirm=("print(scores.dtype) before masked_fill",),
    thresholds={"largest float16": Threshold(65504.0, "absolute", "IEEE 754 binary16")},
)
_LARGEST = 65504.0
_HALF = re.compile(r"\.half\(\)|float16|fp16|\bautocast\(")
_NOT_HALF = re.compile(r"autocast\([^)]*bfloat16|enabled\s*=\s*False")


def check(project: Project) -> Iterator[Finding]:
    """Look at every masked_fill with a number."""
    computed = {id(e.node): e for e in project.calls("masked_fill", "masked_fill_")}
    half: bool | None = None
    for file in project.files:
        if "masked_fill" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("masked_fill", "masked_fill_"):
            own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) != "torch.masked_fill"
            value = argument(call, 1 if own else 2, "value")
            number = code.number(value)
            if value is None or number is None or abs(number) <= _LARGEST:
                continue
            certain = _certain(computed.get(id(call)))
            half = _half(project) if half is None else half
            if certain or half:
                yield _finding(code, call, value, number, certain)


def _half(project: Project) -> bool:
    """Whether a file of the project computes in float16."""
    return any(f.mentions(_HALF) and not f.mentions(_NOT_HALF) for f in project.files)


def _certain(event: Event | None) -> bool:
    """Whether the tensor is float16 at this point."""
    if event is None:
        return False
    x = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
    known = isinstance(x, Tensor) and x.dtype is not None
    return (isinstance(x, Tensor) and x.dtype == "float16") or (event.autocast == "float16" and not known)


def _finding(code: Syntax, call: ast.Call, value: ast.expr, number: float, certain: bool) -> Finding:
    x = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
    patch = None
    if isinstance(x, (ast.Name, ast.Attribute)) and code.qualified(x) == "":
        limit = "min" if number < 0 else "max"
        patch = patching.replace_text(code.file, value, f"torch.finfo({written(x)}.dtype).{limit}", "fits every type")
    return RULE.finding(
        f"{code.file.segment(call)} at {code.at(call)} fills with {number:g}, beyond the largest float16 number (65504)"
        + ("" if certain else "; the project also runs in float16"),
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=Severity.HIGH if certain else Severity.MEDIUM,
        measured={"kind": "mask", "value": number},
        patch=() if patch is None else (patch,),
    )
