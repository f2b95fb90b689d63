"""Splits of rows that come out otherwise when a run goes on: rows that were trained on are held out then.

A run that goes on from its own checkpoint splits its data again. The parts are the same only where the draw is: by a
seed that stays, or by indices that were kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.filling.resumes import goes_on_from
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import NONE, Const, Symbol, Thing, Value, parts
from traindx_tools.program.parts import Lack

_SEEDS = ("manual_seed", "seed", "set_seed", "seed_everything", "seed_all", "set_random_seed", "fix_seed")
_OF_SKLEARN = frozenset({"train_test_split", "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit", "KFold",
                         "StratifiedKFold"})
_IN_ORDER = frozenset({"KFold", "StratifiedKFold"})
"""Those that draw nothing unless they are told to shuffle."""
_ORDERS = ("randperm", "permutation", "shuffle")
_VARY = ("time.", "os.getpid", "uuid.", "secrets.", "datetime.", "random.", "numpy.random.", "os.urandom")
_ASKS = re.compile(r"exist|is_?file|resume|None")
_SAVES = frozenset({"save", "dump", "savez", "savez_compressed", "savetxt", "to_csv", "write_text", "write"})


def drawn_anew(project: Project) -> Iterator[Lack]:
    """Every split of a program that goes on from its checkpoints whose draw does not stay the same."""
    back = goes_on_from(project)
    if back is None:
        return
    seeds = [e for e in project.calls(*_SEEDS) if not isinstance(e.receiver, Thing)]
    told: set[str] = set()
    for event in project.calls("random_split", *_OF_SKLEARN, *_ORDERS):
        spot = event.spot
        if str(spot) not in told and _is_split(event) and not _is_kept(project, event):
            why = _why(project, event, seeds)
            if why:
                told.add(str(spot))
                yield Lack("split", why, spot, back.spot)


def _is_split(event: Event) -> bool:
    """Whether it takes rows apart: a call that does so, or an order that is cut in two."""
    if event.method not in _ORDERS:
        shuffles = event.kwargs.get("shuffle")
        return shuffles == Const(True) if event.method in _IN_ORDER else shuffles != Const(False)
    code = syntax(event.file)
    statement = code.statement(event.node)
    target: ast.AST | None = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if event.method == "shuffle" and isinstance(event.node, ast.Call):
        target = event.node.args[0] if event.node.args else None
    if not isinstance(target, ast.Name):
        return False
    cuts = [up.slice for r in code.reads(code.scope(event.node), target.id)
            if isinstance(up := code.parent(r), ast.Subscript) and up.value is r and isinstance(up.slice, ast.Slice)]
    return any(c.lower is None and c.upper is not None for c in cuts) and any(
        c.lower is not None and c.upper is None for c in cuts)  # fmt: skip


def _is_kept(project: Project, event: Event) -> bool:
    """Whether the parts are written somewhere, or read where they were, or a condition decides about the draw."""
    code = syntax(event.file)
    if any(isinstance(up, ast.If) and _ASKS.search(written(up.test)) for up in code.above(event.node)):
        return True
    statement = code.statement(event.node)
    targets = [t for a in statement.targets for t in ast.walk(a)] if isinstance(statement, ast.Assign) else []
    names = {t.id for t in targets if isinstance(t, ast.Name)}
    calls = [c for f in project.files for c in syntax(f).of(ast.Call) if last_name(c.func) in _SAVES]
    saved = [n for c in calls for a in (*c.args, *(k.value for k in c.keywords)) for n in below(a)]
    return any((isinstance(n, ast.Name) and n.id in names) or (isinstance(n, ast.Attribute) and n.attr == "indices")
               for n in saved)


def _why(project: Project, event: Event, seeds: list[Event]) -> str:
    """Why the next start draws otherwise, as the end of a sentence; "" where it does not, or nobody knows."""
    generator = event.argument(2, "generator") if event.method == "random_split" else event.kwargs.get("generator")
    own = event.kwargs.get("random_state") if event.method in _OF_SKLEARN else None
    if generator is None and event.method in _ORDERS and isinstance(event.receiver, Thing):
        generator = event.receiver
    if own is not None and own != NONE:
        return _varies(own)
    if generator is not None and generator != NONE:
        made = generator.parent if isinstance(generator, Symbol) else generator  # what manual_seed hands out again
        if not isinstance(made, Thing):
            return ""
        given = [a for e in project.calls("manual_seed") if e.receiver is made for a in e.args]
        given += [a for a in made.args[:1] if made.short in ("default_rng", "RandomState", "Random")]
        given = [a for a in given if a != NONE]
        return _varies(given[-1]) if given else "by a generator that nobody seeds"
    before = [e for e in seeds if e.args or e.kwargs]
    if not before:
        return "by a generator that nobody seeds" if not seeds else ""
    said = [_varies(a) for e in before for a in (*e.args, *e.kwargs.values())]
    return said[0] if said and all(said) else ""


def _varies(seed: Value) -> str:
    """What makes a seed another one in the next start."""
    for part in parts(seed):
        if isinstance(part, Symbol) and part.role == "index":
            return "by a seed that counts on from stage to stage"
        if isinstance(part, Symbol) and part.role == "call" and part.name.startswith(_VARY):
            return "by a seed that is another one at each start"
    return ""
