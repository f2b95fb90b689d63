"""What a probe prints because its author wrote it: texts, and numbers that stand in a print or in a name it prints.

A number that a calculation uses is no such thing: `print(1.0 - x)` measures, `print("moved", 2399)` does not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

_PRINTS = frozenset({"print", "write", "writelines", "format", "str", "repr", "f"})


@dataclass(frozen=True)
class Written:
    """The texts of a probe's code, and the numbers that it prints as they are."""

    texts: tuple[str, ...]
    numbers: frozenset[float] = frozenset()

    def says(self, quote: str, numbers: Set[float], numbers_in: Callable[[str], set[float]]) -> bool:
        """True where what is quoted of the output was written beforehand: its numbers, or without any the words."""
        if numbers:
            return numbers <= self.numbers | {n for text in self.texts for n in numbers_in(text)}
        wanted = " ".join(quote.split())
        return any(wanted in " ".join(text.split()) for text in self.texts)


def written(code: str) -> Written:
    """Of Python, its literals; of anything else, a shell command, the whole text."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return Written((code,))
    nodes = list(ast.walk(tree))
    texts = tuple(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    bound: dict[str, set[float]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            number = _number(node.value)
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, set()).add(float("nan") if number is None else number)
    shown = (n for node in nodes for n in _shown(node))
    found = [bound.get(value.id, set()) if isinstance(value, ast.Name) else {_number(value)} for value in shown]
    return Written(texts, frozenset(n for numbers in found for n in numbers if n is not None))


def _shown(node: ast.AST) -> Iterator[ast.expr]:
    """What a node prints or formats directly."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _PRINTS:
            yield from (a for arg in node.args for a in (arg.elts if isinstance(arg, (ast.List, ast.Tuple)) else [arg]))
    elif isinstance(node, ast.FormattedValue):
        yield node.value


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    known = isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    return float(node.value) if known else None  # type: ignore[attr-defined]
