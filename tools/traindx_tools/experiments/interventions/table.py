"""Every intervention by its name: those that the modules of this package declare in `INTERVENTIONS`."""

from __future__ import annotations

import difflib
import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.files import lists_of_both
from traindx_tools.experiments.interventions.intervention import BEFORE, Intervention
from traindx_tools.experiments.place import Prepared

FAMILIES = ("batches", "indices", "augmentation", "loading", "files", "precision", "execution", "learning_rate",
            "optimizing", "layers", "weights", "randomness", "settings", "processes")
"""The modules that declare interventions; named, so that the table works from a zip archive too."""


@functools.cache
def _known() -> Mapping[str, Intervention]:
    room = __name__.rpartition(".")[0]
    found = [i for f in FAMILIES for i in importlib.import_module(f"{room}.{f}").INTERVENTIONS]
    return dict(sorted((i.name, i) for i in found))


def interventions() -> Mapping[str, Intervention]:
    """The table: every intervention by its name, in alphabetical order."""
    return _known()


def intervention(name: str) -> Intervention:
    """The one of this name. Raises BadUsage with the names that come close."""
    known = _known()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    near += [n for n in known if n not in near and set(name.split("-")) & (set(n.split("-")) - {"no", "one"})][:3]
    hint = f"near it: {', '.join(near)}" if near else f"there are {', '.join(known)}"
    raise BadUsage(f"no change is named {name!r}; {hint}. `traindx experiment --list` names them all.")


def check(change: Change) -> Change:
    """The change with its options read and completed. Raises BadUsage that names what there is. The control passes."""
    return change if change.is_control else intervention(change.name).read(change)


def prepare(change: Change, command: str, workspace: Path) -> Prepared:
    """A run of the command with this change, and nothing else changed. Reads the workspace, writes nothing.

    Raises BadUsage where the change is none, or cannot be made to this command in this workspace.
    """
    told = check(change)
    if told.is_control:
        return Prepared(command)
    return intervention(told.name).prepare(told, command, workspace)


def prepare_all(changes: Sequence[Change], command: str, workspace: Path) -> Prepared:
    """Several changes in one run, for a search over sets of them. Raises BadUsage where two touch the same file."""
    whole = Prepared(command)
    for change in changes:
        one = prepare(change, whole.command, workspace)
        both = set(one.files) & set(whole.files)
        files = lists_of_both(workspace, whole.files, one.files) if both else {**whole.files, **one.files}
        if files is None:
            raise BadUsage(f"the change {change} touches {', '.join(sorted(both))}, which another one changes as well.")
        whole = Prepared(one.command, {**whole.environment, **one.environment}, files,
                         whole.inside + one.inside, whole.probes + one.probes, {**whole.options, **one.options})
    return whole


def settings_options(prepared: Prepared) -> dict[str, object]:
    """What `Settings.options` holds for this run: the instruments' own, and the changes that take hold inside."""
    return {**prepared.options, "changes": [c.to_json() for c in prepared.inside]}


def with_words(change: Change) -> str:
    """The change as it is typed, with what it does."""
    return f"{change} ({intervention(change.name).about})"


def page(name: str) -> str:
    """The page of one intervention, as Markdown. Raises BadUsage for a name that is none."""
    one = intervention(name)
    where = "before the start" if one.holds == BEFORE else "inside the process"
    lines = [f"# {one.name}: {one.about}", "",
             f"Takes hold {where}. For: {', '.join(one.frameworks)}. Judged after {one.horizon} steps at the earliest.",
             "", f"**Changes.** {one.changes}", "", f"**Keeps.** {one.keeps}", "",
             f"**When the symptom goes with it.** {one.shows}", "", f"**What it cannot tell.** {one.cannot_tell}"]
    if one.options:
        lines += ["", "| option | what | expected | without it |", "|---|---|---|---|"]
        lines += [f"| `{o.name}` | {o.about} | {o.expected} | "
                  f"{'needed' if o.required else '-' if o.default is None else _plain(o.default)} |"
                  for o in one.options]
    return "\n".join([*lines, "", f"    traindx experiment PATH --run CMD --change {example(one)}", ""])


def example(one: Intervention) -> str:
    """The change as it is typed."""
    if one.free:
        return f"{one.name}:KEY=VALUE"
    told = [f"{o.name}={_plain(o.default) if o.default is not None else o.name.upper()}" for o in one.options
            if o.required or o.default is not None]
    return f"{one.name}:{','.join(told)}" if told else one.name


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
