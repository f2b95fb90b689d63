"""Files of torch.cuda.memory._dump_snapshot: what they say, and that nothing in them is ever run."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine
from traindx_tools.on_torch.cuda_memory import findings_of, read_memory_snapshot
from traindx_tools.on_torch.cuda_memory.plain_pickle import read_plain
from traindx_tools.on_torch.cuda_memory.snapshot import Site, from_plain

MIB = 2**20
LIBRARY = "/usr/lib/python3.12/site-packages/torch/nn/modules/"


def frames(line, file="/home/ada/train.py", name="step", inner="linear.py"):
    """As torch writes them: C++ first, then the library's Python, then the caller's."""
    return [{"filename": "??", "line": 0, "name": "torch::unwind::unwind()"},
            {"filename": "/pytorch/aten/src/ATen/native/Linear.cpp", "line": 88, "name": "at::native::linear"},
            {"filename": LIBRARY + inner, "line": 134, "name": "forward"},
            {"filename": file, "line": line, "name": name},
            {"filename": file, "line": 99, "name": "main"}]


def block(mib, line=None, state="active_allocated", **more):
    return {"size": int(mib * MIB), "requested_size": int(mib * MIB) - 24, "address": 0x7F0000000000, "state": state,
            "frames": frames(line) if line else [], **more}


def free(mib):
    return block(mib, state="inactive")


def segment(*blocks, device=0):
    total = sum(b["size"] for b in blocks)
    used = sum(b["size"] for b in blocks if b["state"] != "inactive")
    return {"device": device, "address": 0x7F0000000000, "total_size": total, "allocated_size": used,
            "active_size": used, "requested_size": used, "stream": 0, "segment_type": "large",
            "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": list(blocks)}


def snapshot(*segments, trace=(), time=0):
    entries = [*trace, *([{"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": time, "frames": []}]
                         if time else [])]
    return {"segments": list(segments), "device_traces": [entries], "external_annotations": [],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False,
                                   "garbage_collection_threshold": 0.0}}


def oom(mib, line=41, device_free=10):
    return {"action": "oom", "device_free": device_free * MIB, "size": int(mib * MIB), "stream": 0,
            "time_us": 1_700_000_000_000_000, "frames": frames(line)}


def written(tmp_path, value, name="memory.pickle", protocol=4):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(value, protocol))
    return path


IN_PIECES = snapshot(*[segment(block(90, 10 + k), free(40)) for k in range(20)], trace=[oom(200)])
FULL = snapshot(*[segment(block(300, 30)) for _ in range(10)], segment(block(100, 31), free(20)), trace=[oom(512)])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_snapshot_is_read_without_unpickling(protocol, tmp_path, monkeypatch):
    path = written(tmp_path, FULL, protocol=protocol)
    monkeypatch.setattr(pickle, "loads", None)
    monkeypatch.setattr(pickle, "Unpickler", None)
    (device,) = read_memory_snapshot(path).devices
    assert (device.reserved, device.allocated, device.largest_free) == (3120 * MIB, 3100 * MIB, 20 * MIB)
    assert device.uses[0].site == Site("/home/ada/train.py", 30, "step")
    assert (device.uses[0].bytes, device.uses[0].blocks) == (3000 * MIB, 10)
    assert device.failed.size == 512 * MIB


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back_as_they_were(protocol):
    text = "é" * 300
    value = {"a": [1, -1, 255, 65535, -2**31, 2**40, 2**63, -2**63, 0.5, True, False, None], "b": (1,), "t": (1, 2),
             "u": (1, 2, 3), "v": (1, 2, 3, 4), "e": (), "s": [text, text, "x"], "n": {}, "l": [], 3: "k",
             "m": [{"same": 1}] * 300, "r": list(range(3000))}
    assert read_plain(pickle.dumps(value, protocol)) == value


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_file_that_would_run_code_is_refused_and_runs_nothing(protocol, tmp_path):
    trap = tmp_path / "made-by-the-pickle"
    path = written(tmp_path, {"segments": [Runs(str(trap))]}, protocol=protocol)
    with pytest.raises(UnreadableInput, match="can run code"):
        read_memory_snapshot(path)
    with pytest.raises(UnreadableInput, match="can run code"):
        examine([path])
    assert not trap.exists()


@pytest.mark.parametrize("data", [
    b"\x80\x04\x8c\x08segmentsc__builtin__\neval\n.", b"\x80\x04}\x8c\x08segments\x8c\x02os\x8c\x06system\x93.",
    b"\x80\x02}U\x08segments.", b"\x80\x04\x96" + struct.pack("<Q", 2**60) + b"segments.",
    b"\x80\x04(i__main__\nX\n.", b"\x80\x04P1\n.", b"\x80\x04\x8c\x01aQ.", b"\x80\x04\x82\x01.", b"\x80\x04C\x01a."])
def test_every_other_opcode_is_refused(data):
    with pytest.raises(UnreadableInput, match="nothing was loaded"):
        read_plain(data)


@pytest.mark.parametrize("data", [
    b"", b"\x80", b"\x80\x04", b"\x80\x04}", b"\x80\x04.", b"\x80\x04h\x05.", b"\x80\x04]s.", b"\x80\x04u.",
    b"\x80\x04e.", b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"a.",
    b"\x80\x04X\xff\xff\xff\xffa.", b"\x80\x04\x8a\xffa.",
    b"\x80\x04}]K\x01s.", b"\x80\x04}(K\x01u.", b"\x80\x04K\x01\x87.", b"\x80\x04G\x00."])
def test_what_is_cut_or_bent_is_said_to_be_damaged(data):
    with pytest.raises(UnreadableInput, match=r"damaged|not written whole"):
        read_plain(data)


def test_every_cut_of_a_real_file_is_refused():
    data = pickle.dumps(IN_PIECES, 4)
    for end in range(0, len(data) - 1, 37):
        with pytest.raises(UnreadableInput):
            read_plain(data[:end])


def test_numbers_of_memos_and_containers_cannot_fill_the_memory(monkeypatch):
    assert read_plain(b"\x80\x02]r\xff\xff\xff\xff.") == []
    monkeypatch.setattr("traindx_tools.on_torch.cuda_memory.plain_pickle.MOST_CONTAINERS", 100)
    with pytest.raises(UnreadableInput, match="more than 100"):
        read_plain(b"\x80\x04" + b"]" * 101 + b".")


def test_lists_of_lists_of_lists_are_read_in_no_time():
    value = "x"
    for _ in range(60):
        value = [value] * 10
    assert from_plain(read_plain(pickle.dumps({"segments": [value, {"blocks": value, "total_size": "many"}]}))).devices


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("traindx_tools.on_torch.cuda_memory.snapshot.MAX_BYTES", 1000)
    with pytest.raises(UnreadableInput, match="larger than"):
        read_memory_snapshot(written(tmp_path, IN_PIECES))


@pytest.mark.parametrize("value", [[], {}, {"segments": 3}, "text", None, {"state_dict": [1]}])
def test_another_pickle_of_plain_values_is_none(value, tmp_path):
    with pytest.raises(UnreadableInput, match="no CUDA memory snapshot"):
        read_memory_snapshot(written(tmp_path, value))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableInput, match="nowhere"):
        read_memory_snapshot(tmp_path / "nowhere")


@pytest.mark.parametrize("odd", [
    {"segments": [3, None, {"device": "x", "blocks": 7},
                  {"blocks": [1, {"size": -5, "state": "inactive"}, {"size": "z"}]}]},
    {"segments": [{"device": 0, "blocks": [{"size": 1, "state": "active_allocated", "frames": [1, {"line": "a"}]}]}],
     "device_traces": [[3, {"action": "oom"}], 7, None]},
    {"segments": [], "device_traces": {"a": 1}}])
def test_odd_contents_make_no_fault(odd):
    findings_of([("x", from_plain(odd))])


def one(rule, *values):
    found = [f for f in findings_of([(f"{i}.pickle", from_plain(v)) for i, v in enumerate(values)]) if f.rule == rule]
    assert len(found) == 1
    return found[0]


def rules(*values):
    return [f.rule for f in findings_of([(f"{i}.pickle", from_plain(v)) for i, v in enumerate(values)])]


def test_enough_memory_in_pieces_that_are_too_small():
    found = one("T805", IN_PIECES)
    assert found.measured == {"reserved_mib": 2600, "allocated_mib": 1800, "request_mib": 200.0,
                              "largest_free_mib": 40.0}
    assert found.bearing.value == "cause"
    assert found.where.line == 41
    assert "T804" not in rules(IN_PIECES)


def test_a_full_device_is_not_fragmented():
    assert rules(FULL) == ["T804", "T806"]
    assert one("T804", FULL).measured["kind"] == "full"


def test_weights_and_optimizer_alone():
    optimizer = {"filename": "/x/site-packages/torch/optim/adamw.py", "line": 160, "name": "_init_group"}
    state = [block(100, frames=[*frames(20)[:2], optimizer, *frames(20)[3:]]) for _ in range(19)]
    assert one("T804", snapshot(segment(*state, block(100, 30)), trace=[oom(512)])).measured["kind"] == "fixed"


def test_what_was_given_back_after_the_failure_is_not_judged():
    freed = {"action": "free_completed", "addr": 1, "size": 100 * MIB, "stream": 0, "time_us": 2, "frames": []}
    late = {**IN_PIECES, "device_traces": [[oom(200), freed]]}
    assert rules(late) == ["T804", "T806"]
    assert one("T804", late).measured["kind"] == "unknown"


def test_a_snapshot_without_a_failure_is_a_remark():
    """Between two steps most of what is reserved lies idle: that is what a cache is for."""
    quiet = snapshot(segment(block(100, 20), free(3000)))
    assert rules(quiet) == ["T806"]
    assert one("T806", quiet).severity.value == "info"
    assert "train.py:20" in one("T806", quiet).statement


def test_stacks_that_were_not_recorded_are_said_to_be_missing():
    assert "_record_memory_history" in one("T806", snapshot(segment(block(100)))).statement


def test_older_files_keep_the_stack_in_a_history():
    old = block(100)
    del old["frames"]
    old["history"] = [{"addr": 1, "real_size": 5, "frames": frames(77)}]
    assert "train.py:77" in one("T806", snapshot(segment(old))).statement


def grown(*counts):
    return [snapshot(segment(block(500, 20), *[block(20, 57) for _ in range(n)]), time=1000 + i)
            for i, n in enumerate(counts)]


@pytest.mark.parametrize(("counts", "bearing"), [((2, 20), "companion"), ((2, 10, 30), "sign")])
def test_a_line_that_holds_more_each_time(counts, bearing):
    values = grown(*counts)
    found = [f for f in findings_of([(str(i), from_plain(v)) for i, v in reversed(list(enumerate(values)))])
             if f.measured.get("kind") == "grew"]
    assert [(f.where.line, f.bearing.value, f.severity.value) for f in found] == [(57, bearing, "medium")]


@pytest.mark.parametrize("counts", [(10, 10), (2, 30, 4), (30, 2), (10, 12)])
def test_a_line_that_comes_and_goes_or_stays(counts):
    assert set(rules(*grown(*counts))) == {"T806"}
    assert len(rules(*grown(*counts))) == 1


def test_devices_are_told_apart():
    two = snapshot(segment(block(100, 20)), segment(block(200, 21), device=1))
    assert rules(two) == ["T806", "T806"]


def test_diagnose_reads_it_beside_a_log(tmp_path):
    path = written(tmp_path, IN_PIECES)
    seen = examine([path])
    assert seen.verdict.hypotheses[0].mode.id == "mem.fragmentation"
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i} loss {2 - i / 100:.3f}\n" for i in range(50)))
    path.write_bytes(b"\x80\x04}\x8c\x08segmentsc__builtin__\neval\n.")
    assert any("can run code" in note for note in examine([path, log]).notes)


def test_a_healthy_snapshot_is_no_fault(tmp_path):
    seen = examine([written(tmp_path, snapshot(segment(block(100, 20), free(3000))))])
    assert seen.verdict.status != "diagnosis_complete"


def test_the_probe_takes_the_same_at_an_out_of_memory_error(monkeypatch):
    torch = pytest.importorskip("torch")
    from traindx_tools.on_torch.probes import memory

    large = snapshot(*[segment(block(180), free(80)) for _ in range(20)])
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: large)
    (device,) = memory.devices_now()
    assert device.largest_free == 80 * MIB
    message = "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 8 GiB"
    assert memory.requested(message) == 1536 * MIB
    assert memory.requested("out of memory") == 0
    for name, value in (("memory_allocated", 3600), ("memory_reserved", 5200), ("max_memory_allocated", 3700)):
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value * MIB)
    probe = memory.MemoryProbe(_scene())
    found = {f.rule: f for f in probe.failed(torch.OutOfMemoryError(message))}
    assert found["T805"].measured["largest_free_mib"] == 80.0
    assert found["T805"].bearing.value == "cause"
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", _broken)
    assert memory.devices_now() == ()
    assert {f.rule for f in probe.failed(torch.OutOfMemoryError(message))} == {"T804", "T805"}


def _broken():
    raise RuntimeError("the device is lost")


def _scene():
    from types import SimpleNamespace

    from traindx_tools.on_torch.probe import Scene

    return Scene(SimpleNamespace(rank=0))


def test_the_file_is_recognised_by_its_beginning_only():
    from traindx_tools.on_torch.cuda_memory import is_memory_snapshot

    assert is_memory_snapshot(pickle.dumps(FULL, 4)[:64])
    assert not is_memory_snapshot(pickle.dumps({"model": 1, "note": "segments " * 20}, 4)[:20])
    assert not is_memory_snapshot(Path(__file__).read_bytes()[:64])
