"""A step that is kept on disk gives in a fresh process of the program what it gave in the one that failed."""

from __future__ import annotations

import json
import math
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
import torch
from programs import Program
from torch import Tensor, nn
from torch.nn import functional

from traindx_tools.errors import UnreadableInput
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.live.step_file import RESULT, TooLarge, read_step, steps_in, write_step
from traindx_tools.on_torch.attachment import attach, detach
from traindx_tools.on_torch.monitor import Monitor


def captured(run: Callable[[], Any], folder: Path) -> list[Path]:
    """The steps that a run leaves."""
    with Monitor(out=folder, probes=(), snapshot=True):
        run()
    return steps_in(folder)


def replayed(step: Path, run: Callable[[], Any], folder: Path) -> dict[str, Any]:
    """What comes of a step in another start of a program."""
    folder.mkdir()
    attach(open_session(Settings(str(folder), ("stored-step",), options={"step_file": str(step)})))
    try:
        run()
    finally:
        close_session()
        detach()
        torch.use_deterministic_algorithms(False)
    told: dict[str, Any] = json.loads((folder / RESULT).read_text())
    return told


FAULTS = (programs.half_overflow, programs.half_resolution, programs.bad_row, programs.outlying_row,
          programs.wrong_state, programs.never_cleared, programs.high_rate, programs.strong_decay,
          programs.dead_moments, programs.clipped_and_high)


@pytest.mark.slow
@pytest.mark.parametrize("run", FAULTS, ids=lambda r: r.__name__)
def test_the_replay_is_the_captured_step_with_the_same_table(run: Program, tmp_path: Path) -> None:
    steps = captured(run, tmp_path / "run")
    assert steps
    for number, step in enumerate(steps):
        before = json.loads((tmp_path / "run/replays" / step.name.replace(".step.npz", ".json")).read_text())
        told = replayed(step, run, tmp_path / f"again{number}")
        assert told["why"] == ""
        assert told["study"]["exact"] == before["exact"]
        assert told["study"]["control"] == before["control"]
        assert told["study"]["at"] == before["at"]
        assert [_told(t) for t in told["study"]["tried"]] == [_told(t) for t in before["tried"]]


@pytest.mark.slow
@pytest.mark.parametrize("run", programs.HEALTHY, ids=lambda r: r.__name__)
def test_a_step_stays_only_of_a_jump_that_does_not_come_back(run: Program, tmp_path: Path) -> None:
    stays = {programs.harder_task: ["rank00000-step00000041-loss-jump.step.npz"]}
    assert [p.name for p in captured(run, tmp_path / "run")] == stays.get(run, [])


def _told(tried: dict[str, Any]) -> tuple[Any, ...]:
    return tried["change"], tried["word"], tried["why"], json.dumps(tried["measured"])


def test_the_row_and_the_first_module_are_named(tmp_path: Path) -> None:
    (step,) = captured(programs.bad_row, tmp_path / "run")
    told = replayed(step, programs.bad_row, tmp_path / "again")
    assert told["study"]["exact"] is True
    assert told["study"]["row_numbers"] == [137]
    assert next(o["module"] for o in told["observed"]["outputs"] if float(o["bad"]) > 0) == "0"
    records = (tmp_path / "again/rank00000.jsonl").read_text()
    assert '"T101"' in records
    assert "the batch itself holds inf in batch" in records


# ---- what surrounds a model

SCALE = 1.0


class Surrounded(nn.Module):
    """Reads a global, a closure, an attribute and a number of its own that the loop changes."""

    def __init__(self, scale: Callable[[], float]) -> None:
        super().__init__()
        self.inner, self.scale = programs.net(nn.BatchNorm1d(32), nn.Dropout(0.5)), scale
        self.weights = [1.0, 1.0]
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.as_tensor(self.inner(x) * self.scale() * SCALE * self.weights[0] * (1 + self.calls / 100))


def surrounded(fails_at: int = 25) -> None:
    global SCALE
    torch.manual_seed(0)
    factor = 1.0
    model = Surrounded(lambda: factor)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(30):
        SCALE, factor, model.weights[0] = 1.0 + step / 100, 1.0 - step / 100, 1.0 + step / 200
        x, y = programs.regression(16)
        loss = functional.mse_loss(model(x * (float("inf") if step == fails_at else 1.0)), y)
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            return
        optimizer.step()


def test_plain_state_that_the_loop_changes_is_set_back(tmp_path: Path) -> None:
    step = captured(surrounded, tmp_path / "run")[-1]
    told = replayed(step, surrounded, tmp_path / "again")
    assert told["why"] == ""
    assert told["study"]["exact"] is True
    assert {"SCALE (test_stored_steps.py)", "Surrounded.weights"} <= set(told["changed"])


class Counting:
    """State that no tensor and no plain value holds."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> float:
        self.count += 1
        return 1.0 + self.count / 10


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.counting = programs.net(), Counting()

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.inner(x) * self.counting.next())


def jumping(model: nn.Module, steps: int = 40) -> None:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        x, y = programs.regression(16)
        loss = functional.mse_loss(model(x), y) * (1e4 if step == 30 else 1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_state_that_cannot_be_kept_is_told_and_gives_no_verdict(tmp_path: Path) -> None:
    steps = captured(lambda: jumping(Hidden()), tmp_path / "run")
    told = replayed(steps[0], lambda: jumping(Hidden()), tmp_path / "again")
    assert "its loss is" in told["why"]
    assert "when it is run again, and was" in told["why"]
    assert told["study"] is None


# ---- what does not fit


def test_another_model_is_said_to_be_another_one(tmp_path: Path) -> None:
    (step,) = captured(programs.bad_row, tmp_path / "run")

    def other() -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        jumping(model, steps=55)

    told = replayed(step, other, tmp_path / "again")
    assert told["why"].startswith("the program's Sequential is another one: `0.weight` is [16, 8] there and was "
                                  "[32, 8], in its first 50 steps")


def test_a_program_that_never_steps_is_said_to_have_ended(tmp_path: Path) -> None:
    (step,) = captured(programs.bad_row, tmp_path / "run")

    def ends() -> None:
        programs.net()(torch.zeros(2, 8)).sum().backward()

    assert replayed(step, ends, tmp_path / "again")["why"] == ("the program ended before the step could be put in: no "
                                                              "optimizer made a step")


def test_a_step_that_is_too_large_is_not_kept_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("traindx_tools.experiments.replaying.storing.MOST_BYTES", 5_000)
    assert captured(programs.bad_row, tmp_path / "run") == []
    said = capsys.readouterr().err
    assert "step 8 is not kept on disk: the step holds" in said
    assert "KiB and at most 5 KiB are kept" in said
    assert "--keep-mib N` allows more" in said
    record = next(r for line in (tmp_path / "run/rank00000.jsonl").read_text().splitlines()
                  if (r := json.loads(line))["kind"] == "step")
    assert "at most" in record["failed"]


def test_arguments_of_another_kind_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Batch:
        def __init__(self, x: Tensor) -> None:
            self.x = x

    class Takes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = programs.net()

        def forward(self, batch: Batch) -> Tensor:
            return torch.as_tensor(self.inner(batch.x))

    def run() -> None:
        model = Takes()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(6):
            loss = model(Batch(torch.randn(4, 8) * (float("nan") if step == 4 else 1.0))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert captured(run, tmp_path / "run") == []
    assert "Batch, which is no number, tensor, list or dict of these" in capsys.readouterr().err


# ---- the file


def test_the_file_is_for_its_owner_and_holds_bytes_and_json_alone(tmp_path: Path) -> None:
    (step,) = captured(programs.half_resolution, tmp_path / "run")
    assert stat.S_IMODE(step.stat().st_mode) == 0o600
    with zipfile.ZipFile(step) as archive:
        names = archive.namelist()
        assert {n.rpartition(".")[2] for n in names} == {"npy", "json"}
        for name in names:
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    assert np.lib.format.read_array(member, allow_pickle=False).dtype == np.uint8


def test_a_link_in_scratch_debug_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    folder = tmp_path / "scratch/debug/run/steps"
    folder.mkdir(parents=True)
    (folder / "a.step.npz.part").symlink_to(target)
    with pytest.raises(OSError, match="leads to"):
        write_step(folder / "a.step.npz", {}, [], lambda _: np.empty(0, np.uint8))
    assert target.read_text() == "kept"


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(TooLarge, match="are free on the disk"):
        write_step(tmp_path / "a.step.npz", {}, [100], lambda _: np.zeros(100, np.uint8))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04cut off"])
def test_what_is_no_step_is_refused_with_what_one_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.step.npz"
    path.write_bytes(content)
    with pytest.raises(UnreadableInput, match="is no step that traindx captured"):
        read_step(path)


def test_lies_in_a_file_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.step.npz", {"traindx": "captured-step", "version": 1, "sizes": [8]}, {})
    with pytest.raises(UnreadableInput, match="tensors are missing"):
        read_step(path)
    packed = tmp_path / "b.step.npz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("step.json", "{}" * 10_000)
    with pytest.raises(UnreadableInput, match="compressed"):
        read_step(packed)
    later = write(tmp_path / "c.step.npz", {"traindx": "captured-step", "version": 9, "sizes": []}, {})
    with pytest.raises(UnreadableInput, match="of version 9"):
        read_step(later)


def test_an_array_of_objects_is_not_unpickled(tmp_path: Path) -> None:
    array = tmp_path / "t0.npy"
    np.save(array, np.array([{"a": 1}] * 8, dtype=object), allow_pickle=True)
    path = write(tmp_path / "a.step.npz", {"traindx": "captured-step", "version": 1, "sizes": [8]},
                 {"t0.npy": array.read_bytes()})
    with pytest.raises(UnreadableInput, match="cannot be read"):
        read_step(path).arrays(0)


def write(path: Path, told: dict[str, Any], members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("step.json", json.dumps(told))
    return path


def test_a_file_that_says_nonsense_is_said_not_to_fit(tmp_path: Path) -> None:
    (step,) = captured(programs.bad_row, tmp_path / "run")
    told = dict(read_step(step).told)
    told["passes"] = {**told["passes"], "entries": [{"op": "os::system", "args": None, "kwargs": None, "results": [0],
                                                     "gradients": True, "place": None, "drawn": None}]}
    told["update"] = None
    stored = read_step(step)
    again = tmp_path / "b.step.npz"
    write_step(again, {k: v for k, v in told.items() if k not in ("traindx", "version", "sizes")}, told["sizes"],
               stored.arrays)
    why = replayed(again, programs.bad_row, tmp_path / "again")["why"]
    assert "has no operation os::system" in why


def test_values_survive_with_their_strides_and_dtypes() -> None:
    from traindx_tools.live.step_file import Stored
    from traindx_tools.on_torch.stored.modules import Parameters
    from traindx_tools.on_torch.stored.values import Reader, Writer

    writer = Writer(Parameters([]))
    values = {"half": torch.randn(3, 4).bfloat16(), "columns": torch.randn(4, 3).t(), "one": torch.tensor(3),
              "spread": torch.randn(1, 3).expand(5, 3), "none": torch.empty(0, 2), "bits": torch.tensor([True, False]),
              "complex": torch.randn(3, dtype=torch.complex64).conj(), "gaps": torch.randn(4, 6)[:, ::2]}
    plain = {"nan": math.nan, "inf": -math.inf, "tuple": (1, [2.5, None, "x"]), "dtype": torch.float16,
             "slice": slice(1, None), "dots": ..., "array": np.arange(6, dtype=np.int16).reshape(2, 3),
             "number": np.float32(0.1)}
    told = json.loads(json.dumps(writer.value({**values, **plain})))
    stored = Stored({"tensors": writer.table}, writer.bytes_of, Path("x"))
    back = Reader(stored, Parameters([]), []).value(told)
    for name, value in values.items():
        assert torch.equal(back[name], value), name
        assert (back[name].dtype, back[name].shape) == (value.dtype, value.shape)
        assert back[name].stride() == value.stride(), name
    assert back["nan"] != back["nan"]
    assert back["array"].dtype == np.int16
    assert np.array_equal(back["array"], plain["array"])
    for name in ("inf", "tuple", "dtype", "slice", "dots", "number"):
        assert back[name] == plain[name]
        assert type(back[name]) is type(plain[name])

