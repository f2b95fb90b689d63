"""Which names the code of a process can ask a setting by: read from its compiled code, whatever its sources look like.

A setting is asked for by a text (`cfg["lr"]`, `--lr`), an attribute (`cfg.lr`), a parameter or a keyword. Variables of
a function ask for nothing. A text right behind `.get` is read with a default that applies where it is missing.
"""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

MOST_CODE = 5_000
"""Functions of one process that are looked at."""
LONGEST = 60
_DEFAULTED = frozenset(("get", "pop", "setdefault", "getattr"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_PART = re.compile(r"[^\w-]+")


@dataclass(frozen=True, eq=False)
class Named:
    """`texts`: strings, keywords and parameters; `attributes`; `defaulted`: texts that are asked for with a default."""

    texts: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    defaulted: frozenset[str] = frozenset()

    def asks(self, key: str) -> bool:
        """Whether anything can ask for this key."""
        return key in self.texts or key in self.attributes


def named(codes: Iterable[CodeType]) -> Named:
    """The names in these pieces of code and in all that are nested in them."""
    texts: set[str] = set()
    attributes: set[str] = set()
    defaulted: set[str] = set()
    for count, code in enumerate(_nested(codes)):
        if count >= MOST_CODE:
            break
        given = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        texts.update(n for n in given if n.isidentifier())  # `.0` is what a comprehension goes over
        for constant in code.co_consts:
            texts.update(_texts(constant))
        before = ""
        for step in dis.get_instructions(code):
            if step.opname in _ATTRIBUTES:
                attributes.add(str(step.argval))
            elif step.opname == "LOAD_CONST" and isinstance(step.argval, str) and before in _DEFAULTED:
                defaulted.update(_texts(step.argval))
            if step.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
                before = str(step.argval) if step.opname in _ATTRIBUTES else ""
    return Named(frozenset(texts), frozenset(attributes), frozenset(defaulted))


def _texts(constant: Any) -> Iterator[str]:
    if isinstance(constant, str):
        if len(constant) > LONGEST or "\n" in constant:
            return
        if constant.startswith("--"):  # argparse stores `--learning-rate` as learning_rate
            yield constant.lstrip("-").replace("-", "_")
            return
        yield constant
        yield from (p for p in _PART.split(constant) if p and p != constant)
    elif isinstance(constant, (tuple, frozenset)):
        for item in constant:
            yield from _texts(item)


def _nested(codes: Iterable[CodeType]) -> Iterator[CodeType]:
    waiting, seen = list(codes), set()
    while waiting:
        code = waiting.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        yield code
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]


def codes_of(sources: Iterable[str]) -> Iterator[CodeType]:
    """The code of these source files, compiled anew and not run; one that cannot be compiled is left out."""
    for path in sources:
        try:
            with open(path, "rb") as file:
                yield compile(file.read(), path, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError):
            continue


def own_sources(root: str) -> list[str]:
    """The source files of this process's modules that lie below a folder and in no installed package."""
    real = os.path.join(os.path.realpath(root), "")
    paths = [os.path.realpath(os.path.join(root, p)) for m in list(sys.modules.values()) if (p := _file_of(m))]
    own = (p for p in paths if p.startswith(real) and p.endswith(".py") and "site-packages" not in p)
    return [p for p in dict.fromkeys(own) if os.path.isfile(p)]


def _file_of(module: ModuleType) -> str:
    """Where a module came from; Python takes the name of a script's file away before its process ends."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    found = getattr(module, "__file__", None) or origin
    if found is None and getattr(module, "__name__", "") == "__main__" and sys.argv:
        found = sys.argv[0]
    return found if isinstance(found, str) else ""
