"""Files made to harm: refused in one line, nothing run, nothing written, memory and time bounded."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.tensor_pickle import read_tensors


def _zip(path: Path, data: bytes, members: dict[str, bytes] | None = None, packed: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        archive.writestr("a/data.pkl", data)
        for name, raw in (members or {}).items():
            archive.writestr(name, raw)
    return path


class _Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


_UTILS = b"ctorch._utils\n_rebuild_tensor_v2\n"


def _described(shape: tuple[int, ...], stride: tuple[int, ...], size: int, key: str = "0", offset: int = 0) -> bytes:
    """A pickle of one tensor in a dict, as torch writes it, with any shape."""
    storage = b"(" + pickle.dumps("storage", 2)[2:-1] + b"ctorch\nFloatStorage\n" + b"".join(
        pickle.dumps(v, 2)[2:-1] for v in (key, "cpu", size)) + b"tQ"
    rest = b"".join(pickle.dumps(v, 2)[2:-1] for v in (offset, shape, stride, False))
    return (b"\x80\x02}" + pickle.dumps("w", 2)[2:-1] + _UTILS + b"(" + storage + rest
            + b"ccollections\nOrderedDict\n)RtRs.")


def _refused(path: Path) -> str:
    with pytest.raises(UnreadableInput) as refused:
        examine(path)
    text = str(refused.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


def test_the_description_of_a_tensor_that_these_tests_write_is_read(tmp_path: Path) -> None:
    file = _zip(tmp_path / "w.pt", _described((2, 3), (3, 1), 6), {"a/data/0": np.arange(6, dtype="<f4").tobytes()})
    (tensor,) = read_checkpoint(file).tensors
    assert tensor.shape == (2, 3)
    assert tensor.load().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("made", [
    lambda t: pickle.dumps({"w": _Runs(os.system, f"touch {t}")}, 2),
    lambda t: pickle.dumps({"w": _Runs(eval, f"open({str(t)!r}, 'w')")}, 4),
    lambda t: pickle.dumps({"w": _Runs(exec, f"open({str(t)!r}, 'w')")}, 5),
    lambda t: pickle.dumps({"w": _Runs(subprocess.Popen, ("touch", str(t)))}, 2),
    lambda t: pickle.dumps({"w": _Runs(__import__, "os")}, 2),
    lambda t: b"cposix\nsystem\n(S'touch'\ntR.",
    lambda t: b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
])  # fmt: skip
def test_code_in_a_pickle_is_never_run(made: Callable[[Path], bytes], tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    text = _refused(_zip(tmp_path / "w.pt", made(trap)))
    assert "refused" in text
    assert not trap.exists()
    assert sorted(os.listdir(tmp_path)) == ["w.pt"]


def test_what_is_unknown_becomes_a_record_and_is_named(tmp_path: Path) -> None:
    data = (b"\x80\x02}(X\x04\x00\x00\x00argsctotally_unknown\nModel\n)\x81}X\x01\x00\x00\x00aK\x01sb"
            b"X\x05\x00\x00\x00epochK\x03u.")
    read = read_checkpoint(_zip(tmp_path / "w.pt", data))
    assert "totally_unknown" not in sys.modules
    assert "totally_unknown.Model" in read.notes[0]
    assert read.values == {"args.a": 1, "epoch": 3}


@pytest.mark.parametrize("data", [
    b"\x80\x02K\x01K\x02\x85R.",  # calls a number
    b"\x80\x02K\x01}b.",  # fills a number
    b"\x80\x02X\x01\x00\x00\x00xQ.",  # a persistent id that is no storage
    b"\x80\x02\x82\x01.",  # the extension registry
    b"\x80\x02(((",
    b"",
])  # fmt: skip
def test_calls_of_what_is_no_name_end_the_reading(data: bytes, tmp_path: Path) -> None:
    _refused(_zip(tmp_path / "w.pt", data))


@pytest.mark.parametrize(("shape", "stride", "offset"), [
    ((2**40, 2**40), (2**40, 1), 0), ((10**6,), (1,), 0), ((-1, 4), (4, 1), 0), ((3,), (1,), 10**9), ((3,), (1,), -1),
    ((2, 2), (-1, 1), 0), ((2, 2), (1,), 0), ((1,) * 60, (1,) * 60, 0),
])  # fmt: skip
def test_absurd_shapes_are_refused(shape: Any, stride: Any, offset: int, tmp_path: Path) -> None:
    raw = np.zeros(8, "<f4").tobytes()
    text = _refused(_zip(tmp_path / "w.pt", _described(shape, stride, 8, offset=offset), {"a/data/0": raw}))
    assert "shape" in text


def test_an_axis_that_repeats_one_value_costs_one_value(tmp_path: Path) -> None:
    file = _zip(tmp_path / "w.pt", _described((10**9, 4), (0, 1), 4), {"a/data/0": np.ones(4, "<f4").tobytes()})
    (tensor,) = read_checkpoint(file).tensors
    assert tensor.shape == (1, 4)


def test_zip_bombs_are_refused_by_their_sizes(tmp_path: Path) -> None:
    bomb = _zip(tmp_path / "w.pt", b"\x80\x02}.", {"a/data/0": b"\0" * 50_000_000}, packed=True)
    assert "unpack" in _refused(bomb)
    arrays = tmp_path / "w.npz"
    np.savez_compressed(arrays, weight=np.zeros(20_000_000, np.float32))
    assert "unpack" in _refused(arrays)


def test_members_that_lead_out_are_refused(tmp_path: Path) -> None:
    for name in ("../../evil", "/etc/evil", "a/../../evil"):
        assert "leads out" in _refused(_zip(tmp_path / "w.pt", b"\x80\x02}.", {name: b"x"}))
    assert sorted(os.listdir(tmp_path)) == ["w.pt"]


@pytest.mark.slow
def test_values_that_unfold_without_end_are_bounded(tmp_path: Path) -> None:
    """Each level holds the one before twice: a hundred levels are 2^100 values."""
    levels = (b"q%c]h%ca" % (i, i) + b"h%ca" % i for i in range(100))
    data = b"\x80\x02]K\x01a" + b"".join(levels)
    begin = monotonic()
    read = read_checkpoint(_zip(tmp_path / "w.pt", data + b"."))
    assert monotonic() - begin < 20
    assert not list(read.tensors)


def test_a_list_that_holds_itself_ends(tmp_path: Path) -> None:
    read = read_checkpoint(_zip(tmp_path / "w.pt", b"\x80\x02]q\x00h\x00a."))
    assert not list(read.tensors)


def test_deep_nesting_ends(tmp_path: Path) -> None:
    deep = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    assert not list(read_checkpoint(_zip(tmp_path / "w.pt", deep)).tensors)
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", 200_000) + b'{"a":' * 40_000)
    _refused(tmp_path / "w.safetensors")
    (tmp_path / "w.msgpack").write_bytes(b"\x81\xa1a" * 100_000)
    _refused(tmp_path / "w.msgpack")


def _header(told: Any, data: bytes = b"\0" * 64, length: int | None = None) -> bytes:
    head = json.dumps(told).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data


@pytest.mark.parametrize("raw", [
    _header({"w": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 64]}}),
    _header({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 10**12]}}),
    _header({"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}),
    _header({"w": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}),
    _header({"w": {"dtype": "Q9", "shape": [4], "data_offsets": [0, 16]}}),
    _header({"w": {"dtype": "F32", "shape": ["a"], "data_offsets": [0, 16]}}),
    _header({"w": 3}), _header([1]), _header({}, length=2**60), _header({}, length=90_000_000),
])  # fmt: skip
def test_a_header_that_lies_is_refused(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(raw)
    _refused(tmp_path / "w.safetensors")


def test_objects_of_numpy_are_refused(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    np.save(tmp_path / "w.npy", np.array([_Runs(os.system, f"touch {trap}")], dtype=object), allow_pickle=True)
    assert "objects" in _refused(tmp_path / "w.npy")
    assert not trap.exists()


def test_a_numpy_header_that_lies_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (10**12,)})
    (tmp_path / "w.npy").write_bytes(stream.getvalue() + b"\0" * 16)
    assert "shape" in _refused(tmp_path / "w.npy")


def test_links_and_indexes_that_lead_out_are_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    planted.write_safetensors(outside / "secret.safetensors", planted.stack(2))
    index = inside / "model.safetensors.index.json"
    for name in ("../outside/secret.safetensors", str(outside / "secret.safetensors")):
        index.write_text(json.dumps({"weight_map": {"w": name}}))
        assert "not beside it" in _refused(index)
    os.symlink(outside / "secret.safetensors", inside / "link.safetensors")
    index.write_text(json.dumps({"weight_map": {"w": "link.safetensors"}}))
    assert "not beside it" in _refused(index)
    index.unlink()
    _refused(inside)


@pytest.mark.parametrize("raw", [b"", b"\x80\x04K\x01.", b"hello", b"\xff" * 100, b"PK\x03\x04", b"\x93NUMPY",
                                 b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."])
def test_what_is_no_checkpoint_is_said_in_one_line(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_bytes(raw)
    assert str(tmp_path / "w.pt") in _refused(tmp_path / "w.pt")


def test_every_cut_of_a_checkpoint_is_told_and_none_crashes(tmp_path: Path) -> None:
    whole = planted.write_safetensors(tmp_path / "whole.safetensors", planted.stack(2)).read_bytes()
    packed = planted.write_msgpack(tmp_path / "whole.msgpack", planted.stack(2)).read_bytes()
    for raw, name in ((whole, "w.safetensors"), (packed, "w.msgpack")):
        for part in (5, 200, len(raw) // 2, len(raw) - 1):
            (tmp_path / name).write_bytes(raw[:part])
            _refused(tmp_path / name)


@pytest.mark.slow
def test_a_pickle_damaged_anywhere_gives_one_line_or_a_value(tmp_path: Path) -> None:
    data = bytearray(_described((2, 3), (3, 1), 6))
    rng = np.random.default_rng(0)
    raw = {"a/data/0": np.arange(6, dtype="<f4").tobytes()}
    for _ in range(300):
        broken = bytearray(data)
        broken[int(rng.integers(len(data)))] = int(rng.integers(256))
        file = _zip(tmp_path / "w.pt", bytes(broken), raw)
        with contextlib.suppress(UnreadableInput):  # nothing else may come out of it
            examine(file)


def test_a_large_file_is_read_through_small_buffers(tmp_path: Path) -> None:
    file = tmp_path / "large.safetensors"
    shape = [8192, 8192]
    size = 4 * shape[0] * shape[1]
    head = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(head)) + head)
        stream.truncate(8 + len(head) + size)
    tracemalloc.start()
    examine(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 2**20


def _asked(module: str, kind: str, name: str) -> bytes:
    """`getattr(kind, name)`, as Python 3.11.0 to 3.11.3 write the member of an enumeration."""
    told = name.encode()
    return (b"\x80\x02cbuiltins\ngetattr\n" + f"c{module}\n{kind}\n".encode()
            + b"X" + struct.pack("<I", len(told)) + told + b"\x86R.")


def test_the_member_of_an_enumeration_of_torch_is_a_name() -> None:
    read = read_tensors(_asked("torch.distributed.checkpoint.metadata", "Kind", "WRITE"))
    assert read.value.name == "torch.distributed.checkpoint.metadata.Kind.WRITE"


@pytest.mark.parametrize("data", [
    _asked("builtins", "dict", "pop"), _asked("pathlib", "PosixPath", "unlink"),
    _asked("torch.nn", "Module", "__class__"), _asked("torch.nn", "Module", "a b"),
    _asked("os", "path", "sep"), b"\x80\x02cbuiltins\ngetattr\n)R."])
def test_other_attributes_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableInput, match="refused"):
        read_tensors(data)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ending", ["h5", "hdf5", "pt", "safetensors", "npz", "keras"])
def test_a_pipe_in_a_folder_of_weights_is_not_waited_for(ending: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"model.{ending}")
    with pytest.raises(UnreadableInput):
        read_checkpoint(str(tmp_path))
