"""Finds the entry point of a run by the strongest witness there is, and from it the files that belong to the run.

From the strongest to the weakest: what the person says (`--entry`), the command that starts the run, the script of a
recorded process, what the log says of itself (its command, its arguments, a traceback), whose prints the log's lines
are, a single script. Where none of them speaks, the entry point is unknown and everything that was given is judged.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.scope.commands import launches
from traindx_tools.scope.copies import executed_copies
from traindx_tools.scope.logged import told_by
from traindx_tools.scope.model import NO_TRAINING, OTHER_PROGRAMS, Asked, LogLines, Scope
from traindx_tools.scope.tree import Tree, read_text
from traindx_tools.scope.written import by_none, written_by

_TEST = re.compile(r"^(?:test_.*|.*_test|conftest)$")
_TRAINS = re.compile(r"\.backward\(|value_and_grad|\.fit\(|\.train\(\s*\)|\.learn\(|apply_gradients|jax\.grad|"
                     r"GradientTape")
_LIBRARY = re.compile(r"\b(?:import|from)\s+(?:torch|jax|flax|optax|tensorflow|keras|lightning|pytorch_lightning|"
                      r"transformers|sklearn|xgboost|hydra)\b")
_MAY_TRAIN = re.compile(r"(?!traindx)train|loss|optimi[sz]er|epoch|gradient|checkpoint", re.IGNORECASE)
"""What the names of a program that trains speak of: a script without any of it is another errand in the same folder."""
_STARTED = re.compile(r"\.(?:py|sh|slurm|sbatch|ya?ml|ipynb)\b")
"""A text that names a program or its settings, as in a script that starts another one."""
_OPEN_IMPORT = re.compile(r"(?:import_module|__import__)\(\s*(?!f?[\"'][\w.])|spec_from_file_location|_target_|"
                          r"instantiate\(")
"""An import whose module is computed: no text of the program says which."""
ONLY = "the only script"
"""How an entry point is known that nothing names: there is no other."""


@dataclass(frozen=True)
class Found:
    """Everything among which the run's files lie."""

    code: tuple[Path, ...]
    named: tuple[Path, ...] = ()
    """Python files that the person named one by one."""
    logs: tuple[LogLines, ...] = ()
    live: tuple[Path, ...] = ()
    """Scripts of processes that were recorded."""
    configs: tuple[Path, ...] = ()
    shell: tuple[Path, ...] = ()
    root: Path = Path()


@dataclass(frozen=True)
class Entry:
    """An entry point and how it is known. `ran`: further files that are known to have run."""

    scripts: tuple[Path, ...] = ()
    how: str = ""
    configs: tuple[Path, ...] = ()
    ran: tuple[Path, ...] = ()
    certain: bool = True
    """Whether what the scripts do not use lies outside of the run."""
    logs_beside: tuple[Path, ...] = ()
    arguments: tuple[str, ...] | None = None
    """With which a log shows that Python started the one script; None where none shows it."""


def find_scope(asked: Asked, found: Found) -> Scope:
    """The scope of a run. Raises BadUsage for an `--entry` that is no Python file."""
    copies = {} if asked.everything else executed_copies(found.code, (*found.named, *_asked_for(asked, found.root)))
    scope = _found(asked, replace(found, code=tuple(p for p in found.code if p not in copies)))
    return replace(scope, copies=tuple(copies.items()))


def _asked_for(asked: Asked, root: Path) -> Iterator[Path]:
    """Notebooks that are named as the entry point."""
    for name in asked.entry:
        yield from (p for p in (Path(name), root / name) if p.is_file())


def _found(asked: Asked, found: Found) -> Scope:
    tree = Tree(found.code, (found.root,))
    entry = _entry(asked, found, tree)
    if not found.code and not entry.scripts:
        return Scope(code_known=False)
    if asked.everything:
        return Scope(entry.scripts, entry.how or "all files that were given are judged (--all)",
                     _once((*entry.scripts, *tree.given)))
    if not _known(asked, found, entry) and not any(_may_train(f, tree.text(f)) for f in tree.given):
        return Scope(how=NO_TRAINING, beside=tree.given)
    if not entry.scripts:
        if found.logs and not found.named and by_none(found.logs, tree, _outermost(_scripts(found, tree), tree)):
            return Scope(how=OTHER_PROGRAMS, beside=tree.given)
        return Scope(judged=tree.given)
    own = tree.closure((*entry.scripts, *found.named, *entry.ran))
    judged = own if entry.certain else _once((*own, *tree.given))
    if any(_OPEN_IMPORT.search(tree.text(f)) for f in own):
        judged = _once((*judged, *_loose(tree)))
    named, configs = _configs(judged, entry, found, tree)
    if named:
        judged = _once((*judged, *_modules_in(named, judged[0], tree)))
    keys = {os.path.realpath(f) for f in judged}
    beside = tuple(f for f in tree.given if os.path.realpath(f) not in keys)
    return Scope(entry.scripts, entry.how, judged, beside, configs, entry.logs_beside, arguments=entry.arguments)


def _may_train(file: Path, text: str) -> bool:
    """Whether a program may train: what it imports and the names in it say so; of one that Python cannot read nobody
    knows. Its other texts say what it prints or looks at, not what it does."""
    if _LIBRARY.search(text) or _MAY_TRAIN.search(file.stem):
        return True
    try:
        return any(_MAY_TRAIN.search(name) for name in _names(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


def _names(tree: ast.Module) -> Iterator[str]:
    """The names in a program, and its texts that name another program."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if _STARTED.search(text):
                yield text


def _known(asked: Asked, found: Found, entry: Entry) -> bool:
    """Whether somebody or something of the run names its code: a person, a command, a recorded process, a log."""
    if asked.entry or asked.commands or found.live or found.named or not found.logs:
        return True
    return bool(entry.scripts) and not entry.how.startswith(ONLY)


def _once(files: Iterable[Path]) -> tuple[Path, ...]:
    return tuple({os.path.realpath(f): f for f in reversed(list(files))}.values())[::-1]


def _entry(asked: Asked, found: Found, tree: Tree) -> Entry:
    if asked.entry:
        said = [entry_file(e, found.root) for e in asked.entry]
        return Entry(tuple(tree.file(str(f), found.root) or f for f in said), "named with --entry")
    for command in asked.commands:
        started = launches(command, tree, found.root)
        if started:
            return Entry(tuple(x.script for x in started), f"the command starts it: {command.strip()[:80]}",
                         tuple(c for x in started for c in x.configs))
    if found.live:
        return Entry(tuple(tree.file(str(f), found.root) or f for f in found.live), "the recorded process ran it")
    return _by_logs(found, tree) or _by_files(found, tree)


def entry_file(name: str, root: Path) -> Path:
    """The file of `--entry`, absolute: as seen from the current directory, else from the root. Raises BadUsage."""
    for path in (Path(name), root / name):
        if path.is_file():
            if path.suffix not in (".py", ".ipynb"):
                raise BadUsage(f"--entry {name} is no Python file: give the script (.py) that starts the training")
            return path.absolute()
    what = "is a folder" if Path(name).is_dir() or (root / name).is_dir() else "does not exist"
    raise BadUsage(f"--entry {name} {what}: give the Python file that starts the training, as seen from here or from "
                   f"{root}")


def _scripts(found: Found, tree: Tree) -> tuple[Path, ...]:
    """The files that may have been started: those that were named, where one of them can be; tests only where alone."""
    named = {os.path.realpath(f) for f in found.named}
    mine = [s for s in tree.scripts if os.path.realpath(s) in named] or list(tree.scripts)
    return tuple([s for s in mine if not _TEST.match(s.stem)] or mine)


def _by_logs(found: Found, tree: Tree) -> Entry | None:
    """What the logs say, each of its own run. Of logs that different scripts wrote, those of one script are chosen."""
    each = {log: e for log in found.logs if (e := _by_log(log, found, tree)) is not None}
    if not each:
        return None
    chosen = _of_one_script(each, tree)
    own = [e for log, e in each.items() if log in chosen]
    how = "; ".join(dict.fromkeys(e.how for e in own))
    return Entry(_once(s for e in own for s in e.scripts), how, tuple(c for e in own for c in e.configs),
                 _once(f for e in own for f in e.ran), logs_beside=_logs_beside(found.logs, each, chosen),
                 arguments=own[-1].arguments)


def _of_one_script(each: Mapping[LogLines, Entry], tree: Tree) -> frozenset[LogLines]:
    """The logs of the script that trains, was run last and lies nearest; all logs where that does not tell them apart.

    Logs that the person named one by one are all meant.
    """
    groups: dict[tuple[Path, ...], list[LogLines]] = {}
    for log, entry in each.items():
        groups.setdefault(tuple(sorted(entry.scripts)), []).append(log)
    if len(groups) < 2 or any(log.chosen for log in each):
        return frozenset(each)

    def rank(scripts: tuple[Path, ...]) -> tuple[bool, int, int]:
        logs = groups[scripts]
        return (_trains(scripts, tree), max(x.written for x in logs), -min(len(Path(x.name).parts) for x in logs))

    best = max(map(rank, groups))
    first = [s for s in groups if rank(s) == best]
    return frozenset(groups[first[0]]) if len(first) == 1 else frozenset(each)


def _logs_beside(logs: Sequence[LogLines], each: Mapping[LogLines, Entry],
                 chosen: frozenset[LogLines]) -> tuple[Path, ...]:
    """The logs of other scripts, and what lies in a folder that holds such logs alone."""
    homes = {Path(x.name).parent for x in chosen}
    others = {Path(x.name).parent for x in each if x not in chosen} - homes
    return tuple(Path(x.name) for x in logs
                 if x not in chosen and (x in each or Path(x.name).parent in others))


def _by_log(log: LogLines, found: Found, tree: Tree) -> Entry | None:
    told = told_by(log, tree, found.root)
    ran = tuple(told.ran)
    if told.launches:
        scripts = _once(x.script for x in told.launches)
        last = told.launches[-1]
        return Entry(scripts, f"{Path(log.name).name} shows the command that starts it",
                     tuple(c for x in told.launches for c in x.configs), ran,
                     arguments=last.arguments if last.interpreter and len(scripts) == 1 else None)
    if told.named:
        script, where = told.named[0]
        return Entry((script,), f"{where} names it", (), ran)
    scripts = _scripts(found, tree)
    that_ran = [s for s in scripts if s in told.ran]
    if len(that_ran) == 1:
        return Entry((that_ran[0],), f"{told.ran[that_ran[0]]} names a line of it", (), ran)
    return _by_lines(log, scripts, ran, tree)


def _by_lines(log: LogLines, scripts: Sequence[Path], ran: tuple[Path, ...], tree: Tree) -> Entry | None:
    """Whose prints the lines are; the log's own name decides between scripts whose prints fit as well."""
    if len(scripts) < 2:
        return None
    written = written_by(log, tree, scripts)
    fitting = _outermost(written.scripts if written is not None else scripts, tree)
    same = [s for s in fitting if _same_name(s, log.name)]
    if len(fitting) > 1 and len(same) == 1:
        return Entry((same[0],), f"{Path(log.name).name} has its name", (), ran)
    return Entry(fitting, written.how, (), ran) if written is not None else None


def _outermost(scripts: Sequence[Path], tree: Tree) -> tuple[Path, ...]:
    """Without those that another of them imports: what they print, the other one prints as well."""
    used = {f for s in scripts for f in tree.closure([s])[1:]}
    return tuple(s for s in scripts if s not in used) or tuple(scripts)


def _same_name(script: Path, log: str) -> bool:
    """Whether a log is called like a script: train.log, train_2.log, out/train.txt."""
    stem = re.sub(r"[-_.]?(?:\d+|log|out|stdout|stderr|run|output)$", "", Path(log).stem.lower())
    return bool(stem) and stem == script.stem.lower()


def _by_files(found: Found, tree: Tree) -> Entry:
    """What the files say without a log."""
    scripts = _outermost(_scripts(found, tree), tree)
    named = {os.path.realpath(n) for n in found.named}
    if scripts and all(os.path.realpath(s) in named for s in scripts):
        return Entry(scripts, "you named it" if len(scripts) == 1 else "you named them")
    if len(scripts) == 1:
        return Entry(scripts, f"{ONLY} here")
    homes = {os.path.realpath(Path(log.name).parent) for log in found.logs}
    near = [s for s in scripts if os.path.realpath(s.parent) in homes]
    if len(near) == 1:
        return Entry((near[0],), f"{ONLY} in the folder of the log")
    started = {x.script: s for s in found.shell for x in launches(read_text(s), tree, s.parent)}
    if len(started) == 1:
        script, shell = next(iter(started.items()))
        return Entry((script,), f"{shell.name} starts it")
    train = [s for s in scripts if _trains([s], tree)]
    if len(train) == 1:
        return Entry((train[0],), f"{ONLY} here that trains; what the others do is judged too", certain=False)
    return Entry()


def calls_training(text: str) -> bool:
    """Whether a program calls what trains: backward(), fit(), a gradient function."""
    return _TRAINS.search(text) is not None


def _trains(scripts: Sequence[Path], tree: Tree) -> bool:
    return any(calls_training(tree.text(f)) for f in tree.closure(scripts))


def _loose(tree: Tree) -> tuple[Path, ...]:
    """Files that start nothing and that no script uses: an import of a computed name may mean any of them."""
    scripts = tree.scripts
    used = {f for s in scripts for f in tree.closure([s])}
    return tuple(f for f in tree.given if f not in used and f not in scripts)


def _configs(judged: Sequence[Path], entry: Entry, found: Found,
             tree: Tree) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Configuration files that the run names, and those beside them; all belong to it where it names none."""
    given = {os.path.realpath(c) for c in entry.configs}
    texts = "\n".join(tree.text(f) for f in judged) if found.configs else ""
    own = tuple(c for c in found.configs if os.path.realpath(c) in given)
    own = own or tuple(c for c in found.configs if _mentions(texts, c, found.root))
    return (own, tuple(c for c in found.configs if c not in own)) if own else (found.configs, ())


def _mentions(texts: str, config: Path, root: Path) -> bool:
    """Whether a program names a configuration file, or the folder in which it lies (Hydra's `config_path`)."""
    folder = config.parent.name if config.parent.resolve() != root.resolve() else ""
    names = [re.escape(config.name), *([rf"(?:\./|\.\./)?{re.escape(folder)}/?(?=['\"])"] if folder else [])]
    return re.search(rf"['\"/](?:{'|'.join(names)})", texts) is not None


def _modules_in(configs: Iterable[Path], importer: Path, tree: Tree) -> Iterator[Path]:
    """Modules that a configuration names: `_target_: models.net.Net`."""
    source = tree.source(importer)
    for config in configs:
        for dotted in re.findall(r"[:=]\s*['\"]?([A-Za-z_]\w*(?:\.\w+)+)", read_text(config)):
            yield from tree.closure(tree.shown(k) for k in tree.modules_named(dotted, source))
