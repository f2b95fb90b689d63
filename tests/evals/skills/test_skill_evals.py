"""The harness of the skill evaluations, on scripted models: a good and a bad conversation are told apart.

Nothing here measures a model. That takes a key: `make eval-skills MODEL=...`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
for folder in (HERE, ROOT / "tests" / "e2e" / "claude" / "support"):
    sys.path.insert(0, str(folder))

import eval_skills  # noqa: E402
from scripted_api import Fail, Text, Use, scripted  # noqa: E402
from skill_asking import dollars  # noqa: E402
from skill_cases import CaseFault, load_case, load_cases, load_triggers, skills  # noqa: E402
from skill_grading import Trace, failed_rules, grade, trace_of, triggered  # noqa: E402
from skill_hard import Attempt, HardScore, hard_report, load_hard  # noqa: E402

CASES = load_cases()
TRIGGERS = load_triggers()
NAMED = ("urgent-production-assert", "misleading-dataloader-error", "three-concurrent-errors", "wrong-expert-diagnosis",
         "one-percent-illegal-access", "too-complex-model", "everything-at-once")
each = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def test_the_seven_named_scenarios_and_at_least_eight_more() -> None:
    names = {c.name for c in CASES}
    assert set(NAMED) <= names
    assert len(names) >= 15
    assert {c.name for c in CASES if "named" in c.tags} == set(NAMED)


@each
def test_rules_come_first_and_a_judge_second(case: Any) -> None:
    assert len([r for r in case.rules if r["type"] == "regex"]) >= 2
    assert any(r["type"] == "tool_used" and r["max"] <= 1 for r in case.rules)
    assert len(case.criteria) == 1
    assert case.folder.name == case.name


@each
def test_the_rules_tell_a_good_and_a_bad_conversation_apart(case: Any) -> None:
    assert failed_rules(case, trace_of(case.transcript("good"))) == ()
    assert failed_rules(case, trace_of(case.transcript("good_too"))) == (), "the same in other words"
    assert failed_rules(case, trace_of(case.transcript("bad")))


@each
def test_bad_words_alone_fail_and_a_good_answer_with_a_rash_edit_fails(case: Any) -> None:
    talk = [s for s in case.transcript("bad") if "say" in s]
    assert failed_rules(case, trace_of(talk))
    rash = {"use": "Edit", "input": {"file_path": "train.py", "old_string": "a", "new_string": "b"}}
    assert failed_rules(case, trace_of([rash, rash, *case.transcript("good")]))


@each
def test_an_empty_and_an_evasive_answer_fail(case: Any) -> None:
    assert failed_rules(case, Trace())
    assert failed_rules(case, trace_of([{"say": "Sure, happy to help! What would you like me to do?"}]))


def test_a_diagnostic_below_scratch_is_no_rash_write() -> None:
    case = next(c for c in CASES if c.name == "too-complex-model")
    probe = {"use": "Write", "input": {"file_path": "scratch/debug/probe.py", "content": "x"}}
    assert failed_rules(case, trace_of([probe, *case.transcript("good")])) == ()


def test_the_judge_is_asked_only_where_the_rules_hold_and_can_fail_it() -> None:
    asked = []

    def judge(criteria: str, conversation: str) -> tuple[bool, str]:
        asked.append(criteria)
        return False, "too long"

    case = CASES[0]
    assert grade(case, trace_of(case.transcript("bad")), judge).failed != ("judge",)
    assert asked == []
    assert grade(case, trace_of(case.transcript("good")), judge).failed == ("judge",)
    assert len(asked) == 1


def test_the_triggers_are_many_of_each_kind_and_language() -> None:
    kinds = Counter(t.kind for t in TRIGGERS)
    assert len(TRIGGERS) >= 60
    assert kinds["should"] >= 30
    assert kinds["near-miss"] >= 12
    assert kinds["should-not"] >= 12
    assert len({t.language for t in TRIGGERS if t.kind == "language"}) >= 8
    assert all(bool(t.skills) == (t.kind in ("should", "language")) for t in TRIGGERS)
    assert {s for t in TRIGGERS for s in t.skills} == set(skills())
    assert len({t.prompt for t in TRIGGERS}) == len(TRIGGERS)


@contextmanager
def model(script: Any, judge: bool = True) -> Iterator[Any]:
    """A client of a scripted model, with a judge that says this of everything."""
    anthropic = pytest.importorskip("anthropic")
    verdict = Use("verdict", {"passed": judge, "reason": "scripted"})
    with scripted({"": script, "judge": lambda body: verdict}) as api:
        yield anthropic.Anthropic(base_url=api.url, api_key="fake", max_retries=0)


def plays(kind_with: str, kind_without: str) -> Any:
    """A model that answers each scenario with its written conversation."""

    def script(body: dict[str, Any]) -> Any:
        prompt = body["messages"][0]["content"]
        case = next(c for c in CASES if c.prompt == prompt)
        steps = case.transcript(kind_with if "<skill name=" in body["system"] else kind_without)
        step = steps[min(sum(m["role"] == "assistant" for m in body["messages"]), len(steps) - 1)]
        return Use(step["use"], step["input"]) if "use" in step else Text(step["say"])

    return script


def test_a_model_that_the_skill_helps_scores_better_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    with model(plays("good", "bad")) as client:
        code = eval_skills.main(["--model", "m", "--runs", "2", "--part", "pressure", "--json", str(out), "--price",
                                 "m",
                                 "1", "5"], client)
    assert code == 0
    printed = capsys.readouterr().out
    assert "all, with                         100% +- 0%" in printed
    assert "all, without                      0% +- 0%" in printed
    assert "cost: $" in printed
    scores = json.loads(out.read_text())["scores"]
    assert {s["arm"] for s in scores} == {"with", "without"}
    assert all(len(s["passes"]) == 2 for s in scores)


def test_a_model_that_ignores_the_skill_scores_nothing() -> None:
    with model(plays("bad", "bad")) as client:
        asker = eval_skills.Asker(client, "m", "m", skills())
        assert all(s.share == 0 for s in eval_skills.pressed(asker, CASES[:3], 1))


def test_a_judge_that_disagrees_fails_what_the_rules_let_pass() -> None:
    with model(plays("good", "good"), judge=False) as client:
        asker = eval_skills.Asker(client, "m", "m", skills())
        assert [s.failed for s in eval_skills.pressed(asker, CASES[:2], 1)] == [("judge",)] * 4


def test_spread_over_runs_is_shown() -> None:
    scores = [eval_skills.Score("a", "with", (True, False, True)), eval_skills.Score("b", "with", (True, False, False))]
    assert eval_skills.by_run(scores) == [1.0, 0.0, 0.5]
    assert eval_skills.spread([1.0, 0.0, 0.5]) == "50% +- 50%"


def knows(body: dict[str, Any]) -> Any:
    """A model that calls the first skill that fits."""
    trigger = next(t for t in TRIGGERS if t.prompt == body["messages"][0]["content"])
    return Use("Skill", {"skill": f"traindx:{trigger.skills[0]}"}) if trigger.skills else Text("Here you are.")


@pytest.mark.slow
@pytest.mark.parametrize(("script", "hits"), [
    (knows, {"should", "language", "near-miss", "should-not"}),
    (lambda body: Text("Let me help."), {"near-miss", "should-not"}),
    (lambda body: Use("Skill", {"skill": "web-testing"}), {"near-miss", "should-not"}),
])
def test_triggers_are_scored_by_the_skill_that_is_called(script: Any, hits: set[str]) -> None:
    with model(script) as client:
        scores = eval_skills.called(eval_skills.Asker(client, "m", "m", skills()), TRIGGERS, 1)
    assert {s.arm for s in scores if s.share == 1} == hits
    assert {s.arm for s in scores if s.share == 0} == {t.kind for t in TRIGGERS} - hits


def test_calling_the_front_door_always_is_wrong_where_none_fits() -> None:
    always = Trace(calls=[("Skill", {"skill": "ml-debug"})])
    assert not any(triggered(t, always, list(skills())) for t in TRIGGERS if not t.skills)


def test_an_api_that_fails_is_a_failed_run_and_no_crash(capsys: pytest.CaptureFixture[str]) -> None:
    with model(lambda body: Fail(529, "overloaded_error")) as client:
        assert eval_skills.main(["--model", "m", "--runs", "1", "--only", "just-guess"], client) == 0
    assert "no answer:" in capsys.readouterr().out


def test_without_a_model_or_a_key_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    assert eval_skills.main([]) == 2
    told = capsys.readouterr().err
    assert "make eval-skills MODEL=NAME" in told
    assert "make eval-skills ARGS=--transcripts" in told
    monkeypatch.setitem(sys.modules, "anthropic", None)
    assert eval_skills.main(["--model", "m"]) == 2
    assert "your key in the environment" in capsys.readouterr().err


class _Denying(BaseHTTPRequestHandler):
    """An API that knows no key."""

    def do_POST(self) -> None:
        said = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
        self.send_response(401)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def denying() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Denying)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("key", ["", "wrong"])
def test_a_key_that_is_missing_or_wrong_ends_it_before_any_score(key: str, monkeypatch: pytest.MonkeyPatch,
                                                                 capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    if key:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with denying() as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        assert eval_skills.main(["--model", "m", "--runs", "1"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no model can be asked" in said.err
    assert "ARGS=--transcripts" in said.err


def test_costs_are_known_where_the_prices_are() -> None:
    assert dollars({"m": [1_000_000, 100_000]}, {"m": (1.0, 5.0)}) == 1.5
    assert dollars({"m": [1, 1]}, {}) is None


@pytest.mark.parametrize(("change", "said"), [
    ({"schema_version": "2.0"}, "schema_version"), ({"execution": {}}, "execution.prompt"),
    ({"graders": []}, "graders"),
    ({"graders": [{"type": "regex", "name": "x"}]}, "lacks pattern"),
    ({"graders": [{"type": "regex", "name": "x", "pattern": "("}]}, "is no pattern"),
    ({"graders": [{"type": "mood", "name": "x"}]}, "a known type"),
    ({"graders": [{"type": "llm", "name": "x", "criteria": "c"}] * 2}, "two graders are named x"),
])
def test_a_faulty_case_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    good = yaml.safe_load((CASES[0].folder / "case.yaml").read_text())
    (tmp_path / "case.yaml").write_text(yaml.safe_dump({**good, **change}))
    with pytest.raises(CaseFault, match=said):
        load_case(tmp_path / "case.yaml")


def test_the_triggers_can_be_exported_as_cases(tmp_path: Path) -> None:
    assert eval_skills.main(["--export", str(tmp_path)]) == 0
    assert {load_case(p).name for p in tmp_path.glob("*/case.yaml")} == {t.id for t in TRIGGERS}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_official_runner_takes_the_cases(tmp_path: Path) -> None:
    """`claude plugin eval` of the SDK's bundled CLI, on a scripted model that answers well."""
    sdk = pytest.importorskip("claude_agent_sdk")
    claude = Path(sdk.__file__).parent / "_bundled" / "claude"
    case = next(c for c in CASES if c.name == "just-guess")
    good = case.transcript("good")[0]["say"]

    def script(body: dict[str, Any]) -> Any:
        return Text('{"pass": true, "passed": true, "score": 1, "reasoning": "ok"}' if "criteria" in str(
            body.get("system", "")).lower() else good)

    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    with scripted({"": script}) as api:
        done = subprocess.run(
            [str(claude), "plugin", "eval", str(ROOT), "--case", case.name, "--runs", "1", "--ablation", "none",
             "--no-publish",
             "--trust-plugin", "--json", "--output-dir", str(tmp_path / "out"), "--threshold", "0"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "config"),
                 "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "fake", "NO_PROXY": "127.0.0.1",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0"})
    assert "invalid case" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    result = json.loads(done.stdout[done.stdout.index("{"):])
    assert case.name in json.dumps(result)
    assert "asks-one-specific-thing" in json.dumps(result)


HARD = load_hard()
hard = pytest.mark.parametrize("case", HARD, ids=lambda c: c.name)


def test_the_hard_kind_has_its_proof_in_data_weights_and_two_runs() -> None:
    assert {c.kind for c in HARD} == {"data", "weights", "two runs"}


@hard
def test_the_right_words_without_a_measurement_or_at_another_place_are_wrong(case: Any, tmp_path: Path) -> None:
    truth = case.build(tmp_path, 3)
    known = {"cause": "labels std random", "place": "shard-9 blocks.9.mlp std[11]", "value": "0.5"}
    assert not Attempt(known, ["0.5"]).right(truth), "another place"
    assert not Attempt({**known, "place": "blocks.3.mlp"}, []).right(truth), "nothing was run"
    assert not Attempt(None).right(truth)


def test_the_table_stands_side_by_side_and_says_that_no_model_was_measured() -> None:
    scores = [HardScore("x", "data", arm, (True, False), 3.0, 1200.0, 0.5) for arm in ("with", "without")]
    shown = hard_report(scores, with_model=False)
    assert shown.startswith("No rate was measured with a model")
    assert "No rate" not in hard_report(scores, with_model=True)
    row = shown.splitlines()[-1].split()
    assert row == ["all", "50%", "50%", "3.0", "3.0", "1,200", "1,200", "0.5", "0.5"]


def test_a_hard_case_without_a_build_or_a_transcript_is_named(tmp_path: Path) -> None:
    (tmp_path / "nobody.yaml").write_text("kind: data\nprompt: x\ntranscripts: {good: [], bad: []}\n")
    with pytest.raises(CaseFault, match=r"nobody\.yaml"):
        load_hard(tmp_path)
