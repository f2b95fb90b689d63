"""`function_of`: a name that a parameter, a variable or an import has taken means no function of the file any more."""

from __future__ import annotations

import ast

import pytest

from traindx_tools.on_code.source import SourceFile, parse_source
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tracing import function_of


def source(text: str) -> SourceFile:
    parsed = parse_source("train.py", text)
    assert isinstance(parsed, SourceFile)
    return parsed


def followed(text: str) -> list[int | None]:
    """The lines of the functions that the calls `f(7)` mean."""
    code = syntax(source(text))
    used = [c.func for c in code.calls("f") if isinstance(c.func, ast.Name)
            and c.args and isinstance(c.args[0], ast.Constant)]  # fmt: skip
    assert used
    found = [function_of(code, name) for name in used]
    return [None if f is None else f.lineno for f in found]


@pytest.mark.parametrize("use", [
    "def g(f):\n    return f(7)", "g = lambda f: f(7)", "def g(*, f=None):\n    return f(7)",
    "def g(*f):\n    return f(7)", "def g(**f):\n    return f(7)", "def g(f, /):\n    return f(7)",
    "def g(y):\n    f = y\n    return f(7)", "def g(y):\n    f: object = y\n    return f(7)",
    "def g(y):\n    for f in y:\n        f(7)", "def g(y):\n    return [f(7) for f in y]",
    "def g(y):\n    return {f(7): 1 for _, f in y}", "def g(y):\n    with y as f:\n        f(7)",
    "def g(y):\n    a, (f, b) = y\n    f(7)", "def g(y):\n    if (f := y):\n        f(7)",
    "def g(f):\n    def h():\n        return f(7)\n    return h", "def g(y):\n    from z import f\n    f(7)",
    "def g(y):\n    import z as f\n    f(7)", "def g(y):\n    try:\n        y()\n    except E as f:\n        f(7)",
    "class A:\n    def g(self, f):\n        return f(7)", "async def g(f):\n    return f(7)",
])  # fmt: skip
def test_a_name_that_was_taken_is_not_followed(use: str) -> None:
    assert followed(f"def f(x):\n    pass\n{use}\n") == [None]


@pytest.mark.parametrize("use", [
    "f(7)", "def g(y):\n    return f(7)", "def g(y):\n    def h(z):\n        return f(7)\n    return h",
    "def g(y, f=f):\n    return f(7)", "def g(y, *, f=f):\n    return f(7)", "def g(f=f(7)):\n    pass",
    "@f(7)\ndef g(f):\n    pass", "def g(f):\n    pass\nf(7)", "def g(y):\n    return [f(7) for x in y]",
    "def g(y):\n    h = [f for f in y]\n    return f(7)", "class A:\n    f = 3\n    def g(self):\n        return f(7)",
    "def g(y):\n    k = lambda f: f\n    return f(7)", "def g(y):\n    def h():\n        f = y\n    return f(7)",
])  # fmt: skip
def test_a_name_that_is_still_the_function_s_is_followed(use: str) -> None:
    assert followed(f"def f(x):\n    pass\n{use}\n") == [1]


def test_a_function_of_the_same_scope_comes_first() -> None:
    assert followed("def f(x):\n    pass\ndef g(y):\n    def f(x):\n        pass\n    return f(7)\n") == [4]
