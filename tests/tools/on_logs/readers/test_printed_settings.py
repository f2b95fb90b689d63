"""A configuration that is printed in brackets is no record, however many names of metrics it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run

STEPS = "\n".join(f"{{'loss': {2.0 - i / 10:.3f}, 'learning_rate': {1e-4 - i * 1e-5:.2e}, 'epoch': {i + 1}}}"
                  for i in range(8))


@pytest.mark.parametrize("line", [
    "settings from config.yaml {'data': 'data', 'epochs': 5, 'batch_size': 32, 'learning-rate': 0.002, 'seed': 7}",
    "Namespace(epochs=5, batch_size=32, learning_rate=0.002, seed=7)",
    "options: {'epoch': 5, 'learning_rate': 0.002}",
])
def test_settings_are_no_record(line: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(f"{line}\n{STEPS}\n", encoding="utf-8")
    run = read_run([log])
    rate = run.first("learning_rate")
    assert rate is not None
    assert float(rate.values.max()) == 1e-4
    assert 0.002 in run.config.values()


def test_a_record_that_says_what_it_is_stays_one(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    lines = [f"results of args {{'epoch': {i}, 'loss': {2.0 - i / 10}}}" for i in range(6)]
    log.write_text("\n".join(lines), encoding="utf-8")
    loss = read_run([log]).first("loss")
    assert loss is not None
    assert len(loss.values) == 6
