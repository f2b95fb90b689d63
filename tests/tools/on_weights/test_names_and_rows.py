"""Vocabularies and class lists beside weights that have another number of entries than the table has rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

ROWS, WIDTH = 301, 32
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]


def words(count: int = ROWS) -> list[str]:
    return [*SPECIAL, *(f"w{chr(97 + i % 26)}{i // 26}{'x' * (i % 3)}{i}" for i in range(count - len(SPECIAL)))]


def trained(rows: int = ROWS, mean: float = 0.0) -> Any:
    """Words of thirty kinds: those of a kind lie close together."""
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(30, WIDTH)) * 0.05
    return (mean + kinds[rng.integers(0, 30, rows)] + rng.normal(size=(rows, WIDTH)) * 0.015).astype(np.float32)


def drawn(rows: int) -> Any:
    return np.random.default_rng(5).normal(size=(rows, WIDTH)).astype(np.float32) * 0.02


def found(folder: Path, table: Any, names: Sequence[str] | None, config: dict[str, Any] | None = None,
          more: dict[str, Any] | None = None) -> list[Finding]:
    folder.mkdir(exist_ok=True)
    np.savez(folder / "weights.npz", **{"embed.weight": table, "out.weight": drawn(WIDTH)[:, :WIDTH],
                                         "out.bias": np.zeros(WIDTH, np.float32), **(more or {})})
    if names is not None:
        (folder / "vocab.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    seen = examine(folder / "weights.npz")
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W145"]


@pytest.mark.parametrize("mean", [0.0, 0.1])
@pytest.mark.parametrize("lost", [[100], [40, 200]])
def test_a_list_that_lost_names(lost: list[int], mean: float, tmp_path: Path) -> None:
    names = [n for i, n in enumerate(words()) if i not in lost]
    (one,) = found(tmp_path, trained(mean=mean), names, {"vocab_size": ROWS})
    assert (one.measured["kind"], one.measured["entries"], one.severity) == ("lost", ROWS - len(lost), Severity.HIGH)
    (other,) = found(tmp_path / "alone", trained(mean=mean), names)
    assert other.severity is Severity.MEDIUM


def test_a_list_in_json_that_lost_a_name(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({n: i for i, n in enumerate(words()[:-1])}))
    (one,) = found(tmp_path, trained(), None, {"vocab_size": ROWS})
    assert one.measured["kind"] == "lost"


def healthy_whole(folder: Path) -> list[Finding]:
    return found(folder, trained(), words())


def healthy_padded_with_draws(folder: Path) -> list[Finding]:
    return found(folder, np.concatenate([trained(mean=0.1), drawn(3)]), words(), {"vocab_size": ROWS + 3})


def healthy_padded_with_zeros(folder: Path) -> list[Finding]:
    return found(folder, np.concatenate([trained(), np.zeros((19, WIDTH), np.float32)]), words())


def healthy_padded_with_the_mean(folder: Path) -> list[Finding]:
    table = trained()
    return found(folder, np.concatenate([table, np.repeat(table.mean(0, keepdims=True), 3, 0)]), words())


def healthy_draws_of_the_same_norm(folder: Path) -> list[Finding]:
    more = drawn(3) * (np.linalg.norm(trained(), axis=1).mean() / np.linalg.norm(drawn(3), axis=1).mean())
    return found(folder, np.concatenate([trained(), more]), words())


def healthy_added_tokens(folder: Path) -> list[Finding]:
    folder.mkdir(exist_ok=True)
    (folder / "added_tokens.json").write_text(json.dumps({"<extra>": ROWS - 1}))
    return found(folder, trained(), words()[:-1])


def healthy_blank_entries(folder: Path) -> list[Finding]:
    return found(folder, trained(), ["", *words()[1:]])


def healthy_counts_of_words(folder: Path) -> list[Finding]:
    """A dictionary of fairseq: its program puts four special tokens before it."""
    return found(folder, trained(), [f"{n} {9000 - 20 * i}" for i, n in enumerate(words()[4:])])


def healthy_two_tables(folder: Path) -> list[Finding]:
    return found(folder, trained(), words(290), more={"decoder.embed.weight": trained(290)})


@pytest.mark.parametrize("make", [
    healthy_whole, healthy_padded_with_draws, healthy_padded_with_zeros, healthy_padded_with_the_mean,
    healthy_draws_of_the_same_norm, healthy_added_tokens, healthy_blank_entries, healthy_counts_of_words,
    healthy_two_tables])
def test_healthy_twins(make: Callable[[Path], list[Finding]], tmp_path: Path) -> None:
    assert make(tmp_path) == []


def test_special_tokens_that_the_program_adds_and_rows_that_tell_nothing_are_remarks(tmp_path: Path) -> None:
    (one,) = found(tmp_path / "a", trained(), words()[2:])
    (two,) = found(tmp_path / "b", trained(), words()[4:])
    (three,) = found(tmp_path / "c", drawn(ROWS), words()[:-1])
    assert [f.severity for f in (one, two, three)] == [Severity.INFO] * 3


def test_names_without_a_row_and_classes_without_a_name(tmp_path: Path) -> None:
    (one,) = found(tmp_path / "a", trained(), words(ROWS + 2))
    assert (one.measured["kind"], one.severity) == ("more", Severity.MEDIUM)
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "labels.txt").write_text("\n".join(f"kind {chr(97 + i)}" for i in range(19)))
    (two,) = found(folder, trained(), None, more={"z_head.weight": drawn(20)})
    assert (two.measured["kind"], two.severity) == ("classes", Severity.LOW)


def test_lists_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text('{"a": 0, "b":')
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe\x00\n" * 300)
    (tmp_path / "tokenizer.json").write_text("[" * 5000)
    (tmp_path / "tokenizer_config.json").write_text('{"added_tokens_decoder": 3}')
    assert found(tmp_path, trained(), None) == []


def texts(folder: Path, names: Sequence[str]) -> None:
    rng = np.random.default_rng(3)
    (folder / "notes.csv").write_text("kind,text\n" + "".join(
        f"{i % 3},{' '.join(rng.choice(names, 8))}\n" for i in range(400)))


def test_the_texts_beside_it_show_which_name_was_lost(tmp_path: Path) -> None:
    names = [*SPECIAL, *sorted(words()[4:])]
    folder = tmp_path / "net"
    texts(tmp_path, names[4:])
    (one,) = found(folder, trained(), [n for i, n in enumerate(names) if i != 120])
    assert f"{names[120]!r}" in one.statement
    assert "line 121" in one.statement
    texts(tmp_path, [*names[4:], "strange", "other"])
    (two,) = found(folder, trained(), [n for i, n in enumerate(names) if i != 120])
    assert "strange" not in two.statement
    (tmp_path / "notes.csv").write_bytes(b"\xff\x00 \xff\n" * 99)
    assert len(found(folder, trained(), [n for i, n in enumerate(names) if i != 120])) == 1
