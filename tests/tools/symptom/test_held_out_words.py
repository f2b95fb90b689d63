"""Held-out data in two words, and what "it" is said of on data that a clause names."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.diagnose import diagnose

LOG = "".join(f"epoch {n} train {1.5 / n:.3f} / {min(0.99, 0.4 + n / 20):.3f}   held-out {1.4 + n / 20:.3f} / "
              f"{0.42 + (n % 3 - 1) / 100:.3f}\n" for n in range(1, 31))


@pytest.mark.parametrize("words", [
    "held-out accuracy stays around 42%", "accuracy on held out nights stays at 42 %",
    "Train accuracy is 99% but on held-out nights it stays around 42%",
    "train accuracy is 99%, but it stays around 42% on the hold-out set", "validation accuracy stays around 42%",
])
def test_the_score_of_held_out_data_is_meant(tmp_path: Path, words: str) -> None:
    (tmp_path / "train.log").write_text(LOG)
    told = str(diagnose([tmp_path / "train.log"], symptom=words).to_json()["symptom_answer"])
    assert "within a few per cent of 0.42" in told


@pytest.mark.parametrize("words", ["train accuracy goes to 99% and then it stays at 99%", "it stays at 0.99"])
def test_without_such_words_the_training_is_meant(tmp_path: Path, words: str) -> None:
    (tmp_path / "train.log").write_text(LOG)
    told = str(diagnose([tmp_path / "train.log"], symptom=words).to_json()["symptom_answer"])
    assert "of 0.42" not in told
    assert "0.99" in told
