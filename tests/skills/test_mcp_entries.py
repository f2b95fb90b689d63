"""The MCP server that the manifests name: the installed traindx, or a stand-in that says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "tools" / "mcp" / "serve.py"
ASKED = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
             "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
         {"jsonrpc": "2.0", "method": "notifications/initialized"},
         {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 3, "method": "ping"}]


def talk(path: str, *messages: dict[str, Any], cwd: Path) -> tuple[dict[int, dict[str, Any]], str]:
    """The answers by id, and what was said on standard error. Standard input stays open until all are there."""
    said = cwd / "stderr.txt"
    answers: dict[int, dict[str, Any]] = {}
    with said.open("wb") as errors, subprocess.Popen(
            [sys.executable, "-I", str(SERVE)], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True, env={"PATH": path, "HOME": str(cwd), "OMP_NUM_THREADS": "1"}) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        late = threading.Timer(90, server.kill)
        late.start()
        server.stdin.write("".join(json.dumps(m) + "\n" for m in messages))
        server.stdin.flush()
        wanted = {m["id"] for m in messages if "id" in m}
        while wanted - set(answers) and (line := server.stdout.readline()):
            answer = json.loads(line)
            answers[answer["id"]] = answer
        server.stdin.close()
        late.cancel()
    return answers, said.read_text()


def program(folder: Path, text: str) -> str:
    """A PATH with this program as `traindx`."""
    folder.mkdir()
    (folder / "traindx").write_text(text)
    (folder / "traindx").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.slow
def test_with_traindx_installed_its_own_server_answers(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    path = program(tmp_path / "bin", f"#!{sys.executable}\nfrom traindx.cli import main\nmain()\n")
    answers, _ = talk(path, *ASKED, cwd=tmp_path)
    assert {t["name"] for t in answers[2]["result"]["tools"]} >= {"diagnose_run", "explain", "audit_code"}


@pytest.mark.parametrize(("text", "why"), [
    (None, "no `traindx` was found on PATH"),
    ("#!/bin/sh\necho \"The MCP server needs the package 'mcp'\" >&2\nexit 2\n", "needs the package 'mcp'"),
    ("#!/bin/sh\nexit 3\n", "ended with exit code 3"),
])
def test_without_it_the_host_is_told_what_to_install(text: str | None, why: str, tmp_path: Path) -> None:
    path = "/nonexistent" if text is None else program(tmp_path / "bin", text)
    call = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "how_to_install", "arguments": {}}}
    odd = {"jsonrpc": "2.0", "id": 5, "method": "resources/list"}
    answers, said = talk(path, *ASKED, call, odd, cwd=tmp_path)
    for text_of in (said, answers[1]["result"]["instructions"], answers[4]["result"]["content"][0]["text"]):
        assert f"pip install '{ROOT}[mcp]'" in text_of
        assert why in text_of
        assert "traindx_run.py diagnose PATH" in text_of
    assert [t["name"] for t in answers[2]["result"]["tools"]] == ["how_to_install"]
    assert answers[3]["result"] == {}
    assert answers[5]["error"]["code"] == -32601


@pytest.mark.parametrize("name", [".mcp.json", "mcp.json", "gemini-extension.json"])
def test_every_host_gets_a_server_named_traindx(name: str) -> None:
    entry = json.loads((ROOT / name).read_text(encoding="utf-8"))["mcpServers"]["traindx"]
    for argument in entry["args"]:
        path = argument.replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT)).replace("${extensionPath}", str(ROOT))
        assert argument == "mcp" or os.path.isfile(path)
