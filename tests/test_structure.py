"""The house: no file imports another one that imports it, and no file is above 400 lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"traindx": ROOT / "orchestrator" / "traindx", "traindx_tools": ROOT / "tools" / "traindx_tools"}
MOST_LINES = 400


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules of the project that a file imports anywhere, also only for its types."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in modules() else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(found)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements, without the expressions in them: no import stands in one."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, field, ())
        for one in inner if isinstance(inner, list) else ():
            yield one
            yield from statements(one)


def on_circles(graph: dict[str, set[str]]) -> set[str]:
    """What reaches itself: nodes whose strongly connected component has more than one member."""
    def left(edges: dict[str, set[str]]) -> set[str]:
        """What is left when nodes without an edge into the rest are taken away again and again."""
        rest = set(edges)
        while True:
            ends = {n for n in rest if not edges[n] & rest}
            if not ends:
                return rest
            rest -= ends

    backwards: dict[str, set[str]] = {n: set() for n in graph}
    for node, targets in graph.items():
        for target in targets:
            backwards[target].add(node)
    candidates = left(graph) & left(backwards)
    return {n for n in candidates if _reaches(n, graph, candidates)}


def _reaches(start: str, graph: dict[str, set[str]], within: set[str]) -> bool:
    """Whether a way leads from a node back to it."""
    seen: set[str] = set()
    todo = list(graph[start] & within)
    while todo:
        node = todo.pop()
        if node == start:
            return True
        if node not in seen:
            seen.add(node)
            todo.extend(graph[node] & within)
    return False


def test_a_circle_is_found():
    assert on_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {"b", "c"}
    assert on_circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()


def test_no_files_import_each_other_in_a_circle():
    known = modules()
    graph = {name: {m for m in imported(path) if m in known and m != name} for name, path in known.items()}
    assert sorted(on_circles(graph)) == []


MAY_IMPORT = {
    "program": set(),
    "knowledge": {"program"},
    "invariants": {"program", "knowledge", "finding", "rules"},
    "on_code": {"program", "knowledge", "source_files", "artifact", "finding"},
    "edits": {"on_code", "invariants", "program", "knowledge", "finding"},
    "code_rules": {"on_code", "edits", "invariants", "finding", "rules"},
    "code_audit": {"on_code", "code_rules", "edits", "invariants", "program", "source_files", "notebooks", "artifact",
                   "collection", "finding", "rules"},
    "printed_values": {"on_code", "knowledge"},
    "program_texts": {"program"},
    "source_files": {"notebooks", "artifact"},
    "notebooks": {"finding"},
}  # fmt: skip
"""Reading, the model, checks, edits: who may import whom. The follower knows neither checks nor edits nor reports."""


def test_each_layer_imports_those_below_it():
    known = modules()
    for name, path in known.items():
        room = name.removeprefix("traindx_tools.").partition(".")[0]
        if name.startswith("traindx_tools.") and room in MAY_IMPORT:
            of_ours = {m.removeprefix("traindx_tools.").partition(".")[0] for m in imported(path) if
                       m.startswith("traindx_tools.")}
            assert of_ours <= {room} | MAY_IMPORT[room], name


def test_no_file_is_long():
    long = [path.stem for path in modules().values() if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES]
    assert sorted(long) == [], f"files above {MOST_LINES} lines"
