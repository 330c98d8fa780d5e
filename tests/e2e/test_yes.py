"""`agent run --yes` opens diffs, checks and commits, and with `--commands` commands too."""

from tests.e2e.calc import GOOD, calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines

COMMAND = 'Thought: I look.\nAction: run_command\n{"command": "echo seen"}'
SETTINGS = {".agent.yml": "tools_allowed: [run_command, write_diff, finish]\n"}
RUN = ("run", "--task", "T-1", "--yes")


def test_a_command_waits_for_a_person_or_for_the_flag(served: Machine) -> None:
    repo = calc_repo(served, SETTINGS)
    assert served.agent("trust", "--yes", cwd=repo).code == 0
    scripts = {"T-1": (COMMAND, *GOOD)}
    parked = served.scripted(scripts, *RUN, cwd=repo)
    assert parked.code == 3, parked.said
    assert "T-1 waits for a person: command P-" in parked.said
    assert "`agent run --yes --commands` approves commands" in parked.said
    done = served.scripted(scripts, *RUN, "--commands", cwd=repo)
    assert done.code == 0, done.said
    decided = {each["by"] for each in bodies(journal_lines(repo), "action_decided")}
    assert decided == {f"policy:{kind}=auto" for kind in ("read", "diff", "check", "command", "commit")}
