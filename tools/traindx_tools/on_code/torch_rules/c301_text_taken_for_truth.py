"""A text from the command line is made a truth value by `bool`.

`bool("False")` is True, as of every text that is not empty. An option with `type=bool` can therefore not be switched
off by naming a value: `--pretrained False` trains with pretrained weights, `--freeze False` freezes. The same holds of
`bool(os.environ.get("AMP", "0"))`. `action="store_true"`, `argparse.BooleanOptionalAction` or a function that reads
the text do what is meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written

(RULE,) = pages("settings", ("C301",))
_READS_TEXT = ("jsonargparse", "simple_parsing")
"""Parsers for which type=bool means what it says."""
_WHOLE = re.compile(r"vars\(|__dict__|asdict|\*\*|getattr\(|Namespace")
_OFF = frozenset({"0", "false", "no", "off", "none", "n", "f"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every option and every environment variable."""
    files = [f for f in project.files if "bool" in f.text and ("add_argument" in f.text or "environ" in f.text
                                                                or "getenv" in f.text)]  # fmt: skip
    if not files:
        return
    codes = [syntax(f) for f in project.files]
    read = {n.attr for c in codes for n in c.of(ast.Attribute) if isinstance(n.ctx, ast.Load)}
    for file in files:
        code = syntax(file)
        if not any(name in file.text for name in _READS_TEXT) and "bool" not in code.aliases:
            yield from _options(code, read)
        yield from _environment(code)


def _options(code: Syntax, read: set[str]) -> Iterator[Finding]:
    for call in code.calls("add_argument"):
        kind = argument(call, 99, "type")
        body = code.function(call)
        if kind is None or not _is_bool(code, kind) or (body is not None and body.name == "add_arguments_to_parser"):
            continue
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        default = argument(call, 99, "default")
        if not texts or argument(call, 99, "action") is not None:
            continue
        name = max(texts, key=len)
        said = argument(call, 99, "dest")
        attribute = said.value if isinstance(said, ast.Constant) else name.lstrip("-").replace("-", "_")
        if attribute not in read and not code.file.mentions(_WHOLE):
            continue
        off = isinstance(default, ast.Constant) and isinstance(default.value, str) and default.value.lower() in _OFF
        if off:
            why = f"is on by its default {written(default)}, which is a text and therefore True"
        elif isinstance(default, ast.Constant) and default.value is True:
            why = f"cannot be switched off: {name} False gives bool('False'), which is True"
        else:
            why = f"is switched on by every text: {name} False gives bool('False'), which is True"
        yield _finding(code, call, f"The option {name} at {code.at(call)} {why}", "default" if off else "option",
                       Severity.HIGH if off else None)  # fmt: skip


def _is_bool(code: Syntax, kind: ast.expr) -> bool:
    """`bool`, or a function that does nothing else."""
    if isinstance(kind, ast.Lambda) and len(kind.args.args) == 1:
        inner, own = kind.body, kind.args.args[0].arg
        return isinstance(inner, ast.Call) and _is_plain(code, inner.func) and len(inner.args) == 1 and (
            isinstance(inner.args[0], ast.Name) and inner.args[0].id == own)  # fmt: skip
    return _is_plain(code, kind)


def _is_plain(code: Syntax, name: ast.expr) -> bool:
    return isinstance(name, ast.Name) and name.id == "bool" and not code.bindings(name)


def _environment(code: Syntax) -> Iterator[Finding]:
    for call in code.calls("bool"):
        inner = code.origin(call.args[0]) if _is_plain(code, call.func) and len(call.args) == 1 else None
        if not isinstance(inner, ast.Call) or last_name(inner.func) not in ("get", "getenv"):
            continue
        default = argument(inner, 1, "default")
        asked = written(inner.func).endswith(("environ.get", "getenv"))
        off = isinstance(default, ast.Constant) and isinstance(default.value, str) and default.value.lower() in _OFF
        if asked and off and any(isinstance(n, ast.Constant) for n in below(inner)):
            yield _finding(
                code, call,
                f"{written(call)[:70]} at {code.at(call)} is True without the variable and for {written(default)}: a "
                "text that is not empty", "environment", Severity.HIGH,
            )  # fmt: skip


def _finding(
    code: Syntax, node: ast.AST, why: str, kind: str, severity: Severity | None
) -> Finding:
    return RULE.finding(
        why,
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        severity=severity,
        measured={"kind": kind},
    )
