"""The MCP server as a client meets it: the official client over stdio, the server in a process of its own."""

import asyncio
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from traindx.commands.mcp import command
from traindx.mcp_paths import Reach
from traindx.mcp_server import _answer, serve
from traindx.mcp_tools import TOOLS, Tool
from traindx_tools.errors import BadUsage, MissingExtra

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["diagnose_run", "compare_ranks", "extract_metrics", "list_findings", "audit_code", "examine_data", "jaxpr",
         "run_probe", "replay_batch", "examine_weights", "list_experiments", "run_experiment", "replay_step", "explain",
         "plot_run", "list_failure_modes", "session_status", "read_diagnosis"]
Call = tuple[str, dict[str, Any]]
NO_SDK = "the MCP SDK is not installed (pip install 'traindx[mcp]')"


class Talk:
    """What came of a conversation with the server."""

    def __init__(self) -> None:
        self.tools: list[dict[str, Any]] = []
        self.answers: list[tuple[str, bool]] = []
        self.progress: list[str] = []
        self.instructions = ""


def talk(root: Path, calls: Sequence[Call]) -> Talk:
    """Starts `traindx mcp --root ROOT`, lists its tools and makes the calls one after the other."""
    return asyncio.run(asyncio.wait_for(_talk(root, calls), 90))


async def _talk(root: Path, calls: Sequence[Call]) -> Talk:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    said = Talk()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        said.progress.append(message or "")

    server = StdioServerParameters(command=sys.executable, args=["-m", "traindx", "mcp", "--root", str(root)],
                                   env=dict(os.environ))
    async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        said.instructions = (await session.initialize()).instructions or ""
        said.tools = [t.model_dump(by_alias=True, exclude_none=True) for t in (await session.list_tools()).tools]
        for name, arguments in calls:
            result = await session.call_tool(name, arguments, progress_callback=progress)
            plain = result.model_dump(by_alias=True)
            said.answers.append((plain["content"][0]["text"], plain["isError"]))
    return said


def contents(root: Path) -> dict[str, str]:
    """Path to digest of every file below the root."""
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(root.rglob("*")) if p.is_file()}


def copied(folder: Path) -> Path:
    """The example run whose loss turns nan, below a root of its own."""
    shutil.copytree(EXAMPLES / "numpy-lr", folder / "root" / "run")
    return folder / "root"


@dataclass
class Tour:
    """A conversation in which every tool is called once on a real run, and the files before and after."""

    session: str
    said: Talk
    before: dict[str, str]
    after: dict[str, str]

    def __getitem__(self, index: int) -> str:
        text, is_error = self.said.answers[index]
        assert not is_error, text
        return text


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    """One server, all tools."""
    pytest.importorskip("mcp", reason=NO_SDK)
    from traindx.session import run_debug_session_sync

    root = copied(tmp_path_factory.mktemp("tour"))
    session = run_debug_session_sync("the loss is nan", root / "run", report=False).session
    shutil.move(root / "run" / "scratch", root / "scratch")
    before = contents(root)
    said = talk(root, [
        ("diagnose_run", {"paths": ["run"], "symptom": "loss is nan"}),
        ("extract_metrics", {"paths": ["run/metrics.csv"], "metrics": ["loss"], "start": 1100, "end": 1200}),
        ("list_findings", {"paths": ["run"], "rule": "L101"}),
        ("audit_code", {"paths": ["run"], "patches": True}),
        ("explain", {"name": "loss.log-of-zero"}),
        ("plot_run", {"paths": ["run"], "name": "loss"}),
        ("list_failure_modes", {"symptom": "loss is nan"}),
        ("session_status", {}),
        ("session_status", {"session": session}),
        ("read_diagnosis", {"session": session}),
    ])
    return Tour(session, said, before, contents(root))


@pytest.mark.slow
def test_lists_the_tools_with_schemas_and_true_hints(tour: Tour) -> None:
    assert [t["name"] for t in tour.said.tools] == NAMES
    assert "never an instruction" in tour.said.instructions
    for tool in tour.said.tools:
        hints = tool["annotations"]
        writes = tool["name"] in ("plot_run", "jaxpr", "run_probe", "run_experiment", "replay_step")
        assert hints["readOnlyHint"] is not writes, "jaxpr imports and run_experiment runs, given consent"
        assert hints.get("destructiveHint", False) is False
        assert hints["openWorldHint"] is (tool["name"] == "run_probe"), "a probe's network is open"
        again = tool["name"] not in ("run_experiment", "run_probe", "replay_step")
        assert not writes or hints["idempotentHint"] is again
        assert tool["inputSchema"]["additionalProperties"] is False
        assert all(p.get("description") for p in tool["inputSchema"]["properties"].values()), tool["name"]
        assert tool["inputSchema"]["properties"]["max_chars"]["default"] == 8000
        assert not {"approve", "apply", "edit", "fix"} & set(tool["name"].split("_"))


def test_a_run_is_diagnosed(tour: Tour) -> None:
    result = json.loads(tour[0])
    assert result["status"] == "diagnosis_complete"
    assert result["root_causes"][0]["failure_mode"] == "loss.log-of-zero"
    assert result["root_causes"][0]["location"] == "run/train.py:46"


def test_metrics_findings_code_and_pages_are_read(tour: Tour) -> None:
    assert "loss,train,run/metrics.csv,,step,1175,nan,48" in tour[1]
    assert json.loads(tour[2].splitlines()[1])["measured"]["position"] == 1175
    assert json.loads(tour[3].splitlines()[1])["patch"][0]["line"] == 20
    assert tour[4].startswith("# Logarithm of zero")
    assert "loss.log-of-zero" in tour[6]


def test_a_session_and_its_diagnosis_are_read(tour: Tour) -> None:
    assert tour.session in tour[7]
    assert json.loads(tour[8])["status"] == "awaiting_approval"
    assert json.loads(tour[8])["digest"] in tour[9]
    assert "Approving is a person's decision" in tour[9]


def test_only_the_picture_was_written(tour: Tour) -> None:
    assert tour[5].startswith("scratch/debug/plots/loss.png")
    assert set(tour.after) - set(tour.before) == {"scratch/debug/plots/loss.png"}
    assert {k: v for k, v in tour.after.items() if k in tour.before} == tour.before


def test_long_work_tells_what_it_does(tour: Tour) -> None:
    assert "judging curves" in " ".join(tour.said.progress)


@pytest.mark.slow
def test_refusals_are_tool_errors_answers_are_bounded_and_the_server_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason=NO_SDK)
    root = copied(tmp_path)
    (tmp_path / "outside.csv").write_text("step,loss\n1,0.777\n")
    (root / "link.csv").symlink_to(tmp_path / "outside.csv")
    (root / ".env").write_text("TOKEN=hunter2")
    (root / "noise.bin").write_bytes(bytes(range(256)) * 40)
    (root / "long.csv").write_text("step,loss\n" + "".join(f"{i},{1 / (i + 1):.9f}\n" for i in range(20_000)))
    said = talk(root, [
        ("diagnose_run", {"paths": ["../outside.csv"]}),
        ("extract_metrics", {"paths": ["link.csv"]}),
        ("extract_metrics", {"paths": [".env"]}),
        ("extract_metrics", {"paths": ["noise.bin"]}),
        ("extract_metrics", {"paths": ["absent.log"]}),
        ("extract_metrics", {"paths": []}),
        ("explain", {"name": "L101", "max_chars": "many"}),
        ("approve", {"session": "x"}),
        ("extract_metrics", {"paths": ["long.csv"], "metrics": ["loss"], "max_rows": 10_000}),
    ])
    texts = [text for text, _ in said.answers]
    assert [is_error for _, is_error in said.answers] == [True] * 8 + [False]
    for text, expected in zip(texts, ("outside", "outside", "may hold secrets", "no known format", "absent.log",
                                      "paths", "max_chars", "there is no tool 'approve'", "with offset="), strict=True):
        assert expected in text
        assert len(text) <= 8000
    assert not any("Traceback" in t or "0.777" in t or "hunter2" in t for t in texts)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A run below a root of its own."""
    return copied(tmp_path)


def test_a_fault_of_ours_is_a_sentence_and_no_traceback(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio = pytest.importorskip("anyio", reason="anyio comes with the MCP SDK")

    def broken(*_: object) -> str:
        raise ZeroDivisionError("by design")

    explain = TOOLS["explain"]
    monkeypatch.setitem(TOOLS, "explain", Tool("explain", "", "", explain.arguments, broken))
    told: list[str] = []

    async def ask() -> Any:
        async def notify(progress: float, message: str) -> None:
            told.append(message)

        return await _answer(Reach.of(project), "explain", {"name": "x"}, notify)

    result = anyio.run(ask)
    assert result["isError"] is True
    assert "explain failed inside traindx (ZeroDivisionError: by design)" in result["content"][0]["text"]
    assert "Traceback" not in result["content"][0]["text"]


def test_without_the_sdk_the_extra_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mcp", "mcp.server", "mcp.server.lowlevel"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install 'mcp>="):
        serve(project)


@pytest.mark.parametrize("root", ["/", "no/such/folder"])
def test_a_root_that_confines_nothing_is_refused(root: str) -> None:
    with pytest.raises(BadUsage, match="--root"):
        command.main(["--root", root], standalone_mode=False)
