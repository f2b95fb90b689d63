"""D176: tables of the running model beside files that name their rows, filled by place or by name."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_file
from traindx_tools.on_data.examination import readable
from traindx_tools.on_data.numbered_rows import named_otherwise
from traindx_tools.on_variables import numbered, visiting
from traindx_tools.on_variables.numbered import Numbered, from_record, numbering_of

WORDS = tuple(f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120))
SHUFFLED = tuple(random.Random(1).sample(WORDS, len(WORDS)))
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 8)).round(4)


def held(names: Sequence[str], table: np.ndarray[Any, Any], shift: int = 0, called: str = "vocab") -> Numbered:
    """As `take` keeps a table and the numbering that gives these names the numbers from `shift` on."""
    return Numbered("model.emb.weight", called, "train.py", len(table), tuple(range(shift, shift + len(names))),
                    tuple(names), tuple(map(tuple, table[shift:, :6].tolist())))


def by_place(shift: int = 0) -> np.ndarray[Any, Any]:
    return np.concatenate([np.zeros((shift, VECTORS.shape[1])), VECTORS])


def by_name() -> np.ndarray[Any, Any]:
    return VECTORS[[WORDS.index(w) for w in SHUFFLED]]


def write(folder: Path, form: str) -> Path:
    """The vectors with their names, as `form` writes them; the file that was written last."""
    rows = [f"{w} " + " ".join(map(str, v)) for w, v in zip(WORDS, VECTORS.tolist(), strict=True)]
    if form in ("txt", "vec"):
        path = folder / f"vectors.{form}"
        path.write_text("\n".join([f"{len(rows)} 8"] * (form == "vec") + rows) + "\n")
    elif form == "npz":
        path = folder / "vectors.npz"
        np.savez(path, words=np.array(WORDS), vectors=VECTORS.astype(np.float32))
    elif form == "csv":
        path = folder / "items.csv"
        path.write_text("item," + ",".join(f"f{i}" for i in range(8)) + "\n" + "\n".join(
            r.replace(" ", ",") for r in rows) + "\n")
    else:
        path = folder / "vectors.npy"
        np.save(path, VECTORS)
        (folder / "words.json").write_text(json.dumps(WORDS))
    return path


def judged(folder: Path, seen: Sequence[Numbered]) -> list[Finding]:
    files = sorted(folder.iterdir())
    return list(named_otherwise(seen, *readable(files), files))


@pytest.mark.parametrize("form", ["txt", "vec", "npz", "csv", "npy"])
def test_a_table_filled_by_place_under_other_names_is_told(form: str, tmp_path: Path) -> None:
    path = write(tmp_path, form)
    (found,) = judged(tmp_path, [held(SHUFFLED, by_place())])
    assert found.rule == "D176"
    assert found.where.file == str(path)
    row = found.measured["row"]
    assert (WORDS[row], SHUFFLED[row]) == (found.measured["held"], found.measured["given"])  # type: ignore[index]


@pytest.mark.parametrize("form", ["txt", "vec", "npz", "csv", "npy"])
@pytest.mark.parametrize(("names", "table"), [(SHUFFLED, by_name()), (WORDS, by_place())])
def test_a_table_filled_by_name_is_not(form: str, names: Sequence[str], table: np.ndarray[Any, Any],
                                       tmp_path: Path) -> None:
    write(tmp_path, form)
    assert judged(tmp_path, [held(names, table)]) == []


def test_rows_before_those_of_the_file_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "txt")
    assert judged(tmp_path, [held(WORDS, by_place(2), 2)]) == []
    (found,) = judged(tmp_path, [held(SHUFFLED, by_place(2), 2)])
    assert found.measured["shift"] == 2
    assert "begins with 2 rows of its own" in found.statement


def test_a_table_that_was_standardised_or_trained_a_little_is_the_files(tmp_path: Path) -> None:
    write(tmp_path, "npz")
    changed = VECTORS * 3.0 - 1.0 + np.random.default_rng(1).normal(size=VECTORS.shape) * 0.02
    assert judged(tmp_path, [held(SHUFFLED, changed)])


def test_one_numbering_that_agrees_with_the_file_is_enough(tmp_path: Path) -> None:
    write(tmp_path, "txt")
    assert judged(tmp_path, [held(SHUFFLED, by_place(), called="ranks"), held(WORDS, by_place())]) == []


def test_other_numbers_and_other_names_say_nothing(tmp_path: Path) -> None:
    write(tmp_path, "txt")
    noise = np.random.default_rng(2).normal(size=VECTORS.shape)
    strangers = tuple(f"x{i}" for i in range(len(WORDS)))
    assert judged(tmp_path, [held(SHUFFLED, noise), held(strangers, by_place())]) == []


def test_texts_that_are_no_vectors_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the loss is nan\nat step 3 it was 2.0\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "torn.txt").write_text("wa 0.1 0.2 0.3\nwb 0.1 x 0.3\nwc 0.1 0.2 0.3\n")
    (tmp_path / "binary.vec").write_bytes(bytes(range(256)) * 20)
    assert judged(tmp_path, [held(SHUFFLED, by_place())]) == []


def test_a_torn_line_among_vectors_hides_nothing(tmp_path: Path) -> None:
    lines = write(tmp_path, "txt").read_text().splitlines()
    lines[60] = lines[60].rpartition(" ")[0]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    assert judged(tmp_path, [held(SHUFFLED, by_place())])


@pytest.mark.parametrize(("value", "first"), [
    ({w: i for i, w in enumerate(WORDS)}, "waa"), ({w: i + 1 for i, w in enumerate(WORDS)}, "waa"),
    (dict(enumerate(WORDS)), "waa"), (list(WORDS), "waa"), (np.array(WORDS), "waa"),
    ({n: i for i, n in enumerate(range(1000, 1040))}, "1000")])
def test_numberings(value: Any, first: str) -> None:
    found = numbering_of(value)
    assert found is not None
    assert found[min(found)] == first


@pytest.mark.parametrize("value", [
    {w: 3 * i for i, w in enumerate(WORDS)}, dict.fromkeys(WORDS, 0), {i: i for i in range(50)}, list(WORDS[:5]),
    [*WORDS, WORDS[0]], [1, 2, 3] * 9, {}, [], np.zeros(40), {w: float(i) for i, w in enumerate(WORDS)},
    dict.fromkeys(WORDS, True), "words", None])
def test_what_is_no_numbering(value: Any) -> None:
    assert numbering_of(value) is None


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables of a program that the walk begins at."""
    variables: dict[str, Any] = {}
    monkeypatch.setattr(visiting, "roots", lambda: (("train.py", "", n, v) for n, v in variables.items()))
    return variables


def test_a_module_s_table_is_kept_with_the_names_of_its_rows(program: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Embedding.from_pretrained(torch.tensor(VECTORS)), torch.nn.Linear(8, 2))
    program.update(model=model, vocab={w: i for i, w in enumerate(SHUFFLED)}, batch=torch.zeros(120, 8))
    (kept,) = numbered.take()
    assert (kept.numbering, kept.length, kept.names[0]) == ("vocab", 120, SHUFFLED[0])
    assert kept.table.startswith("model.")
    assert np.allclose(kept.values, VECTORS[list(kept.rows)][:, [0, 1, 2, 4, 5, 7]])


def test_a_table_with_values_that_are_not_finite_is_left_out(program: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.tensor(VECTORS)
    weight[3] = float("nan")
    program.update(model=torch.nn.Sequential(torch.nn.Embedding.from_pretrained(weight)), words=list(WORDS))
    assert numbered.take() == []


@pytest.mark.slow
def test_parameters_of_jax_are_kept_and_a_donated_array_is_left_out(program: dict[str, Any]) -> None:
    jnp = pytest.importorskip("jax.numpy")
    gone = jnp.asarray(VECTORS) + 0
    gone.delete()
    key = pytest.importorskip("jax").random.key(0)
    program.update(params={"emb": {"table": jnp.asarray(VECTORS, jnp.bfloat16)}}, lost=gone, words=list(SHUFFLED),
                   key=key, keys=[key, key])
    (kept,) = numbered.take()
    assert kept.table == "params['emb']['table']"


def test_a_record_gives_back_what_was_written(tmp_path: Path) -> None:
    kept = held(SHUFFLED, by_place())
    assert from_record(json.loads(json.dumps(kept.as_record()))) == kept
    start = {"traindx": "live", "rank": 0, "mode": "watch", "cwd": str(tmp_path)}
    lines = [start, {"kind": "numbered", "tables": [kept.as_record(), {"rows": "x"}, 3]}]
    (tmp_path / "rank00000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = read_file(tmp_path / "rank00000.jsonl")
    assert read is not None
    assert read.numbered == (kept,)


@pytest.mark.parametrize("said", [None, [], {}, {"rows": [1]}, {**held(WORDS, by_place()).as_record(), "names": []},
                                  {**held(WORDS, by_place()).as_record(), "values": [[1], [1, 2]]}])
def test_damaged_records_are_none(said: object) -> None:
    assert from_record(said) is None
