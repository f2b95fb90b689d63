"""Manifests for the hosts, what the wheel holds, and real installs (slow)."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from traindx_tools import __version__

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_OF_A_WHEEL = 5.2e6
"""Bytes, compressed."""
AGENT_PLUGIN_FIELDS = {"$schema", "name", "version", "description", "author", "homepage", "repository", "license",
                       "keywords", "extensions"}
"""The closed set of Agent Plugins 1.0.0 (agent-plugins.org/specification)."""
SKILLS_CLI = {"node20": ("skills@1.5.15", None), "node22": ("skills@latest", "node@22")}
"""The last release that runs on Node 20, and the newest on a Node 22 that npm itself brings."""

_spec = importlib.util.spec_from_file_location("bare_python", HERE / "bare_python.py")
assert _spec is not None
assert _spec.loader is not None
bare = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bare)


def manifest(name: str) -> dict[str, object]:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def test_versions_are_equal_everywhere() -> None:
    named = {n: manifest(n)["version"] for n in ("plugin.json", "gemini-extension.json", ".claude-plugin/plugin.json")}
    for skill in (ROOT / "skills").glob("*/SKILL.md"):
        named[skill.parent.name] = re.search(r'^  version: "(.+)"$', skill.read_text(encoding="utf-8"), re.MULTILINE)[1]
    named["pyproject.toml"] = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
                                        re.MULTILINE)[1]
    assert set(named.values()) == {__version__}, named


def test_manifests_have_what_their_hosts_ask_for() -> None:
    portable = manifest("plugin.json")
    assert set(portable) <= AGENT_PLUGIN_FIELDS
    assert portable["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert isinstance(portable["author"], dict)
    claude = manifest(".claude-plugin/plugin.json")
    assert isinstance(claude["author"], dict)
    assert (ROOT / claude["hooks"]).is_file()
    assert (ROOT / claude["mcpServers"]).is_file()
    assert (ROOT / claude["experimental"]["evals"]).is_dir()
    market = manifest(".claude-plugin/marketplace.json")
    assert {"name", "owner", "plugins"} <= set(market)
    assert [p["source"] for p in market["plugins"]] == ["./"]
    assert {claude["name"], portable["name"], manifest("gemini-extension.json")["name"]} == {"traindx"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of the checkout that installs are made from, links kept, without caches."""
    to = tmp_path_factory.mktemp("tree")
    for part in ("skills", "agents", "tools", "orchestrator", "templates", ".claude-plugin"):
        shutil.copytree(ROOT / part, to / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "plugin.json", "mcp.json", ".mcp.json",
                 "gemini-extension.json"):
        shutil.copy(ROOT / name, to / name)
    return to


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> list[zipfile.ZipInfo]:
    from hatchling.builders.wheel import WheelBuilder

    built = next(WheelBuilder(str(tree)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"]))
    return zipfile.ZipFile(built).infolist()


def test_the_wheel_holds_the_skills_and_the_instruments_once(wheel: list[zipfile.ZipInfo], tree: Path) -> None:
    names = {i.filename for i in wheel}
    assert not [n for n in names if n.endswith(".zip")], "the package itself is there"
    assert sum(i.compress_size for i in wheel) < MOST_OF_A_WHEEL
    assert "traindx_tools/triage.py" in names
    assert len([n for n in names if n.endswith("/triage.py")]) == 1
    for skill in (tree / "skills").glob("*/SKILL.md"):
        inside = [p for p in skill.parent.rglob("*") if p.is_file() and p.suffix != ".zip"]
        assert {f"traindx/_pack/{p.relative_to(tree).as_posix()}" for p in inside} <= names
    assert {f"traindx/_pack/{n}" for n in (".mcp.json", ".claude-plugin/plugin.json", "tools/mcp/serve.py",
                                           *(f"tools/hooks/{h}" for h in ("hooks.json", "gate.sh", "gate.py",
                                                                          "protected.py")))} <= names


@pytest.mark.slow
def test_the_source_archive_holds_the_instruments_once(tree: Path, tmp_path: Path) -> None:
    import tarfile

    from hatchling.builders.sdist import SdistBuilder

    built = next(SdistBuilder(str(tree)).build(directory=str(tmp_path), versions=["standard"]))
    with tarfile.open(built) as archive:
        names = archive.getnames()
    assert len([n for n in names if n.endswith("tools/traindx_tools/triage.py")]) == 1
    assert not [n for n in names if n.endswith(".zip")]


def tree_of(folder: Path) -> set[str]:
    return {(Path(at) / f).relative_to(folder).as_posix() for at, _, files in os.walk(folder, followlinks=True)
            for f in files}


def npm_environment(home: Path) -> dict[str, str]:
    """An empty HOME. npm keeps its own settings (registry, certificates): they belong to the machine."""
    home.mkdir()
    real = Path.home() / ".npmrc"
    if real.is_file():
        shutil.copy(real, home / ".npmrc")
    settings = {k: v for k, v in os.environ.items()
                if k.lower().startswith("npm_config_") or k == "NODE_EXTRA_CA_CERTS"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "DISABLE_TELEMETRY": "1", "CI": "1", **settings}


def npm(command: list[str], cwd: Path, environment: dict[str, str]) -> None:
    """Runs npm or npx; a failure says so in words, and what to look at."""
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        pytest.fail(f"{command[0]} was not found: install Node 20 or newer")
    done = subprocess.run([program, *command[1:]], cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
                          stdin=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        pytest.fail(f"`{' '.join(command)}` failed; is the npm registry reachable?\n{done.stderr[-2000:]}"
                    f"{done.stdout[-2000:]}")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("node", SKILLS_CLI)
def test_npx_installs_skills_that_work_alone(node: str, tree: Path, tmp_path: Path) -> None:
    release, runtime = SKILLS_CLI[node]
    environment, project = npm_environment(tmp_path / "home"), tmp_path / "project"
    project.mkdir()
    if runtime is not None:
        (tmp_path / "node").mkdir()
        npm(["npm", "install", "--no-save", "--prefix", str(tmp_path / "node"), runtime], tmp_path / "node",
            environment)
        environment["PATH"] = f"{tmp_path / 'node' / 'node_modules' / '.bin'}:{environment['PATH']}"
    npm(["npx", "-y", release, "add", str(tree), "--copy", "-y", "-a", "claude-code"], project, environment)
    installed = project / ".claude" / "skills"
    assert tree_of(installed) == tree_of(tree / "skills")
    assert {p.name for p in project.iterdir()} <= {".claude", "skills-lock.json"}, "nothing else lands in the project"
    assert not [p for p in installed.rglob("*") if p.is_symlink()]

    packages = bare.bare_folder(tmp_path / "packages")
    (project / "train.log").write_text("\n".join(
        f"step {s} loss {2.0 if s < 100 else float('nan')} lr 0.1" for s in range(200)), encoding="utf-8")
    for skill in sorted(installed.iterdir()):
        for script in sorted((skill / "scripts").glob("*.py")):
            assert bare.run_bare(packages, script, "--help", cwd=project).returncode == 0
        seen = bare.run_bare(packages, skill / "scripts" / "traindx_run.py", "diagnose", "train.log", cwd=project)
        assert seen.returncode in (1, 3), seen.stderr
        assert json.loads(seen.stdout)["engine"] == "bundled"
        assert "L101" in {f["rule"] for f in json.loads(seen.stdout)["findings"]}


@pytest.mark.slow
def test_claude_code_accepts_the_plugin(tmp_path: Path) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    claude = Path(sdk.__file__).parent / "_bundled" / "claude"
    if not claude.is_file():
        pytest.skip("this build of the SDK brings no CLI")
    done = subprocess.run([str(claude), "plugin", "validate", "--strict", str(ROOT)], capture_output=True, text=True,
                          timeout=100, check=False, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    for skill in (ROOT / "skills").glob("*/SKILL.md"):
        assert f"traindx:{skill.parent.name}" in done.stdout
    for event in ("PreToolUse", "UserPromptSubmit", "SubagentStart"):
        assert f"hooks: {event}" in done.stdout
    assert "mcpServers: traindx" in done.stdout


def test_the_docs_say_in_one_line_how_each_host_gets_it() -> None:
    page = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", page.split("# In a coding agent")[1].split("\n## ")[0],
                           re.MULTILINE))
    for host, says in (("any agent with skills", "npx skills add"),
                       ("Claude Code, as a plugin", "/plugin install traindx"),
                       ("Gemini CLI", "gemini extensions install"), ("Codex, Cursor, Copilot, VS Code", "plugin.json"),
                       ("OpenCode and others that read AGENTS.md", "-a opencode"), ("any MCP client", "traindx mcp")):
        assert says in rows[host], host
