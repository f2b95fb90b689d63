"""Properties that one file states otherwise than its siblings: whether the numbers show it and the code reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.readers.stated import plain, stated_of
from traindx_tools.on_data.rules import d210_stated_otherwise as d210
from traindx_tools.on_data.used_by_code import with_use

Seen = Callable[[ModuleType, Path], list[Finding]]
BANDS = ("B02", "B03", "B04", "B08")
ROWS = 60


def tiles(rng: np.random.Generator, order: Sequence[int] = range(4)) -> np.ndarray:
    """float32 shape (rows, 4, 6, 6): each band with a level of its own."""
    values = rng.normal(size=(ROWS, 4, 6, 6)) * 0.2 + np.array([1.0, 2.0, 4.0, 7.0])[:, None, None]
    return np.asarray(values[:, list(order)], np.float32)


def hdf5(path: Path, arrays: dict[str, np.ndarray], **attributes: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        for name, value in attributes.items():
            file["tiles"].attrs[name] = value


def with_bands(folder: Path, last: Sequence[int], said: Sequence[int]) -> None:
    rng = np.random.default_rng(0)
    for name, order, stated in (("train", range(4), range(4)), ("val_a", range(4), range(4)), ("val_b", last, said)):
        hdf5(folder / f"{name}.h5", {"tiles": tiles(rng, order), "y": rng.integers(0, 3, ROWS)},
             bands=[BANDS[i] for i in stated], scale=1e-4)


def code(folder: Path, text: str) -> list[Path]:
    path = folder / "train.py"
    path.write_text(text)
    return [path]


READS = "import h5py\nwith h5py.File('train.h5') as f:\n    x = f['tiles'][:]\n"


def test_bands_in_another_order(tmp_path: Path, seen_by: Seen) -> None:
    with_bands(tmp_path, (3, 2, 1, 0), (3, 2, 1, 0))
    (found,) = seen_by(d210, tmp_path)
    assert (found.measured["property"], found.measured["what"], found.measured["others"]) == ("tiles.bands", "order", 2)
    assert found.measured["shard"] == "val_b.h5"
    assert "means along an axis of tiles" in found.statement
    assert found.severity is Severity.LOW  # without code nothing is wrong yet
    (unread,) = with_use([found], code(tmp_path, READS))
    assert (unread.severity, unread.bearing) == (Severity.HIGH, Bearing.CAUSE)
    assert "nothing in the code of the run reads it" in unread.statement


@pytest.mark.parametrize("line", ["order = f['tiles'].attrs['bands']", "meta = dict(f['tiles'].attrs)",
                                  "for k in f['tiles'].attrs:\n        print(k)", "m = f['tiles'].attrs.items()"])
def test_code_that_reads_the_property(line: str, tmp_path: Path, seen_by: Seen) -> None:
    with_bands(tmp_path, (3, 2, 1, 0), (3, 2, 1, 0))
    (found,) = with_use(seen_by(d210, tmp_path), code(tmp_path, f"{READS}    {line}\n"))
    assert (found.severity, found.measured["kind"]) == (Severity.INFO, "read")


def test_one_property_that_is_read_by_name_is_not_all_of_them(tmp_path: Path, seen_by: Seen) -> None:
    with_bands(tmp_path, (3, 2, 1, 0), (3, 2, 1, 0))
    text = f"{READS}    s = f['tiles'].attrs['scale']\n    n = [str(c) for c in f['tiles'].attrs['bands_of']]\n"
    (found,) = with_use(seen_by(d210, tmp_path), code(tmp_path, text))
    assert found.measured["kind"] == "unread"


def test_a_stated_order_that_the_numbers_do_not_have(tmp_path: Path, seen_by: Seen) -> None:
    with_bands(tmp_path, (0, 1, 2, 3), (3, 2, 1, 0))  # the statement is old: the numbers lie as everywhere
    (found,) = seen_by(d210, tmp_path)
    assert not found.measured["shown"]
    assert found.severity is Severity.INFO


def test_code_that_reads_no_such_files_decides_nothing(tmp_path: Path, seen_by: Seen) -> None:
    with_bands(tmp_path, (3, 2, 1, 0), (3, 2, 1, 0))
    (found,) = with_use(seen_by(d210, tmp_path), code(tmp_path, "import torch\n"))
    assert found.measured["kind"] == "unknown"


def sessions(folder: Path, hops: Sequence[float], **more: Sequence[Any]) -> None:
    rng = np.random.default_rng(1)
    for k, hop in enumerate(hops):
        rows = 40 + k
        feats = rng.normal(size=(rows, 20, 3)).astype(np.float32)
        stated: dict[str, Any] = {name: np.array(values[k]) for name, values in more.items()}
        np.savez(folder / f"session_{k}.npz", feats=feats, hop_ms=np.array(hop), **stated)


def test_a_number_of_one_file(tmp_path: Path, seen_by: Seen) -> None:
    sessions(tmp_path, (10.0, 10.0, 12.5, 10.0))
    (found,) = seen_by(d210, tmp_path)
    assert (found.measured["value"], found.measured["usual"]) == ("12.5", "10")
    assert found.measured["shard"] == "session_2.npz"
    assert found.severity is Severity.INFO
    (unread,) = with_use([found], code(tmp_path, "import numpy as np\nx = np.load('session_0.npz')['feats']\n"))
    assert unread.severity is Severity.MEDIUM


def test_what_another_observation_measures_by_the_same_ratio_is_one_fault(tmp_path: Path, seen_by: Seen) -> None:
    sessions(tmp_path, (10.0, 10.0, 12.5, 10.0))
    (found,) = seen_by(d210, tmp_path)
    factor, other = (replace(found, rule="D189", severity=Severity.HIGH, measured={"own": own, "usual": 1.0})
                     for own in (0.797, 0.5))
    reads = code(tmp_path, "import numpy as np\nx = np.load('session_0.npz')['feats']\n")
    stated, told = with_use([found, factor], reads)
    assert (stated.severity, stated.bearing, told.severity) == (Severity.HIGH, Bearing.CAUSE, Severity.INFO)
    stated, told = with_use([found, other], reads)
    assert (stated.severity, told.severity) == (Severity.MEDIUM, Severity.HIGH)


@pytest.mark.parametrize("hops", [(10.0, 10.0, 10.0, 10.0), (10.0, 12.0, 14.0, 16.0), (10.0, 10.0, 12.0, 12.0),
                                  (10.0, 12.5)])
def test_files_that_agree_or_have_one_each(hops: tuple[float, ...], tmp_path: Path, seen_by: Seen) -> None:
    sessions(tmp_path, hops)
    assert not seen_by(d210, tmp_path)


def test_properties_of_each_file(tmp_path: Path, seen_by: Seen) -> None:
    sessions(tmp_path, (10.0,) * 5, count=(40, 40, 40, 43, 40), date=("2026-01-02",) * 4 + ("2026-02-01",),
             operator=("kim",) * 4 + ("lee",))
    assert not seen_by(d210, tmp_path)  # 43 rows are its own; who recorded it tells nothing of how it is read


def test_where_data_are_from_is_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    sessions(tmp_path, (10.0,) * 5, seed=(7, 7, 7, 8, 7))
    (found,) = with_use(seen_by(d210, tmp_path), code(tmp_path, "import numpy as np\nnp.load('session_0.npz')\n"))
    assert found.severity is Severity.INFO


def test_a_scale_that_the_numbers_show(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    for k, scale in enumerate((1.0, 1.0, 1.0, 0.001)):
        np.savez(tmp_path / f"part_{k}.npz", x=(rng.normal(size=(5000, 4)) / scale).astype(np.float32),
                 unit_scale=np.array(scale))
    (found,) = seen_by(d210, tmp_path)
    assert "the spread of x is" in str(found.measured["shown"])


def test_a_ratio_of_two_counts_of_a_row(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    for k, hop in enumerate((10.0, 12.5, 10.0, 10.0)):
        frames = rng.integers(100, 200, 80)
        np.savez(tmp_path / f"part_{k}.npz", frames=frames, labels=np.round(frames * 10 / hop).astype(np.int16),
                 label_hop=np.array(hop))
    (found,) = seen_by(d210, tmp_path)
    assert "frames over labels is 1.25 times" in str(found.measured["shown"])


def test_json_beside_a_file_and_texts(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    for k in range(4):
        np.save(tmp_path / f"part_{k}.npy", rng.normal(size=(50, 3)))
        (tmp_path / f"part_{k}.json").write_text(json.dumps({"signal": {"unit": "mV" if k == 1 else "uV"}, "by": k}))
    (found,) = seen_by(d210, tmp_path)
    assert (found.measured["property"], found.measured["value"]) == ("signal.unit", "'mV'")


def test_metadata_of_tables(tmp_path: Path, seen_by: Seen) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for k in range(4):
        table = pa.table({"x": np.random.default_rng(k).normal(size=30), "n": np.arange(30)})
        pq.write_table(table.replace_schema_metadata({"utc_offset_min": "60" if k else "-60", "pandas": "{}"}),
                       tmp_path / f"part_{k}.parquet")
    (found,) = seen_by(d210, tmp_path)
    assert (found.measured["field"], found.measured["shard"]) == ("utc_offset_min", "part_0.parquet")


def test_scalars_beside_tensors(tmp_path: Path, seen_by: Seen) -> None:
    torch = pytest.importorskip("torch")
    for k in range(4):
        torch.save({"x": torch.randn(30, 4), "y": torch.arange(30), "fs": 8000 if k == 3 else 16000, "by": None},
                   tmp_path / f"part_{k}.pt")
    (found,) = seen_by(d210, tmp_path)
    assert (found.measured["value"], found.measured["usual"]) == ("8000", "16000")


def test_broken_and_hostile_statements_say_nothing(tmp_path: Path) -> None:
    sessions(tmp_path, (10.0, 10.0, 12.5, 10.0))
    (tmp_path / "session_0.json").write_text("{")
    (tmp_path / "session_1.json").write_text(json.dumps({"a": [1] * 1000, "c": {"d": {"e": {"f": {"g": 1}}}}}))
    (tmp_path / "session_2.json").write_bytes(b"\xff\xfe{")
    (tmp_path / "session_3.json").mkdir()
    report = examine([tmp_path])
    assert [f.rule for f in report.findings if f.rule == "D210"] == ["D210"]
    assert not report.notes
    (tmp_path / "cut.npz").write_bytes((tmp_path / "session_0.npz").read_bytes()[:300])
    assert stated_of(tmp_path / "cut.npz", "npz") == {}
    assert stated_of(tmp_path / "none.h5", "hdf5") == {}
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 5000 + "]" * 5000)
    assert stated_of(tmp_path / "deep.npy", "npy") == {}


def test_pickled_objects_in_an_archive_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "part.npz"
    np.savez(path, x=np.zeros(5), hop=np.array(3.0), meta=np.array({"a": 1}, dtype=object))
    assert stated_of(path, "npz")["hop"] == 3.0
    assert "meta.a" not in stated_of(path, "npz")


@pytest.mark.parametrize(("value", "told"), [
    (True, 1.0), (3, 3.0), ("  mV ", "mV"), (b"mV", "mV"), ([1, 2.5], (1.0, 2.5)), (["a", b"b"], ("a", "b")),
    (np.float32(2), 2.0), (np.array(["a", "b"]), ("a", "b")), (float("nan"), None), ("", None), ("x" * 500, None),
    ([], None), ([1, "a"], None), ({"a": 1}, None), (None, None), (list(range(100)), None), (10**400, None),
])
def test_what_counts_as_a_statement(value: Any, told: Any) -> None:
    assert plain(value) == told
