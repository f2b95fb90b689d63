"""Reads plain values out of a pickle without unpickling: an interpreter of those opcodes alone that make them.

`pickle` is not used. Known are None, booleans, integers, floats, text, lists, tuples, dicts and references to them;
every other opcode (whatever could name a class, call a function or load another object) ends the reading. Opcodes:
the comments of CPython's `pickletools`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from traindx_tools.errors import UnreadableInput

MOST_CONTAINERS = 2_000_000
"""Lists, tuples and dicts of one file: about a million allocations with their stacks."""
MOST_INTEGER_BYTES = 16
_RUNS = frozenset(b"cRbio\x81\x82\x83\x84\x92\x93PQ")
"""Opcodes that name classes, call them or fill objects."""


def read_plain(data: bytes) -> Any:
    """The value that the pickle holds. Raises UnreadableInput where it holds anything else or is damaged."""
    machine = PlainMachine(data)
    try:
        return machine.run()
    except (IndexError, KeyError, struct.error, TypeError, AttributeError, ValueError) as error:
        raise UnreadableInput(f"the file is damaged at byte {machine.at:,}: not a whole pickle of plain values "
                              f"({type(error).__name__})") from None


class PlainMachine:
    """The stack, the marks in it, what was numbered for later references, and the place in the data.

    `steps_of`: what each opcode does; a machine that knows more opcodes has more of them.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0

    @property
    def steps_of(self) -> Mapping[int, Callable[[Any], object]]:
        return PLAIN_STEPS

    def run(self) -> Any:
        data, length, stops, steps = self.data, len(self.data), ord("."), self.steps_of
        while self.at < length:
            opcode = data[self.at]
            self.at += 1
            if opcode == stops:
                return self.stack.pop()
            step = steps.get(opcode)
            if step is None:
                self._refuse(opcode)
            else:
                step(self)
        raise UnreadableInput(f"the file ends after {length:,} bytes within a value: it was not written whole")

    def _refuse(self, opcode: int) -> None:
        what = ("asks for a class or a function, as a pickle does that can run code" if opcode in _RUNS
                else "holds something other than numbers, text, lists, tuples and dicts")
        raise UnreadableInput(f"refused: at byte {self.at - 1:,} it {what} (opcode 0x{opcode:02x}); nothing was loaded")

    def number(self, form: struct.Struct) -> Any:
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise IndexError
        part = self.data[self.at: self.at + count]
        self.at += count
        return part

    def made(self, container: Any) -> None:
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise UnreadableInput(f"refused: more than {MOST_CONTAINERS:,} lists and dicts; record a shorter history "
                                  "(max_entries=100000)")
        self.stack.append(container)

    def since_mark(self) -> list[Any]:
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items


_ONE, _TWO, _FOUR, _SIGNED, _EIGHT, _REAL = map(struct.Struct, ("<B", "<H", "<I", "<i", "<Q", ">d"))


def _fixed(form: struct.Struct) -> Callable[[PlainMachine], None]:
    return lambda m: m.stack.append(m.number(form))


def _text(length: struct.Struct) -> Callable[[PlainMachine], None]:
    return lambda m: m.stack.append(m.take(m.number(length)).decode("utf-8", "replace"))


def _constant(value: object) -> Callable[[PlainMachine], None]:
    return lambda m: m.stack.append(value)


def _tuple(count: int) -> Callable[[PlainMachine], None]:
    def step(m: PlainMachine) -> None:
        items = tuple(m.stack[-count:])
        if len(items) < count:
            raise IndexError
        del m.stack[-count:]
        m.made(items)

    return step


def _put(form: struct.Struct) -> Callable[[PlainMachine], None]:
    return lambda m: m.memo.__setitem__(m.number(form), m.stack[-1])


def _get(form: struct.Struct) -> Callable[[PlainMachine], None]:
    return lambda m: m.stack.append(m.memo[m.number(form)])


def _integer(m: PlainMachine) -> None:
    count = m.number(_ONE)
    if count > MOST_INTEGER_BYTES:
        raise ValueError
    m.stack.append(int.from_bytes(m.take(count), "little", signed=True))


def _append(m: PlainMachine) -> None:
    value = m.stack.pop()
    _checked(m.stack[-1], list).append(value)


def _set(m: PlainMachine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _checked(m.stack[-1], dict)[_key(key)] = value


def _set_all(m: PlainMachine) -> None:
    items = m.since_mark()
    into = _checked(m.stack[-1], dict)
    for key, value in zip(items[::2], items[1::2], strict=True):
        into[_key(key)] = value


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _key(key: Any) -> Any:
    if not isinstance(key, (str, int)):
        raise TypeError
    return key


PLAIN_STEPS: dict[int, Callable[[PlainMachine], object]] = {
    0x80: lambda m: m.number(_ONE),  # protocol
    0x95: lambda m: m.number(_EIGHT),  # frame
    ord("("): lambda m: m.marks.append(len(m.stack)),
    ord("}"): lambda m: m.made({}),
    ord("]"): lambda m: m.made([]),
    ord(")"): lambda m: m.made(()),
    ord("t"): lambda m: m.made(tuple(m.since_mark())),
    0x85: _tuple(1), 0x86: _tuple(2), 0x87: _tuple(3),
    ord("a"): _append,
    ord("e"): lambda m: _checked(m.stack[m.marks[-1] - 1], list).extend(m.since_mark()),
    ord("s"): _set,
    ord("u"): _set_all,
    ord("N"): _constant(None), 0x88: _constant(True), 0x89: _constant(False),
    ord("K"): _fixed(_ONE), ord("M"): _fixed(_TWO), ord("J"): _fixed(_SIGNED), ord("G"): _fixed(_REAL),
    0x8A: _integer,
    0x8C: _text(_ONE), ord("X"): _text(_FOUR), 0x8D: _text(_EIGHT),
    0x94: lambda m: m.memo.__setitem__(len(m.memo), m.stack[-1]),
    ord("q"): _put(_ONE), ord("r"): _put(_FOUR), ord("h"): _get(_ONE), ord("j"): _get(_FOUR),
}  # fmt: skip
