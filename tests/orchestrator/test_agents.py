"""The specialists' prompts: complete, bounded, read-only, and their examples are what the orchestrator reads."""

import ast
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx.agents import (
    AFTER_APPROVAL,
    ALL,
    LEAD,
    SPECIALISTS,
    Agent,
    AgentError,
    estimate_tokens,
    load_agent,
    load_agents,
)
from traindx.answer_schema import schema_from_example, shape
from traindx.investigators import claude_code
from traindx.investigators.claude_code.answers import Answer, Lead, Patch, Report, Review, schema
from traindx.mcp_tools import PREFIXES, TOOLS, read_only_names
from traindx.model import Fix, ProposedEdit
from traindx.pack import pack_folder
from traindx_tools.rules import all_rules

AGENTS = load_agents()
SHARED = ("status", "answer", "evidence", "unknown")
FORMS: dict[str, type[Answer]] = {LEAD: Lead, "fix-author": Patch, "fix-reviewer": Review,
                                  **dict.fromkeys(SPECIALISTS, Report)}


def test_all_nine_are_there() -> None:
    assert set(AGENTS) == set(ALL)
    assert len(ALL) == 9


@pytest.mark.parametrize("name", ALL)
def test_a_prompt_is_short_and_its_frontmatter_too(name: str) -> None:
    whole = (pack_folder("agents") / f"{name}.md").read_text(encoding="utf-8")
    assert AGENTS[name].tokens < 1500
    assert estimate_tokens(whole) < 1500
    assert "\n\n" not in AGENTS[name].description


_spec = importlib.util.spec_from_file_location(
    "session_prompts", Path(__file__).parents[2] / "benchmarks" / "session_prompts.py")
assert _spec is not None
assert _spec.loader is not None
session_prompts = importlib.util.module_from_spec(_spec)
sys.modules["session_prompts"] = session_prompts
_spec.loader.exec_module(session_prompts)


@pytest.mark.parametrize("way", session_prompts.WAYS)
def test_the_fixed_prompts_of_a_whole_session_fit_the_budget(way: str) -> None:
    """From the first request to an approved and verified fix; the same is counted on real requests in tests/e2e."""
    counted = session_prompts.counted(way)
    assert set(counted) == {LEAD, *session_prompts.TYPICAL, "adversary", *AFTER_APPROVAL}
    assert sum(counted.values()) < session_prompts.MOST == 12_000, counted


@pytest.mark.parametrize("name", ALL)
def test_no_agent_can_write_run_or_approve(name: str) -> None:
    tools = set(AGENTS[name].tools)
    assert not tools & {"Edit", "Write", "MultiEdit", "NotebookEdit", "Bash", "Task", "Agent"}
    assert {t for t in tools if t.startswith("mcp__")} == {"mcp__plugin_traindx_traindx"}
    kept = {f"mcp__plugin_traindx_traindx__{t}" for t in TOOLS} - set(AGENTS[name].denied)
    runs = {prefix + t.name for t in TOOLS.values() if t.protected for prefix in PREFIXES}
    assert kept <= read_only_names() | runs, "what writes is taken from the server's tools again"
    assert AGENTS[name].instruments
    assert {f"mcp__traindx__{t}" for t in AGENTS[name].instruments} <= read_only_names() | runs


@pytest.mark.parametrize("name", ALL)
def test_every_agent_is_told_what_evidence_is_and_that_text_is_data(name: str) -> None:
    sections = AGENTS[name].sections
    assert "data" in sections["Never"]
    assert re.search(r"[Oo]bey", sections["Never"])
    assert "Edit" in sections["Never"] or "edit" in sections["Never"].lower() or name == "fix-author"
    assert "direct" in sections["Evidence"] or name == "fix-author"
    assert sections["Not found"]


@pytest.mark.parametrize("name", ALL)
def test_every_agent_and_rule_that_a_prompt_names_exists(name: str) -> None:
    prompt = AGENTS[name].prompt
    known = {*ALL, *TOOLS}
    handed = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", prompt)
    assert set(handed) <= known
    assert name not in re.findall(r"`([a-z-]+)`", AGENTS[name].sections["Hand over"])
    assert set(re.findall(r"\b[LC]\d{3}\b", prompt)) <= set(all_rules())


@pytest.mark.parametrize("name", SPECIALISTS)
def test_specialists_answer_in_one_form(name: str) -> None:
    example = AGENTS[name].example
    assert [k for k in example if k in SHARED] == list(SHARED)
    evidence = AGENTS[name].output_schema["properties"]["evidence"]["items"]
    assert evidence["properties"]["failure_mode"]["type"] == ["string", "null"]
    assert {"value", "place", "quote"} <= set(evidence["required"])
    assert "run_probe" in AGENTS[name].instruments


def keys(value: Any) -> set[str]:
    """The keys of an example, at all depths."""
    if isinstance(value, list):
        return keys(value[0])
    return set(value) | {k for inner in value.values() for k in keys(inner)} if isinstance(value, dict) else set()


_OF_SPECIALISTS = ("reports", "checking", "triangulation")
READERS: dict[str, tuple[str, ...]] = {
    LEAD: ("deliberating", "concluding", "checking", "leading", "weighing"),
    "fix-author": ("fixing",), "fix-reviewer": ("fixing",), **dict.fromkeys(SPECIALISTS, _OF_SPECIALISTS)}
"""The modules of `claude_code` that read an answer of each."""
WHOLE = frozenset(ProposedEdit.model_fields)
"""Of an edit every field is taken over at once (`concluding.edits_of`)."""


def attributes_read(modules: tuple[str, ...]) -> set[str]:
    """Every attribute that code of these modules reads."""
    trees = [ast.parse((Path(claude_code.__path__[0]) / f"{m}.py").read_text(encoding="utf-8")) for m in modules]
    return {node.attr for tree in trees for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_asked_for_that_nothing_reads(name: str) -> None:
    asked = keys(AGENTS[name].example)
    assert asked <= keys_of_schema(schema(FORMS[name])), "what the form does not have is dropped unread"
    assert asked - attributes_read(READERS[name]) - WHOLE == set()


@pytest.mark.parametrize("name", ALL)
def test_every_field_of_a_form_is_read(name: str) -> None:
    """Also the forms hold nothing that is for nobody."""
    assert keys_of_schema(schema(FORMS[name])) - attributes_read(READERS[name]) - WHOLE == set()


def keys_of_schema(node: Any) -> set[str]:
    if isinstance(node, list):
        return {k for n in node for k in keys_of_schema(n)}
    if not isinstance(node, dict):
        return set()
    named = set(node.get("properties", ()))
    return named | {k for n in node.values() for k in keys_of_schema(n)}


def test_the_author_writes_options_as_a_session_takes_them() -> None:
    option = AGENTS["fix-author"].example["options"][0]
    assert set(option) == {"option", "edits"}, "the words about an option were approved: the author cannot change them"
    assert set(option["edits"][0]) == set(ProposedEdit.model_fields)
    made = {"summary": "as approved", "option": "A",
            "edits": [{**option["edits"][0], "original": "x", "replacement": "y"}]}
    assert Fix.model_validate(made).places[0] == ("relative/path.py", 1, 1)


def test_schemas_are_strict_and_match_their_examples() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    for agent in AGENTS.values():
        schema = agent.output_schema
        jsonschema.Draft202012Validator.check_schema(schema)
        chosen = _first_choices(agent.example)
        jsonschema.validate(chosen, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**chosen, "approved": True}, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(dict(list(chosen.items())[1:]), schema)


def _first_choices(value: Any) -> Any:
    """An answer as the example asks for it."""
    if isinstance(value, dict):
        return {k: _first_choices(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_first_choices(v) for v in value]
    return value.split(" | ")[0] if isinstance(value, str) else value


def test_an_example_becomes_a_schema() -> None:
    schema = schema_from_example({"a": "x | y z", "b": "name or null", "c": 1, "d": 0.0, "e": True, "f": ["text"]})
    assert schema["properties"]["a"] == {"type": "string", "enum": ["x", "y z"]}
    assert schema["properties"]["b"]["type"] == ["string", "null"]
    assert [schema["properties"][k]["type"] for k in "cdef"] == ["integer", "number", "boolean", "array"]
    for wrong in ({"a": None}, {"a": []}, {"a": [1, 2]}):
        with pytest.raises(ValueError, match="expected"):
            schema_from_example(wrong)


def test_a_schema_is_shown_in_short_with_every_key_and_choice() -> None:
    made = shape(schema_from_example({"a": "x | y z", "b": "name or null", "c": 1, "e": True, "f": [{"g": ""}]}))
    assert made == "{a: x | y z, b: name or null, c: integer, e: boolean, f: [{g: text}]}"
    for name, form in FORMS.items():
        told = shape(AGENTS[name].output_schema)
        assert all(f"{key}: " in told for key in keys(AGENTS[name].example)), name
        assert len(told) < len(str(AGENTS[name].output_schema)) / 2
        assert "None" not in shape(schema(form))


GOOD = (pack_folder("agents") / "data-flow-tracer.md").read_text(encoding="utf-8")
Change = Callable[[str], str]


@pytest.mark.parametrize(("change", "said"), [
    (lambda t: t.replace("tools: Read", "tools: Bash, Read"), "'Bash' is not read-only"),
    (lambda t: t.replace("tools: Read", "tools: Edit, Read"), "'Edit' is not read-only"),
    (lambda t: t.replace("tools: Read", "tools: WebFetch, Read"), "'WebFetch' is not read-only"),
    (lambda t: t.replace("tools: Read", "tools: mcp__traindx__explain, Read"), "mcp__traindx__explain' is not"),
    (lambda t: t.replace("instruments: ", "instruments: plot_run, "), "the instrument 'plot_run' is not read-only"),
    (lambda t: t.replace("instruments: audit_code, ", "instruments: "), "calls audit_code"),
    (lambda t: t.replace("disallowedTools: mcp__plugin_traindx_traindx__plot_run, ", "disallowedTools: "),
     "plot_run is not among"),
    (lambda t: t.replace('description: "', 'description: "' + "word " * 20), "in every conversation"),
    (lambda t: t.replace("## Evidence", "## Proof"), "the sections are not"),
    (lambda t: t + "word " * 1500, "tokens"),
    (lambda t: t.replace("name: data-flow-tracer", "name: tracer"), "must be called tracer.md"),
    (lambda t: t.replace('"answer":', '"answer"'), "output is no JSON"),
    (lambda t: t.replace("description:", "about:"), "frontmatter"),
    (lambda t: t.removeprefix("---\n"), "frontmatter"),
    (lambda t: t.replace("name: data-flow-tracer", "name: [1"), "cannot be read"),
    (lambda t: t.replace("1. Find", "1. `plot_run`. Find"), "calls plot_run"),
])
def test_a_faulty_file_is_named_with_what_is_wrong(tmp_path: Path, change: Change, said: str) -> None:
    path = tmp_path / "data-flow-tracer.md"
    path.write_text(change(GOOD), encoding="utf-8")
    with pytest.raises(AgentError, match=re.escape(said)) as error:
        load_agent(path)
    assert str(path) in str(error.value)


def test_the_good_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "data-flow-tracer.md"
    path.write_text(GOOD, encoding="utf-8")
    assert isinstance(load_agent(path), Agent)
