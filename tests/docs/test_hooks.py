"""The examples of docs/how-to/hooks.md: settings that are read, a script that does what it says, and every event."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import load_settings
from agent_workbench.core.hook_answers import HookOutcome, HookVerdict, read_hook_answer
from agent_workbench.core.hook_document import proposal_document
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.state.session_state import SessionState

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "hooks.md").read_text()


def examples(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found


def test_its_settings_are_read(tmp_path: Path) -> None:
    names = []
    for example in examples("yaml"):
        (tmp_path / ".agent.yml").write_text(example)
        names += [name for name, _ in load_settings(tmp_path, {}, {}).settings.hooks]
    assert names == ["no-todo", "tell-me", "desktop"]


def test_its_table_has_every_event() -> None:
    listed = {word for line in PAGE.splitlines() if line.startswith("| `") for word in re.findall(r"`([a-z_]+)`", line)}
    assert set(HookPoint) <= listed


@pytest.mark.parametrize(("line", "verdict"), [('+print("TODO")', HookVerdict.REFUSE), ("-TODO", HookVerdict.NONE)])
def test_its_script_answers_as_the_page_says(line: str, verdict: HookVerdict) -> None:
    (script,) = examples("python")
    diff = f"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n{line}\n"
    proposal = DiffProposal(ProposalId("P-1"), "write_diff", "", 1, diff=diff)
    document = proposal_document(SessionState(), HookPoint.DIFF_PROPOSED, "no-todo", proposal)
    assert "\n" not in document.text[:-1]
    assert json.loads(document.text)["proposal"]["diff"] == diff
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], input=document.text, capture_output=True, text=True, check=False
    )
    failure = "" if done.returncode == 0 else f"exit code {done.returncode}"
    assert read_hook_answer(HookOutcome(done.stdout, failure)).verdict is verdict
