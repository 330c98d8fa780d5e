"""`agent chat`: one question in the shell, its journal, and a kill in the middle, with the real server."""

import json
import signal

import pytest

from tests.e2e.calc import calc_repo
from tests.e2e.machine import Machine, bodies, journal_lines

READ = 'Thought: I look.\nAction: read_file\n{"path": "calc.py"}'
ANSWER = "Answer: It subtracts \x1b]52;c;aGk=\x07[@click=app.approve]**here**[/].\n\n- `calc.py`\n\n"
SCRIPTS = {"chat:chat": (READ, ANSWER)}


@pytest.mark.slow
def test_a_question_shows_its_calls_and_the_reply_and_can_be_looked_at_again(served: Machine) -> None:
    repo = calc_repo(served)
    done = served.scripted(SCRIPTS, "chat", "what is wrong with add?", cwd=repo)
    assert done.code == 0, done.said
    assert done.out.startswith('read_file {"path": "calc.py"}\n  calc.py, lines 1 to')
    assert done.out.endswith("It subtracts ␛]52;c;aGk=␇[@click=app.approve]**here**[/].\n\n- `calc.py`\n")
    assert done.out.count("It subtracts") == 1, "what streamed is not printed again"
    assert served.run(["git", "status", "--porcelain", "--", "calc.py"], repo).out == ""
    (session,) = (repo / "memory/sessions").iterdir()
    listed = served.agent("sessions", cwd=repo)
    assert "chat what is wrong with add?  stopped" in listed.out
    assert "2 prompts, 2 identical" in served.agent("replay", "--rerun", session.name, cwd=repo).out
    assert "ok, 0.0" in served.agent("sessions", "show", cwd=repo).out, "how long a call took"
    receipt = served.agent("sessions", "show", "--prompt", "2", cwd=repo)
    assert "result read_file" in receipt.out, receipt.said
    exported = served.agent("sessions", "export", cwd=repo)
    assert "## You\n\n```\nwhat is wrong with add?\n```" in exported.out
    assert "2 steps" in exported.out

    again = served.scripted({"chat:chat": (READ, ANSWER, "Answer: Yes.")}, *TO_GO_ON, session.name, "--json", cwd=repo)
    assert again.code == 0, again.said
    assert [body["text"] for body in again.of_kind("chat_replied")] == ["Yes."]
    forked = served.agent("sessions", "fork", session.name, cwd=repo)
    assert forked.code == 0, forked.said
    child = next(each.name for each in (repo / "memory/sessions").iterdir() if each.name != session.name)
    on = served.scripted({"chat:chat": (READ, ANSWER, "", "Answer: Here too.")}, *TO_GO_ON, child, cwd=repo)
    assert (on.code, on.out) == (0, "Here too.\n"), on.said


TO_GO_ON = ("chat", "sure?", "--session")


def test_the_skills_are_listed_by_a_call_that_is_shown(served: Machine) -> None:
    repo = calc_repo(served)
    script = {"chat:chat": ("Thought: I list them.\nAction: list_skills\n{}", "Answer: These.")}
    done = served.scripted(script, "chat", "which skills are there?", cwd=repo)
    assert done.code == 0, done.said
    shown = done.out.splitlines()
    assert (shown[0], shown[-1]) == ("list_skills {}", "These.")
    assert shown[1].startswith("  ansible-playbooks: ")
    assert shown[-2].endswith("more lines, recorded in the session")


@pytest.mark.slow
def test_ctrl_c_stops_the_answer_and_a_killed_chat_goes_on(served: Machine) -> None:
    repo = calc_repo(served)
    running = served.start("chat", "why?", cwd=repo, scripts=SCRIPTS, halt="token")
    running.until_halted()
    stopped = running.send(signal.SIGINT)
    assert (stopped.code, "there is no reply" in stopped.err) == (130, True), stopped.said
    assert bodies(journal_lines(repo), "model_interrupted")[0]["cause"] == "stopped"

    before = {each.name for each in (repo / "memory/sessions").iterdir()}
    running = served.start("chat", "why?", cwd=repo, scripts=SCRIPTS, halt="ActionStarted")
    running.until_halted()
    running.send(signal.SIGKILL)
    assert not running.survivors()
    (killed,) = {each.name for each in (repo / "memory/sessions").iterdir()} - before
    on = served.scripted(SCRIPTS, "chat", "so?", "--session", killed, "--json", cwd=repo)
    results = [body["result"] for body in on.of_kind("action_finished")]
    assert (on.code, results[:1]) == (0, ["unknown"]), on.said


def test_what_cannot_be_answered_is_an_error_with_its_code(served: Machine) -> None:
    repo = calc_repo(served)
    assert served.agent("chat", " ", cwd=repo).code == 2
    done = served.agent("chat", "--session", "nope", "why?", cwd=repo)
    assert (done.code, "no session" in done.err) == (2, True), done.said
    dead = served.agent("chat", "why?", cwd=repo, environ={"AGENT_MODEL__URL": "http://127.0.0.1:9"})
    assert (dead.code, "127.0.0.1:9" in dead.err) == (5, True), dead.said
    script = {"chat:chat": ('Thought: x\nAction: run_command\n{"command": "touch pwned"}', "Answer: No.")}
    refused = served.scripted(script, "chat", "run it", "--json", cwd=repo)
    assert refused.code == 0, refused.said
    assert "there is no tool 'run_command'" in refused.of_kind("action_rejected")[0]["reason"]
    assert json.loads(refused.out.splitlines()[-1])["body"]["text"] == "No."
