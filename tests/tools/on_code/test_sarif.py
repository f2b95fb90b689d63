"""SARIF 2.1.0: what the standard requires of a log, checked on logs of real audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.artifact import Artifact
from traindx_tools.code_reports.report import audit_report
from traindx_tools.code_reports.sarif import document
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import explained_rules

FIXTURES = Path(__file__).parent / "fixtures"


def log_of(paths: list[Path], home: Path) -> dict[str, Any]:
    report = audit_report(paths)
    said = document(report.findings, report.suppressed, report.notes, explained_rules(), home)
    again: dict[str, Any] = json.loads(json.dumps(said, allow_nan=False))
    return again


def check_log(log: dict[str, Any]) -> None:
    """The requirements of sections 3.13 (log), 3.14 (run), 3.19 (component), 3.27 (result), 3.29 and 3.30 (places)."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = driver["rules"]
    assert len({r["id"] for r in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"].endswith(".")
        assert len(rule["help"]["text"]) > 200
        assert rule["help"]["markdown"].startswith("# ")
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert rule["name"].isidentifier()
    for base in run["originalUriBaseIds"].values():
        assert base["uri"].endswith("/")
    for result in run["results"]:
        check_result(result, run)
    fingerprints = [r["partialFingerprints"]["traindx/v1"] for r in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)


def check_result(result: dict[str, Any], run: dict[str, Any]) -> None:
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in ("error", "warning", "note")
    assert 0 <= result["rank"] <= 100
    assert result["message"]["text"]
    for place in result["locations"]:
        physical = place["physicalLocation"]
        check_artifact(physical["artifactLocation"], run)
        region = physical["region"]
        assert 1 <= region["startLine"] <= region.get("endLine", region["startLine"])
    for fix in result.get("fixes", []):
        assert fix["description"]["text"]
        for change in fix["artifactChanges"]:
            check_artifact(change["artifactLocation"], run)
            for replacement in change["replacements"]:
                gone = replacement["deletedRegion"]
                assert 1 <= gone["startLine"] <= gone["endLine"]
    for suppression in result["suppressions"]:
        assert suppression["kind"] == "inSource"
        assert suppression["justification"]


def check_artifact(artifact: dict[str, Any], run: dict[str, Any]) -> None:
    assert " " not in artifact["uri"]
    assert "\\" not in artifact["uri"]
    if "uriBaseId" in artifact:
        assert artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert not artifact["uri"].startswith(("/", "file:", ".."))
    else:
        assert artifact["uri"].startswith("file:///")


@pytest.mark.parametrize("rule", ["c101", "c102", "c103", "c107"])
def test_logs_of_faulty_scripts_are_valid(rule: str) -> None:
    faulty = sorted((FIXTURES / rule).glob("bad_*.py"))
    log = log_of(faulty, FIXTURES)
    check_log(log)
    results = log["runs"][0]["results"]
    assert rule.upper() in {r["ruleId"] for r in results}
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].split("/")[0] for r in results} == {rule}


def test_a_fix_in_the_log_does_what_the_patch_does(tmp_path: Path) -> None:
    script = tmp_path / "a b.py"
    script.write_bytes(next((FIXTURES / "c103").glob("bad_*.py")).read_bytes())
    results = log_of([script], tmp_path)["runs"][0]["results"]
    (fix,) = next(r["fixes"] for r in results if r["ruleId"] == "C103" and "fixes" in r)
    change = fix["artifactChanges"][0]
    assert change["artifactLocation"]["uri"] == "a%20b.py"
    lines = script.read_text().splitlines(keepends=True)
    for replacement in change["replacements"]:
        gone = replacement["deletedRegion"]
        lines[gone["startLine"] - 1 : gone["endLine"] - 1] = [replacement["insertedContent"]["text"]]
    script.write_text("".join(lines))
    assert len([r for r in log_of([script], tmp_path)["runs"][0]["results"] if r["ruleId"] == "C103"]) < \
        len([r for r in results if r["ruleId"] == "C103"])


def test_a_clean_project_is_a_log_without_results_and_unread_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    log = log_of([tmp_path], tmp_path)
    check_log(log)
    run = log["runs"][0]
    assert run["results"] == []
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "broken.py" in notice["message"]["text"]


def test_suppressed_findings_are_in_the_log_with_their_reason(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    text = next((FIXTURES / "c103").glob("bad_*.py")).read_text().splitlines()
    line = next(f.where.line for f in audit_report([FIXTURES / "c103"]).findings
                if f.rule == "C103" and f.where.quote and f.where.quote in "\n".join(text))
    assert line is not None
    text[line - 1] += "  # traindx: ignore[C103] a reason"
    script.write_text("\n".join(text) + "\n")
    log = log_of([script], tmp_path)
    check_log(log)
    assert [r["suppressions"] for r in log["runs"][0]["results"] if r["suppressions"]] == [
        [{"kind": "inSource", "justification": "a reason"}]]


def test_places_outside_the_home_folder_and_in_notebooks(tmp_path: Path) -> None:
    findings = [Finding("C101", "t", Severity.HIGH, Bearing.CAUSE, "s", Location(file=str(tmp_path / "x.py"), line=2),
                        "x"),
                Finding("C101", "t", Severity.LOW, Bearing.COMPANION, "s",
                        Location(file=str(tmp_path / "home" / "n.ipynb"), line=2, cell=3), "n")]
    log = document(findings, [], [Artifact("a", "python", note="n")], explained_rules(), tmp_path / "home")
    check_log(log)
    outside, notebook = (r["locations"][0] for r in log["runs"][0]["results"])
    assert "uriBaseId" not in outside["physicalLocation"]["artifactLocation"]
    assert notebook["logicalLocations"] == [{"name": "cell 3, line 2", "kind": "element"}]
