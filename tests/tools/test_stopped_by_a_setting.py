"""A crash by a configured value is followed to its key: the traceback, the code and the configuration together."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from traindx_tools.examine import Examination, examine

TRAIN = """\
    import argparse
    from pathlib import Path
    import torch
    import yaml
    from model import Net

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--config", default="config.yaml")
        cfg = yaml.safe_load(Path(parser.parse_args().config).read_text())
        t = cfg["train"]
        model = Net(cfg["model"]["rate"])
        opt = torch.optim.AdamW(model.parameters(), lr=t["lr"],
                                weight_decay=t["weight_decay"])
        for epoch in range(t["epochs"]):
            print(epoch, opt)

    main()
    """
MODEL = """\
    from torch import nn

    class Net(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.drop = nn.Dropout(p=rate)
            self.head = nn.Linear(4, 2)
    """
CONFIG = "model:\n  rate: {rate}\ntrain:\n  lr: {lr}\n  weight_decay: {decay}\n  epochs: {epochs}\n"
GOOD = {"rate": "0.1", "lr": "0.001", "decay": "0.01", "epochs": "8"}
ADAM = '  File "/env/lib/python3.11/site-packages/torch/optim/adam.py", line 66, in __init__\n    {code}\n'
BETWEEN = "TypeError: '<=' not supported between instances of 'float' and 'str'"


def _log(frames: str, error: str) -> str:
    outer = '  File "/data/job/train.py", line 18, in <module>\n    main()\n'
    return f"Traceback (most recent call last):\n{outer}{frames}{error}\n"


def _own(line: int, code: str, file: str = "train.py", function: str = "main") -> str:
    return f'  File "/data/job/{file}", line {line}, in {function}\n    {code}\n'


OPTIMIZER = _own(13, 'opt = torch.optim.AdamW(model.parameters(), lr=t["lr"],')


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(dedent(TRAIN))
    (tmp_path / "model.py").write_text(dedent(MODEL))
    return tmp_path


def _seen(job: Path, log: str, symptom: str = "", **values: str) -> Examination:
    (job / "config.yaml").write_text(CONFIG.format(**{**GOOD, **values}))
    (job / "train.log").write_text(log)
    return examine([job], symptom=symptom)


def _told(seen: Examination) -> list[tuple[object, ...]]:
    return [(f.measured["kind"], f.measured["key"], f.measured["expected"], str(f.where))
            for f in seen.findings if f.rule == "S103"]


@pytest.mark.parametrize("symptom", ["", "the nightly run failed"])
def test_a_text_for_a_number_in_a_library_is_the_cause(job: Path, symptom: str) -> None:
    log = _log(OPTIMIZER + ADAM.format(code="if not 0.0 <= weight_decay:"), BETWEEN)
    seen = _seen(job, log, symptom, decay='"none"')
    assert _told(seen) == [("type", "train.weight_decay", "a number", "config.yaml:5")]
    assert seen.verdict.status == "diagnosis_complete"
    first = seen.verdict.hypotheses[0]
    assert first.mode.id == "cfg.value-refused"
    assert first.confidence >= 0.7
    assert [a.answer for a in seen.symptom_answers] == ["seen"] * bool(symptom)


def test_the_line_of_the_library_tells_which_of_two_texts(job: Path) -> None:
    log = _log(OPTIMIZER + ADAM.format(code="if not 0.0 <= weight_decay:"), BETWEEN)
    seen = _seen(job, log, decay="none", lr="1e-3")
    assert [t[1] for t in _told(seen)] == ["train.weight_decay"]


def test_a_value_that_passes_through_another_module(job: Path) -> None:
    frames = (_own(12, 'model = Net(cfg["model"]["rate"])')
              + _own(6, "self.drop = nn.Dropout(p=rate)", "model.py", "__init__")
              + ADAM.format(code="raise ValueError(").replace("optim/adam", "nn/modules/dropout"))
    log = _log(frames, "ValueError: dropout probability has to be between 0 and 1, but got 1.5")
    assert _told(_seen(job, log, rate="1.5")) == [("value", "model.rate", "another value", "config.yaml:2")]


def test_a_number_where_a_whole_one_is_wanted(job: Path) -> None:
    log = _log(_own(15, 'for epoch in range(t["epochs"]):'),
               "TypeError: 'float' object cannot be interpreted as an integer")
    assert _told(_seen(job, log, epochs="8.0")) == [("type", "train.epochs", "a whole number", "config.yaml:6")]


@pytest.mark.parametrize(("code", "values"), [
    ("if not 0.0 <= weight_decay:", {}),  # the settings are numbers: the text came from elsewhere
    ("if not 0.0 <= eps:", {"decay": "none", "lr": "1e-3"}),  # two texts, and neither is named
])
def test_without_one_setting_that_fits_nothing_is_said(job: Path, code: str, values: dict[str, str]) -> None:
    seen = _seen(job, _log(OPTIMIZER + ADAM.format(code=code), BETWEEN), **values)
    assert not _told(seen)
    assert all(h.mode.id != "cfg.value-refused" or h.confidence < 0.4 for h in seen.verdict.hypotheses)


def test_another_line_that_raised_and_a_healthy_run_say_nothing(job: Path) -> None:
    assert not _told(_seen(job, _log(_own(16, "print(epoch, opt)"), BETWEEN), decay="none"))
    assert not _told(_seen(job, "epoch 0 loss 1.0\nepoch 1 loss 0.5\n", decay="none"))


@pytest.mark.parametrize("text", ["train: [\n", "\x00\x01", "- 1\n", ""])
def test_a_broken_configuration_says_nothing(job: Path, text: str) -> None:
    (job / "config.yaml").write_text(text)
    (job / "train.log").write_text(_log(OPTIMIZER, BETWEEN))
    assert not _told(examine([job]))


def test_the_same_key_in_two_files_is_not_guessed(job: Path) -> None:
    (job / "other.yaml").write_text(CONFIG.format(**GOOD))
    log = _log(OPTIMIZER + ADAM.format(code="if not 0.0 <= weight_decay:"), BETWEEN)
    assert not _told(_seen(job, log, decay="none"))


def test_a_configuration_that_is_opened_by_name_carries_its_keys(job: Path) -> None:
    (job / "train.py").write_text(dedent(TRAIN).replace(
        "yaml.safe_load(Path(parser.parse_args().config).read_text())", 'yaml.safe_load(open("config.yaml"))'))
    log = _log(OPTIMIZER + ADAM.format(code="if not 0.0 <= weight_decay:"), BETWEEN)
    assert [t[1] for t in _told(_seen(job, log, decay="none"))] == ["train.weight_decay"]
