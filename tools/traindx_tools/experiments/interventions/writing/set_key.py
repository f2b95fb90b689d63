"""`set:key=value`: where a key is really read, and the run with another value there.

The command line is asked first (it is what a program reads last), then the configuration files that the run reads, then
the source. Several places of one kind are an error that names them; `FILE:key` means the one of that file.
"""

from __future__ import annotations

import ast
import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Option
from traindx_tools.experiments.interventions.writing import config_files, defaults
from traindx_tools.experiments.interventions.writing.options import OptionOfProgram, normalised, options_of, uses
from traindx_tools.experiments.interventions.writing.program import CallText, Program
from traindx_tools.experiments.interventions.writing.shell import spliced
from traindx_tools.experiments.place import Prepared
from traindx_tools.scope.tree import read_text

HYDRA = ("hydra.main",)
OMEGA = ("OmegaConf.from_cli", "OmegaConf.from_dotlist")
LIGHTNING = ("LightningCLI", "ArgumentParser.from_jsonargparse")


@dataclass(frozen=True)
class Spot:
    """One place where the key could be set: how it is typed to mean this one alone, and the run with it set."""

    typed: str
    prepared: Prepared


def prepare_set(key: str, value: Option, command: str, workspace: Path,
                written: Mapping[str, bytes] = MappingProxyType({})) -> Prepared:
    """The run with `key` at `value`. `written`: files of the copy that the same change has written already.

    Raises BadUsage where no place or several are found.
    """
    program = Program(command, workspace, written)
    file, _, inner = key.rpartition(":")
    if file:
        return _only(key, [*_in_config(program, inner, value, (file,)),
                           *_in_source(program, inner, value, file)], program)
    for look in (_on_command_line, _in_configs, _in_sources):
        spots = list(look(program, key, value))
        if spots:
            return _only(key, spots, program)
    return _only(key, [], program)


def _only(key: str, spots: list[Spot], program: Program) -> Prepared:
    if len(spots) == 1:
        return spots[0].prepared
    if spots:
        raise BadUsage(f"{key} is set in {len(spots)} places; say which: " + ", ".join(f"set:{s.typed}=..."
                                                                                      for s in spots[:8]))
    near = difflib.get_close_matches(key.rpartition(":")[2], sorted(set(_known(program))), n=5, cutoff=0.5)
    hint = f"near it: {', '.join(near)}" if near else (
        "neither an option of its command line, nor a key of a configuration file that it names, nor a default in its "
        "source has this name")
    raise BadUsage(f"nothing named {key!r} is read by {program.name_of(program.script) or program.script}; {hint}.")


def _known(program: Program) -> Iterator[str]:
    for tree in program.trees.values():
        for option in options_of(tree):
            yield from option.keys
    for name in (*program.configs, *named_configs(program)):
        yield from (".".join(p) for p in config_files.keys_of(read_config(program, name)[1]))
    for name, tree in program.trees.items():
        yield from (d.name.rpartition(".")[2] for d in defaults.defaults_of(program.sources[name], tree))


# ---- the command line


def _on_command_line(program: Program, key: str, value: Option) -> Iterator[Spot]:
    call = program.call
    if call is None:
        return
    told = _already(call, key, value)
    if told is not None:
        yield Spot(key, _with_text(program, call, told))
        return
    for tree in program.trees.values():
        for option in options_of(tree):
            if normalised(key) in option.keys:
                yield Spot(key, _with_text(program, call, _appended(call, _typed(option, value))))
                return
    if any(uses(t, HYDRA) for t in program.trees.values()):
        whole = _hydra_key(program, key)
        if whole is not None:
            yield Spot(key, _with_text(program, call, _appended(call, shlex.quote(f"{whole}={_text(value)}"))))
    elif any(uses(t, OMEGA) for t in program.trees.values()) and any(
            config_files.matching(read_config(program, n)[1], key)
            for n in (*program.configs, *named_configs(program))):
        yield Spot(key, _with_text(program, call, _appended(call, shlex.quote(f"{key}={_text(value)}"))))
    elif any(uses(t, LIGHTNING) for t in program.trees.values()) and key.split(".")[0] in (
            "trainer", "model", "data", "optimizer", "lr_scheduler", "seed_everything", "ckpt_path"):
        yield Spot(key, _with_text(program, call, _appended(call, f"--{key} {shlex.quote(_text(value))}")))


def _already(call: CallText, key: str, value: Option) -> str | None:
    """The text with the value that the command gives to the key replaced, None where it gives none."""
    wanted, words = normalised(key), call.words[call.script_at + 1:]
    found: str | None = None
    for at, word in enumerate(words):
        name, equals, _ = word.text.partition("=")
        dashed = name.startswith("-") and not re.fullmatch(r"-[\d.].*", name)
        if equals and normalised(name.lstrip("+~")) == wanted:  # --lr=1, lr=1, +lr=1
            found = spliced(call.text, word.start, word.end, f"{name}={shlex.quote(_text(value))}")
        elif dashed and not equals and normalised(name) == wanted:
            following = words[at + 1] if at + 1 < len(words) else None
            if following is not None and (not following.text.startswith("-")
                                          or re.fullmatch(r"-[\d.].*", following.text)):
                found = spliced(call.text, following.start, following.end, shlex.quote(_text(value)))
            elif value is False:
                found = spliced(call.text, word.start, word.end, "").rstrip(" ")
            elif value is True:
                found = call.text
    return found


def _typed(option: OptionOfProgram, value: Option) -> str:
    if option.kind in ("on", "off"):
        if not isinstance(value, bool):
            raise BadUsage(f"{option.flag} is a flag: set it to true or false, not {value!r}.")
        if value is (option.kind == "on"):
            return option.flag
        raise BadUsage(f"{option.flag} is a flag that is not given: it is {str(value).lower()} already.")
    if option.kind == "both":
        return option.flag if value else option.flag.replace("--", "--no-", 1)
    if option.kind == "values":
        return " ".join([option.flag, *map(shlex.quote, re.split(r"[,\s]+", _text(value)))])
    return f"{option.flag}={shlex.quote(_text(value))}" if _text(value).startswith("-") else (
        f"{option.flag} {shlex.quote(_text(value))}")


def _appended(call: CallText, words: str) -> str:
    end = call.words[-1].end
    return spliced(call.text, end, end, f" {words}")


def _with_text(program: Program, call: CallText, text: str) -> Prepared:
    if not call.file:
        return Prepared(text)
    return Prepared(program.command, files={call.file: text.encode()})


def _hydra_key(program: Program, key: str) -> str | None:
    """The key as Hydra takes it: of the primary configuration, of a group, or a group itself; None where there is none.

    Raises BadUsage where several keys end with it.
    """
    wanted: set[str] = set()
    for folder, primary in _hydra_configs(program):
        for path in sorted(folder.rglob("*.y*ml")):
            name = program.name_of(path)
            if name is None or path.suffix not in (".yaml", ".yml"):
                continue
            group = path.parent.relative_to(folder).parts
            if not group and path.stem != primary:
                continue
            data = read_config(program, name)[1]
            for found in config_files.matching(data, key):
                if found[0] != "defaults":
                    wanted.add(".".join((*group, *found)))
            inside = key.split(".")
            if group and tuple(inside[:len(group)]) == group:
                rest = ".".join(inside[len(group):])
                wanted.update(".".join((*group, *p)) for p in config_files.matching(data, rest))
        if (folder / key.replace(".", "/")).is_dir():
            wanted.add(key.replace(".", "/"))
    if len(wanted) > 1 and key not in wanted:
        raise BadUsage(f"{key} is set in {len(wanted)} places; say which: "
                       + ", ".join(f"set:{w}=..." for w in sorted(wanted)[:8]))
    return key if key in wanted else next(iter(wanted), None)


def _hydra_configs(program: Program) -> Iterator[tuple[Path, str]]:
    """Folder and name of the primary configuration of each `hydra.main`."""
    for name, tree in program.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("hydra.main"):
                told = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
                told.update(zip(("config_path", "config_name"), (a.value for a in node.args
                                                                 if isinstance(a, ast.Constant)), strict=False))
                folder = (program.workspace / name).parent / str(told.get("config_path") or ".")
                if folder.is_dir():
                    yield folder, str(told.get("config_name") or "config").removesuffix(".yaml")


# ---- configuration files


def _in_configs(program: Program, key: str, value: Option) -> Iterator[Spot]:
    yield from _in_config(program, key, value, program.configs or named_configs(program))


def _in_config(program: Program, key: str, value: Option, names: tuple[str, ...]) -> Iterator[Spot]:
    for name in names:
        if Path(name).suffix not in config_files.SUFFIXES or not (program.workspace / name).is_file():
            continue
        text, data = read_config(program, name)
        for path in config_files.matching(data, key):
            new = config_files.with_value(name, text, path, _of_kind(data, path, value))
            yield Spot(f"{name}:{'.'.join(path)}", Prepared(program.command, files={name: new.encode()}))


def _of_kind(data: Any, path: tuple[str, ...], value: Option) -> Any:
    """A list where a list stood: `0.9,0.99` is two numbers there."""
    old = data
    for key in path:
        old = old[config_files.key_in(old, key)]
    if isinstance(old, dict):
        raise BadUsage(f"{'.'.join(path)} holds {', '.join(map(str, list(old)[:6]))}: set one of these.")
    if isinstance(old, list) and not isinstance(value, list):
        return [_number(v) for v in re.split(r"[,\s]+", _text(value).strip("[]() "))]
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _number(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def settings_files(program: Program) -> tuple[str, ...]:
    """The configuration files that the command names, else those that the program's texts name."""
    return tuple(n for n in program.configs or named_configs(program)
                 if Path(n).suffix in config_files.SUFFIXES and (program.workspace / n).is_file())


def named_configs(program: Program) -> tuple[str, ...]:
    """Configuration files that the program's texts name."""
    found: dict[str, None] = {}
    for name, tree in program.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(
                    config_files.SUFFIXES) and len(node.value) < 300 and "\n" not in node.value:
                for base in (program.workspace, (program.workspace / name).parent):
                    path = base / node.value
                    known = program.name_of(path) if path.is_file() else None
                    if known:
                        found[known] = None
    return tuple(found)


def read_config(program: Program, name: str) -> tuple[str, Any]:
    """Text and content of a configuration file. Raises BadUsage where it is damaged."""
    written = program.written.get(name)
    text = written.decode() if written is not None else read_text(program.workspace / name)
    return text, config_files.parsed(name, text)


# ---- the source


def _in_sources(program: Program, key: str, value: Option) -> Iterator[Spot]:
    for name in program.sources:
        yield from _in_source(program, key, value, name)


def _in_source(program: Program, key: str, value: Option, file: str) -> Iterator[Spot]:
    tree, text = program.trees.get(file), program.sources.get(file)
    if tree is None or text is None:
        return
    found = list(defaults.defaults_of(text, tree))
    exact = [d for d in found if d.name == key]
    for one in exact or [d for d in found if d.name.rpartition(".")[2] in (key, key.upper())]:
        new = spliced(text, one.start, one.end, repr(value))
        yield Spot(f"{file}:{one.name}", Prepared(program.command, files={file: new.encode()}))


def _text(value: Option) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)
