"""The context package that comes in and the result JSON that goes out."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from pydantic import ValidationError
from scripted import hypotheses

from traindx.context import ContextPackage, DiagnosisResult, RankedHypothesis


def test_a_context_package_is_read_as_it_is_documented():
    package = ContextPackage.model_validate({
        "task": "diagnose", "artifacts": {
            "training_logs": "logs/train.log", "loss_curves": ["a.csv", "b.csv"], "model_code": ["model.py"],
            "error_messages": "RuntimeError: CUDA error\n  at ...", "config": {"lr": 0.1, "layers": [1, 2]}},
        "symptoms": ["loss diverges", "at epoch 7"],
        "constraints": {"max_analysis_time": "5 minutes", "output_format": "structured_diagnosis"}})
    assert package.artifacts.training_logs == ("logs/train.log",)
    assert package.artifacts.config == ('{"layers": [1, 2], "lr": 0.1}',)
    assert package.constraints.max_analysis_time == 300
    assert package.artifacts.missing == ()


@pytest.mark.parametrize(("given", "seconds"), [(300, 300), ("300", 300), ("90s", 90), ("2 min", 120), ("1 hour", 3600),
                                                ("5 minutes", 300), ("1.5h", 5400), (None, None)])
def test_durations(given: object, seconds: float | None):
    package = ContextPackage.model_validate({"constraints": {"max_analysis_time": given}})
    assert package.constraints.max_analysis_time == seconds


@pytest.mark.parametrize("given", ["soon", "-5", -5, 0, "5 parsecs", [], {}])
def test_a_duration_that_is_none_is_refused(given: object):
    with pytest.raises(ValidationError):
        ContextPackage.model_validate({"constraints": {"max_analysis_time": given}})


def test_missing_artifacts_are_named_and_an_unknown_field_is_an_error():
    package = ContextPackage.model_validate({"artifacts": {"training_logs": None, "config": {}, "model_code": "m.py"}})
    assert package.artifacts.missing == ("training_logs", "loss_curves", "error_messages", "config")
    with pytest.raises(ValidationError, match="logs"):
        ContextPackage.model_validate({"artifacts": {"logs": "x"}})


def test_the_result_has_exactly_the_documented_keys():
    result = DiagnosisResult(status="needs_more_data", hypotheses=(RankedHypothesis.of(hypotheses()[0]),)).to_json()
    assert list(result) == ["status", "root_causes", "hypotheses", "findings", "quick_fixes", "next_checks",
                            "analysis_artifacts"]
    assert list(result["hypotheses"][0]) == ["issue", "mechanism", "location", "confidence", "confirm", "rule_out",
                                             "for",
                                             "against"]


def test_empty_entries_read_nothing_and_a_text_is_shown_without_our_folder(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from traindx import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("step 0 loss nan\n")
    package = tmp_path / "package.json"
    package.write_text(json.dumps({"artifacts": {"training_logs": "", "model_code": [""], "error_messages":
                                                 "RuntimeError: CUDA out of memory"}}))
    assert cli.run(["diagnose", "--context", "package.json", "--json"]) == 3
    told = capsys.readouterr().out
    assert "L508" in told
    assert "log.txt" not in told
    assert tempfile.gettempdir() + "/tmp" not in told
    assert "training_logs" in json.loads(told)["analysis_artifacts"]["missing_artifacts"]
    package.write_text(json.dumps({"artifacts": {"training_logs": " ", "config": None}}))
    assert cli.run(["diagnose", "--context", "package.json", "--json"]) == 2
    assert "nothing that package.json names could be found" in capsys.readouterr().err
