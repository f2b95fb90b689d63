"""`train 4.2s` is how long the training took, no loss; epochs that take longer are told (L404)."""

from __future__ import annotations

import pytest

from traindx_tools import extract_training_metrics
from traindx_tools.examine import examine


def written(tmp_path, line, count=12):
    path = tmp_path / "train.log"
    path.write_text("".join(line(i) + "\n" for i in range(1, count + 1)))
    return path


def metrics(path):
    return {s.name: s.values.tolist() for s in extract_training_metrics(path).series}


@pytest.mark.parametrize(("line", "name", "first"), [
    (lambda i: f"epoch {i} loss {2 - i / 10:.3f} train {i}.5s val 0.{i}s", "time/train", 1.5),
    (lambda i: f"epoch {i} loss {2 - i / 10:.3f} train: {i}.5 sec, eval: 0.{i} sec", "time/train", 1.5),
    (lambda i: f"epoch {i} loss {2 - i / 10:.3f} val 0.{i}s", "time/val", 0.1)])
def test_seconds_of_a_group_are_no_loss(line, name, first, tmp_path):
    found = metrics(written(tmp_path, line, 9))
    assert found[name][0] == first
    assert found["loss"][0] == pytest.approx(1.9)


def test_a_number_without_a_unit_is_the_group_s_loss(tmp_path):
    path = written(tmp_path, lambda i: f"epoch {i} train {2 - i / 10:.2f} val {2 - i / 20:.2f}")
    found = extract_training_metrics(path)
    assert {(s.name, s.group) for s in found.series} == {("loss", "train"), ("loss", "validation")}


def slow(path):
    return [f for f in examine([path]).findings if f.rule == "L404"]


def test_epochs_that_take_longer_and_longer(tmp_path):
    (found,) = slow(written(tmp_path, lambda i: f"epoch {i} loss {2 - i / 10:.3f} train {0.5 + i * 0.4:.1f}s"))
    assert "epochs take" in found.statement


@pytest.mark.parametrize("line", [
    lambda i: f"epoch {i} loss {2 - i / 10:.3f} train {2 + i % 3 / 10:.1f}s",
    lambda i: f"epoch {i} loss {2 - i / 10:.3f} train {i * 1.1:.1f}s"])
def test_steady_epochs_and_a_clock_that_goes_on_are_none(line, tmp_path):
    assert slow(written(tmp_path, line)) == []


def test_a_notice_of_the_instruments_is_no_error_of_the_program(tmp_path):
    path = written(tmp_path, lambda i: f"step {i} loss {2 - i / 20:.3f}" if i != 4 else
                   "traindx: the probe variables is off: AttributeError: 'K' object has no 'kind'; it goes on")
    assert [f for f in examine([path]).findings if f.rule[:2] == "L5"] == []


@pytest.mark.parametrize(("others", "severity"), [("eval_macro_f1: 0.62, ", "low"), ("", "high")])
def test_one_class_of_several_that_is_never_named_is_no_collapse(others, severity, tmp_path):
    path = written(tmp_path, lambda i: f"epoch {i} loss: {2 - i / 10:.3f}, eval_accuracy: 0.9{i % 3}, {others}"
                                       f"eval_f1_rarest: 0.0")
    assert [f.severity.value for f in examine([path]).findings if f.rule == "L213"] == [severity]
