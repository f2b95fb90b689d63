"""The interpreter of plain pickles, with the few classes and functions that make tensors and plain containers.

Nothing is imported or called that the pickle names. What it names stands for one of the makers in `MAKERS`, or for an
inert record (`Named`) that holds arguments and does nothing. Names that could only be there to run something end the
reading.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_torch.cuda_memory.plain_pickle import PLAIN_STEPS, PlainMachine

_HARMFUL_MODULES = frozenset({
    "os", "posix", "nt", "subprocess", "sys", "socket", "shutil", "importlib", "runpy", "pty", "ctypes", "code",
    "codeop", "pdb", "webbrowser", "commands", "asyncio", "multiprocessing", "pip", "timeit", "cProfile", "profile",
    "pickle", "_pickle", "marshal", "types", "inspect", "urllib", "http", "requests", "tempfile", "platform", "signal",
})  # fmt: skip
_HARMFUL_BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "open", "input", "breakpoint", "getattr",
                               "setattr", "delattr", "globals", "locals", "vars", "memoryview", "apply", "execfile"})
_HARMLESS_IN = {"pathlib", "collections", "os.path"}
MOST_STEPS = 20_000_000


@dataclass
class Named:
    """A class or function that the pickle names: only its name, and what it would have been given."""

    name: str
    arguments: tuple[Any, ...] = ()
    state: Any = None

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Storage:
    """What a persistent id refers to: bytes under a key, of a type."""

    dtype: str
    key: str
    size: int


@dataclass(frozen=True)
class Strided:
    """A tensor as the pickle describes it: a view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass
class Read:
    """The value of a pickle and the names in it that stood for nothing."""

    value: Any
    unknown: tuple[str, ...] = ()
    made: int = field(default=0)


STORAGE_TYPES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip
DTYPES = {
    "float64": "float64", "double": "float64", "float32": "float32", "float": "float32", "float16": "float16",
    "half": "float16", "bfloat16": "bfloat16", "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
    "int64": "int64", "long": "int64", "int32": "int32", "int": "int32", "int16": "int16", "int8": "int8",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip


def _tensor(args: tuple[Any, ...]) -> Any:
    storage, offset, shape, stride = args[:4]
    if not isinstance(storage, Storage):
        raise TypeError
    return Strided(storage, int(offset), tuple(map(int, shape)), tuple(map(int, stride)), storage.dtype)


def _tensor_of_type(args: tuple[Any, ...]) -> Any:
    """`_rebuild_tensor_v3`: as v2, of an untyped storage, with the type behind."""
    made, dtype = _tensor(args), args[6]
    return Strided(made.storage, made.offset, made.shape, made.stride, DTYPES[_last(dtype)])


def _first(args: tuple[Any, ...]) -> Any:
    return args[0]


def _from_type(args: tuple[Any, ...]) -> Any:
    """`_rebuild_from_type_v2(function, type, arguments, state)`: a subclass of Tensor is the tensor in it."""
    function, _, inner = args[:3]
    return MAKERS[function.name](inner)


def _pairs(args: tuple[Any, ...]) -> Any:
    return dict(args[0]) if args else {}


def _counted(args: tuple[Any, ...]) -> Any:
    return {}


def _last(value: Any) -> str:
    return value.name.rpartition(".")[2] if isinstance(value, Named) else ""


_UTILS = "torch._utils."
MAKERS: Mapping[str, Callable[[tuple[Any, ...]], Any]] = {
    _UTILS + "_rebuild_tensor": _tensor, _UTILS + "_rebuild_tensor_v2": _tensor,
    _UTILS + "_rebuild_tensor_v3": _tensor_of_type, _UTILS + "_rebuild_parameter": _first,
    _UTILS + "_rebuild_parameter_with_state": _first, "torch._tensor._rebuild_from_type_v2": _from_type,
    "collections.OrderedDict": _pairs, "collections.defaultdict": _counted, "builtins.dict": _pairs,
    "builtins.set": lambda a: list(a[0]) if a else [], "builtins.frozenset": lambda a: list(a[0]) if a else [],
    "__builtin__.set": lambda a: list(a[0]) if a else [],
    "torch.Size": lambda a: tuple(a[0]) if a else (), "torch.device": lambda a: ":".join(map(str, a)),
    "pathlib.PosixPath": lambda a: "/".join(map(str, a)), "pathlib.WindowsPath": lambda a: "/".join(map(str, a)),
}  # fmt: skip


MEMBER = "builtins.getattr"
"""By which Python 3.11.0 to 3.11.3 write the member of an enumeration (`Enum.__reduce_ex__`)."""


class TensorMachine(PlainMachine):
    """Knows tensors, and turns what else is named into records."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.unknown: dict[str, None] = {}

    @property
    def steps_of(self) -> Mapping[int, Callable[[Any], object]]:
        return STEPS

    def named(self, module: str, name: str) -> Named:
        whole = f"{module}.{name}"
        if whole == MEMBER:
            return Named(whole)  # what it is asked of is looked at in `call`
        root = module.partition(".")[0]
        harmful = (root in _HARMFUL_MODULES and module not in _HARMLESS_IN) or (
            module in ("builtins", "__builtin__") and name.partition(".")[0] in _HARMFUL_BUILTINS)
        if harmful:
            raise UnreadableInput(f"refused: at byte {self.at - 1:,} it asks for {whole[:120]}, which no checkpoint "
                                  "needs and which runs code; nothing was loaded")
        return Named(whole)

    def call(self, function: Any, arguments: Any) -> Any:
        """What a call would have made: of a maker its value, of another name a record, of anything else nothing."""
        if not isinstance(function, Named) or not isinstance(arguments, tuple):
            raise UnreadableInput(f"refused: at byte {self.at - 1:,} it calls what is no name; nothing was loaded")
        if function.name == MEMBER:
            return self._member(arguments)
        maker = MAKERS.get(function.name)
        if maker is not None:
            return maker(arguments)
        self.unknown[function.name] = None
        return Named(function.name, arguments)

    def _member(self, arguments: tuple[Any, ...]) -> Named:
        """The member of an enumeration of torch, by its name; nothing is looked up."""
        kind, name = arguments if len(arguments) == 2 else (None, None)
        if (not isinstance(kind, Named) or kind.arguments or not kind.name.startswith("torch.")
                or not isinstance(name, str) or not name.isidentifier() or name.startswith("_")):
            raise UnreadableInput(f"refused: at byte {self.at - 1:,} it asks for {MEMBER} of what is no enumeration of "
                                  "torch; nothing was loaded")
        self.unknown[kind.name] = None
        return Named(f"{kind.name}.{name}")

    def build(self, thing: Any, state: Any) -> None:
        """State is kept beside a record, and joins a dict that stands for an OrderedDict only by its items."""
        if isinstance(thing, Named):
            thing.state = state
        elif not isinstance(thing, (dict, Strided)):
            raise UnreadableInput(f"refused: at byte {self.at - 1:,} it fills what is no record; nothing was loaded")

    def line(self) -> str:
        end = self.data.index(b"\n", self.at, self.at + 4096)
        text = self.data[self.at: end].decode("utf-8", "replace")
        self.at = end + 1
        return text


def read_tensors(data: bytes) -> Read:
    """The value of a pickle, with `Strided` for tensors and `Named` for what is unknown. Raises UnreadableInput."""
    machine = TensorMachine(data)
    try:
        value = machine.run()
    except (IndexError, KeyError, struct.error, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UnreadableInput(f"the pickle in it is damaged or of an unknown kind at byte {machine.at:,} "
                              f"({type(error).__name__})") from None
    return Read(value, tuple(machine.unknown), machine.containers)


def _stored(m: TensorMachine) -> None:
    """A persistent id: ("storage", type, key, device, size)."""
    given = m.stack.pop()
    if not isinstance(given, tuple) or len(given) < 5 or given[0] != "storage":
        raise UnreadableInput("refused: it refers to an object outside of it that is no storage; nothing was loaded")
    kind = _last(given[1])
    dtype = STORAGE_TYPES.get(kind) or DTYPES.get(kind)
    if dtype is None or not isinstance(given[2], str) or not isinstance(given[4], int):
        raise UnreadableInput(f"refused: a storage of the unknown type {kind[:60] or given[1]!r}")
    m.stack.append(Storage(dtype, given[2], given[4]))


def _reduce(m: TensorMachine) -> None:
    arguments, function = m.stack.pop(), m.stack.pop()
    m.made(m.call(function, arguments))


def _new(m: TensorMachine) -> None:
    arguments, kind = m.stack.pop(), m.stack.pop()
    m.made(m.call(kind, arguments))


def _new_with_names(m: TensorMachine) -> None:
    names, arguments, kind = m.stack.pop(), m.stack.pop(), m.stack.pop()
    made = m.call(kind, arguments)
    if isinstance(made, Named):
        made.state = names
    m.made(made)


def _build(m: TensorMachine) -> None:
    state = m.stack.pop()
    m.build(m.stack[-1], state)


def _global(m: TensorMachine) -> None:
    module = m.line()
    m.stack.append(m.named(module, m.line()))


def _stack_global(m: TensorMachine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError
    m.stack.append(m.named(module, name))


def _set_item(m: TensorMachine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _fill(m.stack[-1], [key, value])


def _set_items(m: TensorMachine) -> None:
    items = m.since_mark()
    _fill(m.stack[-1], items)


def _fill(into: Any, items: list[Any]) -> None:
    if isinstance(into, Named):  # a dict of a class of its own
        into.state = {**(into.state if isinstance(into.state, dict) else {}), **_dict(items)}
        return
    if type(into) is not dict:
        raise TypeError
    into.update(_dict(items))


def _dict(items: list[Any]) -> dict[Any, Any]:
    return {_key(k): v for k, v in zip(items[::2], items[1::2], strict=True)}


def _key(key: Any) -> Any:
    """Keys that are plain; a tuple or a record is named by its text, never hashed by its parts."""
    if isinstance(key, (str, int, float, bytes)) or key is None:
        return key
    if isinstance(key, Named) and isinstance(key.state, dict) and "fqn" in key.state:  # where a shard lies
        offset = key.state.get("offset")
        return f"{key.name}|{key.state['fqn']}|{','.join(map(str, offset)) if isinstance(offset, tuple) else ''}"
    if isinstance(key, Named):
        return key.name
    if isinstance(key, tuple) and len(key) <= 8 and all(isinstance(k, (str, int)) for k in key):
        return "/".join(map(str, key))
    raise TypeError


def _append(m: TensorMachine) -> None:
    value = m.stack.pop()
    _extend(m.stack[-1], [value])


def _appends(m: TensorMachine) -> None:
    items = m.since_mark()
    _extend(m.stack[-1], items)


def _extend(into: Any, items: list[Any]) -> None:
    if isinstance(into, Named):
        into.state = [*(into.state if isinstance(into.state, list) else ()), *items]
    elif type(into) is list:
        into.extend(items)
    else:
        raise TypeError


def _bytes(length: struct.Struct) -> Callable[[TensorMachine], None]:
    return lambda m: m.stack.append(m.take(m.number(length)))


def _string(length: struct.Struct) -> Callable[[TensorMachine], None]:
    return lambda m: m.stack.append(m.take(m.number(length)).decode("latin-1"))


def _long(m: TensorMachine) -> None:
    count = m.number(_ONE)
    if count > 64:
        raise ValueError
    m.stack.append(int.from_bytes(m.take(count), "little", signed=True))


def _frozen(m: TensorMachine) -> None:
    m.made(m.since_mark())


_ONE, _FOUR, _EIGHT = map(struct.Struct, ("<B", "<I", "<Q"))
STEPS: dict[int, Callable[[Any], object]] = {
    **PLAIN_STEPS,
    ord("c"): _global, 0x93: _stack_global, ord("Q"): _stored, ord("R"): _reduce, 0x81: _new, 0x92: _new_with_names,
    ord("b"): _build, ord("s"): _set_item, ord("u"): _set_items, ord("a"): _append, ord("e"): _appends,
    ord("C"): _bytes(_ONE), ord("B"): _bytes(_FOUR), 0x8E: _bytes(_EIGHT), 0x96: _bytes(_EIGHT),
    ord("U"): _string(_ONE), ord("T"): _string(_FOUR), 0x8A: _long, 0x8F: lambda m: m.made([]), 0x90: _appends,
    0x91: _frozen, ord("0"): lambda m: m.stack.pop(), ord("1"): lambda m: m.since_mark(),
    ord("2"): lambda m: m.stack.append(m.stack[-1]),
}  # fmt: skip
