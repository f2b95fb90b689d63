"""The batch that a program failed on: kept as numbers, checked on the CPU, nothing unpickled."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from traindx.cli import run  # noqa: E402
from traindx_tools.errors import UnreadableInput  # noqa: E402
from traindx_tools.live.batch_file import Check, read_batch, replay, write_batch  # noqa: E402
from traindx_tools.on_torch.probes.batches import BatchProbe  # noqa: E402


def failing(watching, path, error=None):
    model = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(64, 4))
    ids, labels = torch.randint(0, 50, (12, 8)), torch.randint(0, 4, (12,))
    ids[9, 3] = 77
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loop():
        for x, y in DataLoader(TensorDataset(ids, labels), 4):
            if error is not None and int(x.max()) > 49:
                raise error
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    w = watching(BatchProbe)
    w.notes.batch_path = path
    with pytest.raises((IndexError, RuntimeError)), w:
        loop()


@pytest.mark.parametrize("error", [None, RuntimeError("CUDA error: device-side assert triggered")])
def test_a_device_side_assert_becomes_a_plain_error(error, watching, tmp_path, capsys):
    path = tmp_path / "rank00000.batch.npz"
    failing(watching, path, error)
    assert run(["replay", str(path)]) == 1
    out = capsys.readouterr().out
    assert "IndexError: batch[0][1, 3] is 77 and the table 0 has 0 to 49" in out
    assert "batch[1] [4] is within the output (0 to 3)" in out
    assert run(["replay", str(path), "--json"]) == 1
    outcomes = {o["check"]["array"]: o["bad"] for o in json.loads(capsys.readouterr().out)["outcomes"]}
    assert (outcomes["batch[0]"], outcomes["batch[1]"]) == (1, 0)
    assert outcomes.get("failing_lookup") == (1 if error is None else None)


def test_a_batch_in_range_is_said_to_be(tmp_path):
    path = tmp_path / "a.npz"
    write_batch(path, {"x": np.arange(6).reshape(2, 3)}, [Check("lookup", "x", 6, "the table t")])
    assert [o.bad for o in replay(*read_batch(path))] == [0]
    assert run(["replay", str(path)]) == 0


def test_the_ignored_label_is_no_fault(tmp_path):
    check = Check("labels", "y", 4, "the output", -100)
    assert [o.bad for o in replay({"y": np.array([-100, 3, 4])}, [check])] == [1]


def test_the_folder_of_a_run_stands_for_its_batch(tmp_path, capsys):
    assert run(["replay", str(tmp_path)]) == 2
    assert "holds no batch" in capsys.readouterr().err
    check = [Check("lookup", "x", 6, "the table t")]
    write_batch(tmp_path / "rank00000.batch.npz", {"x": np.arange(7)}, check)
    assert run(["replay", str(tmp_path)]) == 1
    assert run(["diagnose", str(tmp_path), "-v"]) in (0, 1, 3, 4)
    assert "traindx replay " in " ".join(capsys.readouterr().out.split())
    write_batch(tmp_path / "rank00001.batch.npz", {"x": np.arange(7)}, check)
    assert run(["replay", str(tmp_path)]) == 2
    assert "batches of 2 ranks: name one" in capsys.readouterr().err


class Evil:
    def __reduce__(self):
        return (print, ("run",))


def test_hostile_files_are_refused(tmp_path, capsys):
    path = tmp_path / "evil.npz"
    np.savez(path, checks=np.array([Evil()], dtype=object), **{"array:x": np.array([Evil()], dtype=object)})
    for content in (path.read_bytes(), b"", b"PK\x03\x04 nothing", pickle.dumps(Evil())):
        path.write_bytes(content)
        with pytest.raises(UnreadableInput, match="no batch that traindx captured"):
            read_batch(path)
    assert run(["replay", str(path)]) == 2
    assert run(["replay", str(tmp_path / "missing.npz")]) == 2
    assert "run" not in capsys.readouterr().out.split()


def test_a_batch_that_is_too_large_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("traindx_tools.live.batch_file.MOST_BYTES", 10)
    assert not write_batch(tmp_path / "a.npz", {"x": np.zeros(100)}, [])
    assert list(tmp_path.iterdir()) == []
