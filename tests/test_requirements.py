"""Every requirement is mapped to where it is shown, and what is named there exists; what is open is counted."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from traindx.group import COMMANDS
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.rules import all_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "tests" / "requirements.toml"
COUNTS = {"A": 15, "B": 15, "C": 10, "D": 10, "E": 15, "F": 4, "G": 13}
IDS = tuple(f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1))
FEWEST_LETTERS = 8
"""Of the words that a passage is found by: fewer would occur anywhere."""

Map = dict[str, dict[str, Any]]


@lru_cache
def text_of(path: Path) -> str:
    """The file's text with line breaks and indents as single spaces: passages are wrapped anew now and then."""
    return " ".join(path.read_text(encoding="utf-8").split())


@lru_cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))


@lru_cache
def pages() -> frozenset[str]:
    return frozenset({*all_rules(), *load_catalog()})


def command_fault(words: list[str]) -> str | None:
    if len(words) < 2 or words[1] not in COMMANDS:
        return "is no command"
    if words[1] == "explain" and (len(words) != 3 or words[2] not in pages()):
        return "explains nothing that exists"
    return None


def file_fault(name: str) -> str | None:
    path = ROOT / name
    if not path.is_file():
        return "names a file that does not exist"
    if path == MAP or ROOT not in path.resolve().parents:
        return "names a file that shows nothing"
    return None


def reference_fault(reference: str) -> str | None:
    """What is wrong with one entry of `shown_by`, or None."""
    if reference.startswith("traindx "):
        return command_fault(reference.split())
    name, mark, what = re.match(r"([^#:]*)(::|#|)(.*)", reference, re.DOTALL).groups()  # type: ignore[union-attr]
    if not mark:
        return "is neither path::test, path#words nor a traindx command"
    if (fault := file_fault(name)) is not None:
        return fault
    if mark == "::":
        known = what.startswith("test_") and what in functions_of(ROOT / name)
        return None if known else "names a test that is not defined there"
    words = " ".join(what.split())
    if len(words) < FEWEST_LETTERS:
        return f"names fewer than {FEWEST_LETTERS} letters, which occur anywhere"
    return None if words in text_of(ROOT / name) else "names words that are not in that file"


def entry_faults(entry: Mapping[str, Any]) -> list[str]:
    faults = [f"has the unknown field {key}" for key in set(entry) - {"says", "shown_by", "open"}]
    if not str(entry.get("says", "")).strip():
        faults.append("says nothing")
    shown = entry.get("shown_by", [])
    if not shown and "open" not in entry:
        faults.append("is neither shown nor open")
    if "open" in entry and not str(entry["open"]).strip():
        faults.append("is open and does not say what is missing")
    return faults + [f"{r!r} {fault}" for r in shown if (fault := reference_fault(r)) is not None]


def faults_of(requirements: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """All that is wrong with a map, one sentence each."""
    found = [f"{name} is mapped to nothing" for name in IDS if name not in requirements]
    found += [f"{name} is no requirement" for name in requirements if name not in IDS]
    return found + [f"{name}: {fault}" for name, entry in requirements.items() for fault in entry_faults(entry)]


@pytest.fixture
def requirements() -> Map:
    return deepcopy(tomllib.loads(MAP.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_every_requirement_is_shown_where_the_map_says_or_said_to_be_open(
        requirements: Map, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults_of(requirements) == []
    still_open = {name: entry["open"] for name, entry in requirements.items() if "open" in entry}
    with capsys.disabled():
        print(f"\nrequirements: {len(IDS) - len(still_open)} shown, {len(still_open)} with something open: "
              f"{', '.join(still_open)}")


def test_the_list_is_whole_and_in_order(requirements: Map) -> None:
    assert len(IDS) == 82
    assert tuple(requirements) == IDS


def shown_by(reference: str) -> Callable[[Map], object]:
    return lambda m: m["A1"].update(shown_by=[reference])


@pytest.mark.parametrize(("broken", "fault"), [
    (lambda m: m.pop("C7"), "C7 is mapped to nothing"),
    (lambda m: m.update(H1=m["A1"]), "H1 is no requirement"),
    (lambda m: m["A1"].update(says=" "), "A1: says nothing"),
    (lambda m: m.update(A1={"says": "a point"}), "A1: is neither shown nor open"),
    (lambda m: m.update(A1={"says": "a point", "shown_by": []}), "A1: is neither shown nor open"),
    (lambda m: m["A1"].update(open=""), "A1: is open and does not say what is missing"),
    (lambda m: m["A1"].update(shown=["README.md#Finds out why"]), "A1: has the unknown field shown"),
    (shown_by("tests/nowhere.py::test_x"), "a file that does not exist"),
    (shown_by("skills/ml-debug#Core rule of it"), "a file that does not exist"),
    (shown_by("tests/requirements.toml#Where each requirement is shown"), "a file that shows nothing"),
    (shown_by("tests/test_requirements.py::test_that_nobody_wrote"), "a test that is not defined there"),
    (shown_by("tests/test_requirements.py::faults_of"), "a test that is not defined there"),
    (shown_by("README.md#words that nobody has written there"), "words that are not in that file"),
    (shown_by("README.md#Finds"), "fewer than 8 letters"),
    (shown_by("README.md"), "neither path::test, path#words nor a traindx command"),
    (shown_by("traindx heal"), "is no command"),
    (shown_by("traindx explain"), "explains nothing that exists"),
    (shown_by("traindx explain L999"), "explains nothing that exists"),
])
def test_a_broken_map_is_noticed(requirements: Map, broken: Callable[[Map], object], fault: str) -> None:
    broken(requirements)
    found = faults_of(requirements)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize("reference", [
    "traindx diagnose --context", "traindx explain L204", "traindx explain lr.too-high",
    "tests/test_requirements.py::test_a_broken_map_is_noticed", "README.md#Finds out why\n a training run failed",
])
def test_each_form_of_reference_is_accepted(reference: str) -> None:
    assert reference_fault(reference) is None
