"""Lists of the same names in another order, lists that are the same written otherwise, and lists that are no index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.name_lists import name_lists_of
from traindx_tools.on_data.rules import d161_order_of_names

Seen = Callable[[ModuleType, Path], list[Finding]]
NAMES = ["cat", "dog", "bird", "tall horse", "frog", "ship"]
SORTED = sorted(NAMES)


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def as_lines(folder: Path, names: list[str]) -> None:
    (folder / "classes.txt").write_text("\n".join(names) + "\n")


def as_numbered_lines(folder: Path, names: list[str]) -> None:
    (folder / "labels.txt").write_text("".join(f"{i} {n}\n" for i, n in enumerate(names)))


def as_list(folder: Path, names: list[str]) -> None:
    (folder / "meta.json").write_text(json.dumps({"data": {"classes": names}}))


def as_map(folder: Path, names: list[str]) -> None:
    (folder / "map.json").write_text(json.dumps({n: names.index(n) for n in SORTED}))


def as_id2label(folder: Path, names: list[str]) -> None:
    (folder / "config.json").write_text(json.dumps({"id2label": {str(i): n for i, n in enumerate(names)}}))


def as_categories(folder: Path, names: list[str]) -> None:
    said = {"categories": [{"id": i + 1, "name": n, "supercategory": "thing"} for i, n in enumerate(names)]}
    (folder / "annotations.json").write_text(json.dumps(said))


def as_yaml(folder: Path, names: list[str]) -> None:
    (folder / "data.yaml").write_text("names:\n" + "".join(f"  {i}: {n}\n" for i, n in enumerate(names)))


def as_metadata(folder: Path, names: list[str]) -> None:
    head = json.dumps({"__metadata__": {"format": "pt", "classes": json.dumps(names)},
                       "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(4))


def as_array(folder: Path, names: list[str]) -> None:
    np.save(folder / "label_names.npy", np.array(names))


FORMS = [as_lines, as_numbered_lines, as_list, as_map, as_id2label, as_categories, as_yaml, as_metadata, as_array]


@pytest.mark.parametrize("form", FORMS[1:])
def test_another_order(form: Callable[[Path, list[str]], None], tmp_path: Path, seen_by: Seen) -> None:
    as_lines(tmp_path, SORTED)
    form(tmp_path, NAMES)
    (finding,) = alarms(seen_by(d161_order_of_names, tmp_path))
    assert (finding.measured["names"], finding.measured["moved"]) == (6, 6)
    weights = form in (as_metadata, as_id2label)
    assert finding.measured["kind"] == ("weights" if weights else "files")
    assert "'bird'" in finding.statement


def test_the_same_list_in_every_form(tmp_path: Path, seen_by: Seen) -> None:
    for form in FORMS:
        form(tmp_path, NAMES)
    assert len(name_lists_of((p, str(p)) for p in tmp_path.iterdir())) == len(FORMS)
    assert not seen_by(d161_order_of_names, tmp_path)


@pytest.mark.parametrize(("name", "said"), [
    ("report.json", {"worst_classes": NAMES}),
    ("feature_importance.json", NAMES),
    ("results.txt", NAMES),
    ("ranking.json", {n: i + 1 for i, n in enumerate(NAMES)}),
])
def test_a_list_that_is_no_index_is_a_remark(name: str, said: object, tmp_path: Path, seen_by: Seen) -> None:
    as_lines(tmp_path, SORTED)
    (tmp_path / name).write_text("\n".join(NAMES) if name.endswith(".txt") else json.dumps(said))
    assert [f.severity for f in seen_by(d161_order_of_names, tmp_path)] == [Severity.INFO]


@pytest.mark.parametrize(("name", "said"), [
    ("counts.json", {n: 120 - 7 * i for i, n in enumerate(NAMES)}),
    ("other_classes.json", [*NAMES[:-1], "lorry"]),
    ("two.json", NAMES[:2]),
    ("README.md", NAMES),
    ("classes_scores.json", {n: 0.9 - 0.1 * i for i, n in enumerate(NAMES)}),
])
def test_no_list_of_the_same_names(name: str, said: object, tmp_path: Path, seen_by: Seen) -> None:
    as_lines(tmp_path, SORTED)
    (tmp_path / name).write_text("\n".join(NAMES) if name.endswith(".md") else json.dumps(said))
    assert not seen_by(d161_order_of_names, tmp_path)


def test_lists_of_files_are_no_index(tmp_path: Path, seen_by: Seen) -> None:
    files = [f"images/{k:03d}.jpg" for k in range(40)]
    for name, seed in (("train_names.txt", 0), ("epoch_names.txt", 1)):
        (tmp_path / name).write_text("\n".join(np.random.default_rng(seed).permutation(files)))
    assert not seen_by(d161_order_of_names, tmp_path)


def test_columns_in_another_order_are_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(3):
        head = ["speed", "height", "weight"] if k < 2 else ["height", "speed", "weight"]
        (tmp_path / f"part_{k}.csv").write_text("\n".join([",".join(head), *(f"{i},{i + k},3" for i in range(20))]))
    (finding,) = seen_by(d161_order_of_names, tmp_path)
    assert (finding.severity, finding.measured["kind"]) == (Severity.INFO, "columns")


def test_broken_files_say_nothing(tmp_path: Path) -> None:
    as_lines(tmp_path, SORTED)
    (tmp_path / "classes.json").write_text('["cat", "dog"')
    (tmp_path / "names.txt").write_bytes(b"\xff\xfe\0cat")
    (tmp_path / "deep.json").write_text("[" * 3000 + "]" * 3000)
    (tmp_path / "a.safetensors").write_bytes((10**12).to_bytes(8, "little"))
    (tmp_path / "b.safetensors").write_bytes((20).to_bytes(8, "little") + b'{"__metadata__": ["c')
    (tmp_path / "label_names.npy").write_bytes(b"\x93NUMPY\x01\0")
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule == "D161"]


def beside_weights(folder: Path, own: list[str], used: list[str], setting: dict[str, str]) -> None:
    (folder / "encoder").mkdir()
    (folder / "encoder" / "weights.pt").write_bytes(b"")
    (folder / "encoder" / "vocab.txt").write_text("\n".join(own))
    (folder / "vocab.txt").write_text("\n".join(used))
    (folder / "config.json").write_text(json.dumps({"model": setting}))


def test_the_settings_name_another_list_than_that_of_the_weights(tmp_path: Path, seen_by: Seen) -> None:
    beside_weights(tmp_path, NAMES, SORTED, {"weights": "encoder/weights.pt", "vocab": "vocab.txt"})
    (found,) = seen_by(d161_order_of_names, tmp_path)
    assert (found.severity, found.bearing, found.measured["kind"]) == (Severity.HIGH, Bearing.CAUSE, "taken")
    assert "encoder/vocab.txt lies with weights, and the settings name vocab.txt" in found.statement


@pytest.mark.parametrize("setting", [{"vocab": "encoder/vocab.txt"}, {"weights": "encoder/weights.pt"},
                                     {"vocab": "encoder/vocab.txt", "classes": "vocab.txt"}, {"vocab": "../other.txt"}])
def test_settings_that_name_the_list_of_the_weights_or_none(setting: dict[str, str], tmp_path: Path, seen_by: Seen
                                                           ) -> None:
    beside_weights(tmp_path, NAMES, SORTED, setting)
    (found,) = seen_by(d161_order_of_names, tmp_path)
    assert (found.bearing, found.measured["kind"]) == (Bearing.SIGN, "weights")


def test_one_order_beside_weights_and_elsewhere(tmp_path: Path, seen_by: Seen) -> None:
    beside_weights(tmp_path, NAMES, NAMES, {"vocab": "vocab.txt"})
    assert not seen_by(d161_order_of_names, tmp_path)


def test_both_lists_lie_with_weights(tmp_path: Path, seen_by: Seen) -> None:
    beside_weights(tmp_path, NAMES, SORTED, {"vocab": "vocab.txt"})
    (tmp_path / "head.pt").write_bytes(b"")
    (found,) = seen_by(d161_order_of_names, tmp_path)
    assert found.measured["kind"] == "files"
