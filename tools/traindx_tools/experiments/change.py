"""A change: one thing that a run does otherwise than its control, by name and options.

The table of interventions (`interventions/`) says what a name does, to which frameworks, and whether it happens inside
the run's process (hooks) or before its start (command, environment, files of the copy). The control has no change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.errors import BadUsage

Option = str | float | int | bool

_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Change:
    """`name` of an intervention and its options; "" is the control.

    As text: `NAME`, or `NAME:key=value,key=value`: `learning-rate:times=0.1`, `set:optim.lr=1e-4`,
    `env:OMP_NUM_THREADS=1`.
    """

    name: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def is_control(self) -> bool:
        """Nothing is changed."""
        return not self.name

    def __str__(self) -> str:
        if self.is_control:
            return "control"
        told = ",".join(f"{k}={_text(v)}" for k, v in self.options.items())
        return f"{self.name}:{told}" if told else self.name

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "options": dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Change:
        """The inverse of `to_json`. Raises KeyError on anything else."""
        return cls(str(data["name"]), dict(data.get("options", {})))


def parse_change(text: str) -> Change:
    """The change that a text names; the table knows which names there are. Raises BadUsage for a text of another form.
    """
    name, _, rest = text.strip().partition(":")
    if not _NAME.fullmatch(name):
        raise BadUsage(f"{text!r} names no change: expected NAME or NAME:key=value,key=value, as in "
                       "learning-rate:times=0.1; `traindx experiment --list` names them all.")
    options: dict[str, Option] = {}
    for part in _parts(rest):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise BadUsage(f"{part!r} in the change {text!r} is no key=value.")
        options[key.strip()] = _value(value.strip())
    return Change(name, options)


def _parts(text: str) -> list[str]:
    """The key=value pairs: a comma separates only where a further `key=` follows, so that values may hold commas."""
    return [p for p in re.split(r",(?=\s*[\w./-]+\s*=)", text) if p.strip()]


def _value(text: str) -> Option:
    try:
        told = json.loads(text)
    except ValueError:
        return text
    return told if isinstance(told, (str, int, float, bool)) else text


def _text(value: Option) -> str:
    return value if isinstance(value, str) else json.dumps(value)
