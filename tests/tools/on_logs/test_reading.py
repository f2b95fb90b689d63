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
