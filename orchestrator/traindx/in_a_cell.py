"""Commands as a notebook's cell takes them: the call of Python where there is one, else the command behind `!`.

A question that `!traindx debug` asks never reaches whoever sits at the notebook; the call returns with it instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_TYPED = re.compile(r"(?<![`!])\btraindx (?:resume|show|review|approve|reject|revise|debug|sessions)\b"
                    r"(?: --?[\w-]+| '[^']*'| [\w./~-]*[\w/])*")
"""A command within a sentence, without the comma or the semicolon behind it."""


def in_a_cell(command: str) -> str:
    """One command of ours. What Python has no call for, or not with these options, is handed to the shell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return f"!{command}"
    if words[:1] != ["traindx"] or len(words) < 2:
        return f"!{command}"
    parts = _parts(words[2:])
    told = _CALLS[words[1]](*parts) if parts is not None and words[1] in _CALLS else ""
    return told or f"!{command}"


def sentence_in_a_cell(text: str) -> str:
    """A sentence with each command in it as a cell takes it."""
    return _TYPED.sub(lambda m: in_a_cell(m[0]), text)


def decision_calls(name: str, option: str) -> tuple[str, ...]:
    """What decides the gate of a result that the cell's user calls `name`, and what goes on from there."""
    return (f'decide({name}.folder, Decision.approve({name}.diagnosis, "{option}"))',
            f'decide({name}.folder, Decision.revise({name}.diagnosis, "what you know"))',
            f'decide({name}.folder, Decision.reject({name}.diagnosis, "why"))',
            f"resume_session_sync({name}.folder)  # after it: changes the approved lines, and verifies")


_Options = dict[str, list[str]]


def _parts(words: Sequence[str]) -> tuple[list[str], _Options] | None:
    """Arguments, and options with their values; None where an option has none."""
    given: list[str] = []
    options: _Options = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            given.append(word)
            continue
        if not left or left[0].startswith("--"):
            return None
        options.setdefault(word, []).append(left.pop(0))
    return given, options


def _diagnose(given: Sequence[str], options: _Options) -> str:
    if not given or "-" in given or not options.keys() <= {"--symptom", "--line", "--name"}:
        return ""
    named = dict(pair.partition("=")[::2] for pair in options.get("--name", ()))
    return _call("diagnose", list(given), symptom=_last(options, "--symptom"), lines=options.get("--line", []),
                 names=named)


def _debug(given: Sequence[str], options: _Options) -> str:
    if len(given) != 1 or not options.keys() <= {"--symptom", "--artifact", "--verify"}:
        return ""
    verify = _last(options, "--verify")
    return _call("run_debug_session_sync", _last(options, "--symptom") or "what you saw", given[0],
                 artifacts=options.get("--artifact", []), verify=verify, allow_run=bool(verify))


def _resume(given: Sequence[str], options: _Options) -> str:
    if len(given) != 1 or not options.keys() <= {"--workspace", "--verify", "--budget"}:
        return ""
    verify, budget = _last(options, "--verify"), _last(options, "--budget")
    return _call("resume_session_sync", given[0], workspace=_last(options, "--workspace"), verify=verify,
                 allow_run=bool(verify), budget=float(budget) if budget else 0)


_CALLS = {"diagnose": _diagnose, "debug": _debug, "resume": _resume}


def _last(options: _Options, name: str) -> str:
    return options.get(name, [""])[-1]


def _call(name: str, *given: object, **named: object) -> str:
    """The call, without the arguments that hold nothing."""
    told = [_text(g) for g in given] + [f"{k}={_text(v)}" for k, v in named.items() if v]
    return f"{name}({', '.join(told)})"


def _text(value: object) -> str:
    """As it is written in Python, texts in double quotes as in our pages."""
    if isinstance(value, str):
        shown = repr(value)
        return f'"{shown[1:-1]}"' if shown[:1] == "'" and '"' not in shown else shown
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)
