"""D210: what one file says of itself is another thing than in its siblings, and its numbers show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examine
from traindx_tools.on_data.stated import said_of
from traindx_tools.on_data.used_by_code import with_use

BANDS = ("B02", "B03", "B04", "B08")
TAKES_NUMBERS = 'import numpy as np\nz = np.load("a.npz")\nx = z["x"]\n'


def told(folder: Path, code: str = "") -> list[Finding]:
    found = [f for f in examine([folder]).findings if f.rule == "D210"]
    if code:
        path = folder.parent / "train.py"
        path.write_text(code, encoding="utf-8")
        return with_use(found, [path])
    return found


def rates(folder: Path, hops: dict[str, float], *, by_the_hop: bool = True, **more: object) -> Path:
    """Files of frames and labels: as many labels as their step says."""
    folder.mkdir()
    for number, (name, hop) in enumerate(hops.items()):
        rng = np.random.default_rng(number)
        frames = rng.integers(80, 200, 60)
        labels = np.round(frames * 10.0 / (hop if by_the_hop and hop > 0 else 10.0)).astype(np.int64)
        np.savez(folder / f"{name}.npz", x=rng.normal(size=(60, 6)), frames=frames, label_len=labels,
                 label_hop_ms=hop, recorded=f"2024-0{number + 1}", **more)
    return folder


def tiles(folder: Path, orders: dict[str, tuple[str, ...]], *, turned: bool = True) -> Path:
    """Pictures of four channels of their own levels, in the order that each file says."""
    h5py = pytest.importorskip("h5py")
    folder.mkdir()
    for number, (name, order) in enumerate(orders.items()):
        rng = np.random.default_rng(number)
        x = rng.normal(np.array([900.0, 1100, 1200, 2200])[None, :, None, None], 300, (40, 4, 8, 8))
        with h5py.File(folder / f"{name}.h5", "w") as file:
            data = file.create_dataset("tiles", data=x[:, [BANDS.index(b) for b in order]] if turned else x)
            data.attrs["bands"] = list(order)
            data.attrs["scale"] = 1e-4
            file.create_dataset("cover", data=rng.integers(0, 4, 40))
    return folder


def test_labels_of_another_step(tmp_path: Path) -> None:
    folder = rates(tmp_path / "data", {"a": 10.0, "b": 12.5, "c": 10.0, "d": 10.0})
    (finding,) = told(folder)
    assert (finding.measured["field"], finding.measured["shard"], finding.severity.value) == (
        "label_hop_ms", "b.npz", "info")
    (finding,) = told(folder, TAKES_NUMBERS)
    assert (finding.severity.value, finding.bearing.value, finding.measured["kind"]) == ("high", "cause", "unread")
    assert finding.statement.endswith("nothing in the code reads label_hop_ms")


def test_channels_in_another_order(tmp_path: Path) -> None:
    folder = tiles(tmp_path / "data", {"train": BANDS, "val_north": BANDS, "val_delta": BANDS[::-1]})
    (finding,) = told(folder, 'import h5py\nx = h5py.File("a.h5")["tiles"]\nnames = [c for c in x.attrs["scale"]]\n')
    assert (finding.measured["way"], finding.measured["kind"]) == ("order", "unread")
    assert "B08, B04, B03, B02" in finding.statement


@pytest.mark.parametrize("code", [
    TAKES_NUMBERS + 'step = z["label_hop_ms"]\n', TAKES_NUMBERS + "all_of_it = {n: z[n] for n in z.files}\n"])
def test_code_that_reads_it(code: str, tmp_path: Path) -> None:
    (finding,) = told(rates(tmp_path / "data", {"a": 10.0, "b": 12.5, "c": 10.0}), code)
    assert (finding.severity.value, finding.bearing.value, finding.measured["kind"]) == ("info", "sign", "read")


def test_what_differs_and_the_numbers_do_not_is_no_matter(tmp_path: Path) -> None:
    assert told(rates(tmp_path / "alike", {"a": 10.0, "b": 12.5, "c": 10.0}, by_the_hop=False)) == []
    assert told(tiles(tmp_path / "tiles", {"a": BANDS, "b": BANDS, "c": BANDS[::-1]}, turned=False)) == []
    assert told(rates(tmp_path / "one sibling", {"a": 10.0, "b": 12.5})) == []
    assert told(rates(tmp_path / "each its own", {"a": 10.0, "b": 12.5, "c": 8.0})) == []
    assert told(rates(tmp_path / "all alike", {"a": 10.0, "b": 10.0, "c": 10.0})) == []


def test_broken_inputs(tmp_path: Path) -> None:
    folder = rates(tmp_path / "data", {"a": 10.0, "b": float("nan"), "c": 0.0, "d": -10.0},
                   empty=np.zeros((0, 3)), names=np.array(["a", "b", "a"]))
    assert told(folder, "this is no Python (") == []
    (folder / "e.npz").write_bytes(b"PK\x03\x04 no archive")
    assert told(folder) == []
    assert [said_of(v) for v in (np.float32(2), "x", b"y", np.zeros((2, 2)), np.array([1.0, 2.0]), np.zeros(0),
                                 np.inf, np.array(["a", "b"]))] == [2.0, "x", "y", None, None, None, None, ("a", "b")]
