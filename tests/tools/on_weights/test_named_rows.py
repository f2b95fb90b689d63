"""Rows of tokens that a chat template writes and training never saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

NAMES = ("<|user|>", "<|assistant|>", "<|end|>", "<|spare|>")
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"


def chat(home: Path, rows: str, *, template: str | None = TEMPLATE, where: str = "tokenizer.json", first: int = 1200
         ) -> Path:
    """A model whose rows from `first` on are of four added tokens: equal, near the mean, or trained."""
    rng = np.random.default_rng(2)
    made = planted.stack(4, vocab=1204)
    for name in ("wte.weight", "head.weight"):
        table = made[name]
        mean = table[:1200].mean(0)
        noise = {"equal": np.zeros((4, 32)), "mean": 1e-5 * rng.normal(size=(4, 32)), "zero": -np.tile(mean, (4, 1)),
                 "trained": table[:1200].std() * rng.normal(size=(4, 32))}[rows.partition("-")[0]]
        table[first:first + 4] = mean + noise
        if rows.endswith("-spare"):  # only the token that no template writes
            table[first:first + 3] = mean + table.std() * rng.normal(size=(3, 32))
    home.mkdir(parents=True, exist_ok=True)
    tokens: Any = [{"id": first + i, "content": n, "special": True} for i, n in enumerate(NAMES)]
    config: dict[str, Any] = {"eos_token": "<|end|>"}
    if where == "tokenizer.json":
        (home / where).write_text(json.dumps({"added_tokens": tokens, "model": {"vocab": {}}}))
    elif where == "added_tokens.json":
        (home / where).write_text(json.dumps({t["content"]: t["id"] for t in tokens}))
    else:
        config["added_tokens_decoder"] = {str(t["id"]): t for t in tokens}
    if template is not None and where == "tokenizer.json":
        (home / "chat_template.jinja").write_text(template)
    elif template is not None:
        config["chat_template"] = template
    (home / "tokenizer_config.json").write_text(json.dumps(config))
    return planted.write("safetensors", home, made, "model")


def told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W106"]


@pytest.mark.parametrize("where", ["tokenizer.json", "added_tokens.json", "tokenizer_config.json"])
@pytest.mark.parametrize(("rows", "said"), [("equal", "to the bit, the mean"), ("mean", "are the mean of"),
                                            ("zero", "zero")])
def test_rows_of_a_chat_that_were_never_trained(rows: str, said: str, where: str, tmp_path: Path) -> None:
    found = told(chat(tmp_path, rows, where=where))
    assert [f.measured["kind"] for f in found] == ["named"] * 2
    assert {f.severity for f in found} == {Severity.MEDIUM}
    assert all(said in f.statement for f in found)
    assert found[0].measured["tokens"] == ("<|assistant|>", "<|end|>")


def test_rows_in_the_middle_of_the_table(tmp_path: Path) -> None:
    assert [f.measured["kind"] for f in told(chat(tmp_path, "equal", first=700))] == ["named"] * 2


@pytest.mark.parametrize("rows", ["trained", "equal-spare", "mean-spare"])
def test_rows_that_were_trained_and_spare_ones(rows: str, tmp_path: Path) -> None:
    assert told(chat(tmp_path, rows)) == []


def test_models_that_are_no_chat_and_files_that_are_broken(tmp_path: Path) -> None:
    assert {f.severity for f in told(chat(tmp_path / "a", "equal", template=None))} == {Severity.INFO}
    path = chat(tmp_path / "b", "equal")
    (tmp_path / "b" / "tokenizer.json").write_text('{"added_tokens": [3, {"id": "x"}')
    assert {f.severity for f in told(path)} == {Severity.INFO}
    (tmp_path / "b" / "tokenizer.json").write_text('{"added_tokens": [3, {"id": 99999999, "content": null}]}')
    assert {f.severity for f in told(path)} == {Severity.INFO}
