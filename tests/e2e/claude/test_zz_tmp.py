import json, pytest
from pathlib import Path
from plugin_session import ROOT, talking
from scripted_api import Text, Use, Both
pytestmark = pytest.mark.slow
OPEN = Use("Skill", {"skill": "traindx:ml-debug", "args": "the loss is NaN"})
DIAGNOSIS = """# Diagnosis (Gate 4)
## Symptom
The loss is NaN from step 1175 on.
## Root Cause
np.log(1.0 - prob) at train.py:46 reaches 0: EPS vanishes in float32 (E1, prob = 1.0).
## Why This Happens
1e-12 is below the resolution of float32 near 1.
## Proposed Fix
A (targeted): train.py:20: EPS = 1e-6. The loss stays finite. Verify: `python3 check.py`.
B (broader): train.py:40-50: work with logits. Verify: `python3 check.py`.
## What This Fix Will Change
Probabilities are clipped at 1e-6.
## What This Fix Will NOT Fix
A learning rate that is too high.
"""

def edit(work, new="EPS = 1e-6", old="EPS = 1e-12"):
    return Use("Edit", {"file_path": str(work / "train.py"), "old_string": old, "new_string": new, "replace_all": False})
def bash(command):
    return Use("Bash", {"command": command, "description": "run"})

async def test_x(work: Path, tmp_path: Path):
    asked=[]
    def answers(a):
        asked.append(a); q=a["questions"][0]["question"]
        return {q: "approve A"}
    question = {"questions": [{"question": "Which fix?", "header": "Gate 4", "multiSelect": False, "options": [
        {"label": "approve A", "description": "targeted"}, {"label": "not yet", "description": "wait"}]}]}
    script=[OPEN, bash("ls; pwd; echo x > train.py"), bash("cd scratch/debug && pwd"), bash("pwd; exit 3"),
       bash("cd ../..; python3 - <<'EOF'\nprint('a' != \"b\")\nEOF"), Use("Read", {"file_path": str(work/"train.py")}),
       Both(DIAGNOSIS, Use("AskUserQuestion", question)), edit(work), Text("done")]
    async with talking(work, tmp_path/"home", script, answers) as talk:
        b = await talk.types("the loss is NaN")
        for t in b: print(t)
        print(asked)
        print((tmp_path/"home"/"state").exists())
