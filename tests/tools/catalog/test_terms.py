"""Plain words come before terms: on each page of a mode or a rule."""

from __future__ import annotations

import re

import pytest

from traindx_tools.catalog import terms
from traindx_tools.catalog.catalog import SYMPTOMS, load_catalog
from traindx_tools.catalog.page import SEEN, mode_page
from traindx_tools.catalog.terms import MOST, load_terms, terms_in
from traindx_tools.errors import CatalogError


def test_terms_are_found_in_the_order_in_which_they_come() -> None:
    assert [t.name for t in terms_in("clip the gradients before GradScaler steps; the loss is NaN")] == [
        "clipping", "gradient", "loss scale, GradScaler", "loss", "NaN"]


@pytest.mark.parametrize("text", ["", "nothing of the field", "an information about a keyboard and a clipboard"])
def test_a_text_without_terms_has_none(text: str) -> None:
    assert terms_in(text) == ()


def test_of_many_the_everyday_ones_are_left_out() -> None:
    every = "loss batch epoch NaN logits softmax epsilon BatchNorm dropout attention mask padding"
    found = [t.name for t in terms_in(every)]
    assert len(found) == MOST
    assert not {"loss", "batch", "epoch"} & set(found)


def test_each_term_is_plain_and_once() -> None:
    found = load_terms()
    assert len({t.name for t in found}) == len(found)
    for term in found:
        assert re.search(term.words, term.name), term.name
        assert 10 < len(term.plain) < 120, term.name
        assert not term.plain.endswith(".")


def test_a_mode_page_begins_plainly() -> None:
    page = " ".join(mode_page(load_catalog()["amp.loss-scale-collapse"]).split())
    said = [page.index(part) for part in ("What you see: the loss does not fall", "What helps first: ",
                                          "`amp.loss-scale-collapse`, family", "## Words on this page",
                                          "becoming zero in float16: **loss scale, GradScaler**", "## Why this happens",
                                          "Log-odds")]
    assert said == sorted(said)


def test_every_symptom_has_plain_words() -> None:
    assert set(SEEN) == set(SYMPTOMS)


@pytest.mark.parametrize("rows", [{}, {"term": [{"name": "x"}]}, {"term": [{"name": "x", "words": "(", "plain": "y"}]}])
def test_a_damaged_table_is_said(rows: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "table", lambda path: rows)
    load_terms.cache_clear()
    with pytest.raises(CatalogError, match=r"terms\.toml"):
        load_terms()
    load_terms.cache_clear()
