"""What a folder of artifacts comes to: configurations, refused files, what is traindx's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import read_run

LOG = "Namespace(lr=0.5, batch_size=16)\n" + "".join(f"step {i} loss {2.0 - 0.1 * i:.2f}\n" for i in range(6))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "log.txt").write_text(LOG)
    return tmp_path


def test_a_printed_configuration_is_read(folder: Path) -> None:
    assert read_run([folder]).config["lr"] == 0.5


def test_a_configuration_file_wins_over_what_a_log_printed(folder: Path) -> None:
    (folder / "a.yaml").write_text("lr: 0.01\n")
    config = read_run([folder]).config
    assert (config["lr"], config["batch_size"]) == (0.01, 16)


@pytest.mark.parametrize("text", ["a: [1, 2\nb: }", "lr: !!python/object/apply:os.system ['touch hacked']\n"])
def test_a_bad_configuration_is_refused_and_the_rest_is_read(folder: Path, text: str) -> None:
    (folder / "bad.yaml").write_text(text)
    run = read_run([folder])
    assert run.loss is not None
    notes = {Path(a.path).name: a.note for a in run.artifacts}
    assert notes["bad.yaml"].startswith("refused")
    assert not list(folder.rglob("hacked"))


def test_a_bad_configuration_alone_is_unreadable_input(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [1, 2\nb: }")
    with pytest.raises(UnreadableInput, match=r"bad\.yaml"):
        read_run([tmp_path])


def test_what_traindx_wrote_is_no_evidence_of_the_run(folder: Path) -> None:
    own = folder / "scratch" / "debug" / "s1"
    own.mkdir(parents=True)
    (own / "journal.jsonl").write_text('{"step": 1, "loss": 99.0}\n{"step": 2, "loss": 98.0}\n')
    (folder / "scratch" / "notes.csv").write_text("step,accuracy\n1,0.5\n2,0.6\n")
    run = read_run([folder])
    assert {s.name for s in run.series} == {"loss", "accuracy"}
    assert run.first("loss") is not None
    assert max(float(s.values.max()) for s in run.find("loss")) == 2.0


UNUSUAL = "".join(f"runde {i}: kasten={3 - i / 10:.3f} (gut)\n" for i in range(12))


def test_a_log_of_own_names_is_read_by_what_they_stand_for() -> None:
    run = read_run(["-"], stdin=UNUSUAL.encode(), names={"kasten": "val_loss", "runde": "epoch"})
    (loss,) = run.series
    assert (str(loss), loss.epoch.tolist()) == ("validation loss", list(range(12)))


def test_own_names_reach_columns_and_whole_words_only() -> None:
    text = "runde,kasten,kastenzahl\n" + "".join(f"{i},{3 - i / 10:.2f},{i * 7}\n" for i in range(9))
    run = read_run(["-"], stdin=text.encode(), names={"kasten": "loss", "runde": "step"})
    assert {s.name: s.unit for s in run.series} == {"loss": "step", "kastenzahl": "step"}


def test_own_names_reach_the_series_of_a_binary_file(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for i in range(5):
            writer.add_scalar("kasten", 1.0 / (i + 1), i)
    assert [str(s) for s in read_run([tmp_path], names={"kasten": "val_loss"}).series] == ["validation loss"]


@pytest.mark.parametrize("names", [{"kasten": "blub"}, {"": "loss"}, {"a\nb": "loss"}])
def test_a_name_that_stands_for_nothing_is_refused_with_examples(names: dict[str, str]) -> None:
    with pytest.raises(UnreadableInput, match=r"expected|Expected"):
        read_run(["-"], stdin=UNUSUAL.encode(), names=names)


def test_a_log_in_which_nothing_is_found_shows_lines_of_it() -> None:
    text = "hello\n" + "".join(f"<<{i}>> ~{3 - i / 10:.2f}~\x07 blub {i * 7}\n" for i in range(50))
    (artifact,) = read_run(["-"], stdin=text.encode()).artifacts
    assert 'line 2: "<<0>> ~3.00~ blub 0"' in artifact.note
    assert artifact.note.count(": \"<<") == 3
    assert len(artifact.note) < 600


def test_a_log_in_which_something_is_found_shows_none() -> None:
    (artifact,) = read_run(["-"], stdin=b"1 2 ~ 3\nstep 1 loss 0.5\nstep 2 loss 0.4\n").artifacts
    assert artifact.note == ""


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_a_json_file_that_is_nothing_but_brackets_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match="nested too deeply"):
        read_run([path])
