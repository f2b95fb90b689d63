"""The short cuts of the audit give what the long way gives: children of nodes, texts of names, yields of functions."""

from __future__ import annotations

import ast
import inspect

import pytest

from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile, any_children, below, children, parse_source
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.on_code.trace import walk

EVERY_KIND = '''
import os.path as p, sys
from . import (a as b)

@decorated(1)
async def f(x: int, /, y=2, *args: str, z: float = 3., **rest) -> None:
    """Doc."""
    global g
    async with open(x) as h, other:
        await h
    async for i in h:
        yield i
    else:
        yield
    del x[0], y.z
    assert x, "why"
    return

class C(Base, metaclass=M):
    n: int = 1
    m: str

    def g(self):
        nonlocal_ = lambda q, *r, k=1: q if k else (r, {**q}, {1: 2, **r}, {1, 2}, [*r])
        return [a for a in b if a if not b for c in d], {k: v for k, v in w}, {s for s in t}, (u for u in v)

while x and y or not z:
    x += -1 ** 2
    if (w := x[1:2, ..., ::3]) < y <= z is not None in t:
        continue
    elif x:
        break
    pass
try:
    raise E from None
except (A, B) as error:
    print(f"{x!r:>{width}} {y}", end="")
except:
    raise
else:
    x = y = z.a.b(*c, **d)
finally:
    x @ y
match point:
    case [1, *rest] | {"k": v, **more}:
        pass
    case C(0, n=1) as whole if whole:
        pass
    case None | "text":
        yield_ = 1
'''
_OPERATORS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def source(text: str) -> SourceFile:
    made = parse_source("train.py", text)
    assert isinstance(made, SourceFile), made
    return made


def test_children_of_every_kind_of_node_are_those_of_ast() -> None:
    tree = ast.parse(EVERY_KIND)
    kinds = set()
    for node in ast.walk(tree):
        if isinstance(node, _OPERATORS):
            continue
        wanted = [n for n in ast.iter_child_nodes(node) if not isinstance(n, _OPERATORS)]
        assert list(children(node)) == wanted, ast.dump(node)
        assert any_children(node) == wanted, ast.dump(node)
        kinds.add(type(node))
    assert len(kinds) > 60, "the text above has nearly every kind"
    assert list(below(tree)) == [n for n in ast.walk(tree) if not isinstance(n, _OPERATORS)]


@pytest.mark.parametrize("text", ["x", "a.b", "a.b.c", "f(x).y", "a[0].b", "(1).real", "a.b(c)", "-x", "x.y + 1"])
def test_the_text_of_an_expression_is_that_of_ast(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert written(node) == ast.unparse(node)


@pytest.mark.parametrize(
    ("text", "yields"),
    [
        ("def f():\n    yield 1\n", True),
        ("def f():\n    x = yield from g()\n", True),
        ("@contextmanager\ndef f():\n    with a:\n        yield\n", True),
        ("def f():\n    return 1\n", False),
        ("def f():\n    '''It does not yield.'''\n    return 1\n", False),
        ("def f():\n    def g():\n        yield 1\n    return g\n", False),
        ("def f():\n    return 1\ndef g():\n    yield 1\n", False),
        ("def f():\n    return 1; text = 'yield'\n", False),
    ],
)
def test_a_function_is_a_generator_if_its_own_body_yields(text: str, yields: bool) -> None:
    file = source(text)
    node = file.tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    assert FunctionInfo(node, file, "f").is_generator is yields


def test_a_lambda_of_one_line_is_no_generator() -> None:
    file = source("f = lambda: 1\n")
    node = file.tree.body[0]
    assert isinstance(node, ast.Assign)
    assert isinstance(node.value, ast.Lambda)
    assert not FunctionInfo(node.value, file, "lambda").is_generator


def test_nodes_come_from_the_top_of_the_file_down() -> None:
    code = syntax(source(inspect.getsource(inspect)))
    for kind in (ast.Call, ast.Name, ast.FunctionDef, ast.keyword, ast.ExceptHandler):
        lines = [n.lineno for n in code.of(kind)]  # type: ignore[attr-defined]
        assert len(lines) > 5
        assert lines == sorted(lines)


def test_a_trace_is_walked_once_and_found_by_its_methods() -> None:
    text = "import torch\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n    opt.step()\n"
    project = Project.of([source(text)])
    (root,) = project.roots
    assert project.places(root) is project.places(root)
    alike = zip(project.places(root), walk(root), strict=True)
    assert all((p.event, p.order, p.path) == (w.event, w.order, w.path) for p, w in alike)
    assert list(project.roots_with(["backward"])) == [root]
    assert not list(project.roots_with(["zero_grad"]))
    assert not list(project.roots_with([]))
    assert root in project.blocks
    assert len(project.blocks) == 2
