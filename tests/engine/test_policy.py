"""Policy at the gate: decisions without a person, proposals that change, and files that move under them."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.approval_rules import RuleScope, decided_by
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionRejected,
    ActionResult,
    ApprovalChanged,
    Author,
    Event,
    ModelAnswered,
    PatchApplied,
    ProposalReplaced,
    Recorded,
    SessionConfigured,
    TaskCommitted,
)
from agent_workbench.core.fold import fold, fold_all
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import ApproveProposal, EditProposal
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import PatchBounds, patch_hash, selectable_ids
from agent_workbench.core.plan import Constraints, PathScope
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.proposals import Proposal, Verdict, shown_sha
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.settings import (
    Approval,
    Approvals,
    Limits,
    MemorySettings,
    Permission,
    Rule,
    Settings,
    SkillSettings,
)
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.engine.policy import PolicyDecision, ruling
from agent_workbench.engine.session.unattended import run_unattended
from agent_workbench.views.diff_document import diff_lines
from agent_workbench.views.gate.diff_pane import view_diff
from agent_workbench.views.task_review import view_review
from tests.engine.front import in_front_of
from tests.engine.killing import run_until_killed
from tests.engine.stage import FINISH, OPEN, T1, a_stage, call, change, diff, reflexion, reopened, task
from tests.fakes.runs import made_of

CALLS = frozenset(kind for kind in Permission if KINDS[kind].calls)

CHECKS_OPEN = Approvals(check=Approval.AUTO)
COMMANDS = Settings(tools_allowed=("run_command", "write_diff", "finish"))
DIGEST = "0123456789abcdef"


def proposal_of(kind: Permission, *, special: tuple[str, ...] = ()) -> Proposal:
    spec = DIGEST if kind in CALLS else ""
    return made_of(kind, "grep", "text", commands=("text",), paths=("a.py",), special=special, spec=spec)


KEPT = {
    Permission.READ: Rule(Permission.READ, tool="grep"),
    Permission.DIFF: Rule(Permission.DIFF, paths=("**",)),
    Permission.COMMAND: Rule(Permission.COMMAND, commands=("text",)),
    **{kind: Rule(kind, any=True) for kind in set(Permission) - {Permission.READ, Permission.DIFF, Permission.COMMAND}},
    **{kind: Rule(kind, tool=proposal_of(kind).rule_tool) for kind in CALLS},
}
# `once` is for checks, and tried in test_reviewed_files.py.
ALWAYS = [each for each in Approval if each is not Approval.ONCE]
RULES = [*itertools.product(Permission, ALWAYS, (False, True), (False, True), (False, True), (False, True))]


def state_of(
    kind: Permission, rule: Approval, *, always: bool = False, headless: bool = False, holds: bool = True
) -> SessionState:
    approvals = Approvals(**{each.value: rule if each is kind else Approval.ASK for each in Permission})  # type: ignore[arg-type]
    config = SessionConfigured(
        approvals, Limits(), (), "", "", 10, 1.0, SandboxFacts("bwrap", holds, network=False), headless
    )
    events: list[Event] = [config]
    if always:
        events.append(ApprovalChanged(kind, True, KEPT[kind]))
    return fold_all(Recorded(seq, "", event) for seq, event in enumerate(events))


@pytest.mark.slow(quick=96)
@pytest.mark.parametrize(("kind", "rule", "always", "headless", "holds", "special"), RULES)
def test_the_policy(
    kind: Permission, rule: Approval, *, always: bool, headless: bool, holds: bool, special: bool
) -> None:
    state = state_of(kind, rule, always=always, headless=headless, holds=holds)
    found = ruling(state, proposal_of(kind, special=(".gitattributes",) if special else ()))

    needs_a_person = (kind in {Permission.DIFF, Permission.KNOWLEDGE} and special) or (
        kind in {Permission.COMMAND, Permission.SCRIPT} and not holds
    )
    fits = not (kind is Permission.DIFF and special)
    if kind is Permission.SUMMARY:
        by = "unattended" if rule is Approval.ASK and not always else f"{kind}={rule}"
        by = "any summary" if rule is Approval.ASK and always else by
        open_ = headless or always or rule is not Approval.ASK
        assert found == (PolicyDecision(Verdict.APPROVE, f"policy:{by}") if open_ else None)
    elif rule is Approval.DENY:
        assert found is not None
        assert (found.verdict, found.by) == (Verdict.REJECT, f"policy:{kind}=deny")
    elif (
        kind in {Permission.MERGE, Permission.INFRASTRUCTURE}
        or (rule is Approval.ASK and not (always and fits))
        or (needs_a_person and not headless)
    ):
        assert found is None
    elif needs_a_person:
        assert found is not None
        assert (found.verdict, found.by) == (Verdict.REJECT, "policy:unattended")
        assert found.reason
    else:
        assert found == PolicyDecision(
            Verdict.APPROVE, f"policy:{kind}=auto" if rule is Approval.AUTO else decided_by(KEPT[kind])
        )


@pytest.mark.parametrize(("kept", "holds"), itertools.product(RuleScope, (False, True)))
def test_any_check_of_any_repo_needs_a_sandbox(kept: RuleScope, *, holds: bool) -> None:
    changed = ApprovalChanged(Permission.CHECK, True, KEPT[Permission.CHECK], kept)
    state = fold(state_of(Permission.CHECK, Approval.ASK, holds=holds), Recorded(1, "", changed))
    found = ruling(state, proposal_of(Permission.CHECK))
    assert (found is None) == (kept is RuleScope.EVERYWHERE and not holds)


def test_without_settings_everything_is_asked() -> None:
    assert ruling(SessionState(), proposal_of(Permission.READ)) is None


TEXTS = st.text(max_size=6)
CHANGED_FIELDS = {
    "kind": st.sampled_from(Permission),
    "tool": TEXTS,
    "text": TEXTS,
    "diff": TEXTS,
    "commands": st.lists(TEXTS, max_size=3).map(tuple),
}


@given(st.data())
def test_what_is_shown_decides_the_hash(data: st.DataObject) -> None:
    fields = {name: data.draw(each) for name, each in CHANGED_FIELDS.items()}
    name = data.draw(st.sampled_from(sorted(CHANGED_FIELDS)))
    changed = data.draw(CHANGED_FIELDS[name].filter(lambda it: it != fields[name]))
    assert shown_sha(_with_fields(**fields)) != shown_sha(_with_fields(**{**fields, name: changed}))


def _with_fields(kind: Permission, **fields: Any) -> Proposal:
    return KINDS[kind](ProposalId("P-1"), **fields)


async def test_an_approval_names_what_it_lets_through(tmp_path: Path) -> None:
    async with (
        a_stage(tmp_path, [change("wrong", "right"), FINISH], approvals=CHECKS_OPEN) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        shown = await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        (decided,) = [
            event for event in stage.events if isinstance(event, ActionDecided) and event.proposal_id == shown.id
        ]
        assert decided.by == "user"
        assert decided.resulting_patch_sha == patch_hash(shown.diff)
        assert [each.id for each in decided.hunks] == list(selectable_ids(parse_patch(shown.diff, PatchBounds())))
        assert {each.fate for each in decided.hunks} == {"taken"}
        assert decided.preimages == shown.preimages
        (applied,) = [event for event in stage.events if isinstance(event, PatchApplied)]
        assert applied.patch_sha == decided.resulting_patch_sha


async def test_a_file_that_moved_after_it_was_shown_is_shown_again(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [], approvals=CHECKS_OPEN) as stage:
        stage.user.write("long.txt", "".join(f"line {number}\n" for number in range(20)))
        stage.user.commit("A longer file")
        before = "".join(f" line {number}\n" for number in range(3))
        step = f"--- a/long.txt\n+++ b/long.txt\n@@ -1,4 +1,4 @@\n{before}-line 3\n+right\n"
        stage.model.sayings.extend([call("write_diff", step), FINISH])
        stage.plan.plan = replace(stage.plan.plan, tasks=(task(accept=("true",)),))
        async with in_front_of(stage) as front:
            await front.start()
            shown = await front.gate(Permission.DIFF)
            run = stage.state.run
            assert run is not None
            moved = Path(run.workspace.path) / "long.txt"
            moved.write_text(moved.read_text().replace("line 15\n", "line fifteen\n"))
            await front.submit(ApproveProposal(shown.id, shown_sha(shown)))
            await front.until(lambda it: it.state.run and it.state.run.gate.proposal != shown)
            again = await front.gate(Permission.DIFF)
            assert "-line 15\n+line fifteen\n" in again.diff, "what would get in unseen"
            assert not again.edited
            (replaced,) = [event for event in stage.events if isinstance(event, ProposalReplaced)]
            assert (replaced.by, replaced.reason) == (
                Author.WORKBENCH,
                "long.txt changed after this was shown",
            )
            assert not [event for event in stage.events if isinstance(event, PatchApplied)]
            await front.approve(Permission.DIFF)
            commit = await front.gate(Permission.COMMIT)
            assert commit.diff == again.diff


async def test_a_file_that_moved_from_under_a_diff_refuses_it(tmp_path: Path) -> None:
    sayings = [change("wrong", "right"), change("elsewhere", "right")]
    async with a_stage(tmp_path, sayings, approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        shown = await front.gate(Permission.DIFF)
        run = stage.state.run
        assert run is not None
        (Path(run.workspace.path) / "answer.txt").write_text("elsewhere\n")
        await front.approve(Permission.DIFF)
        second = await front.gate(Permission.DIFF)
        assert second.id != shown.id
        assert "-wrong\n+right\n" in second.diff, "what was there by itself is no part of what was approved"
        (refused,) = [
            event for event in stage.events if isinstance(event, ActionFinished) and event.proposal_id == shown.id
        ]
        assert refused.result is ActionResult.REFUSED
        assert "answer.txt changed after this was shown" in refused.observation


SECRET = "hunter2-and-more"
SECRETS = {"API_TOKEN": SECRET}


async def test_a_secret_in_an_answer_refuses_it(tmp_path: Path) -> None:
    sayings = [change("wrong", SECRET), change("wrong", "right")]
    async with (
        a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, secrets=SECRETS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        assert (await front.gate(Permission.DIFF)).step == 2
        assert "the value of a secret" in stage.model.requests[-1].messages[-1].text
        assert all(SECRET not in str(event) for event in stage.events)


async def test_what_stands_for_a_secret_is_never_written_in_its_place(tmp_path: Path) -> None:
    shown = "«redacted:API_TOKEN»"
    sayings = [change("wrong", f"key = {shown}"), change("wrong", "right")]
    async with a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, start={"answer.txt": "wrong\n"}) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            assert (await front.gate(Permission.DIFF)).step == 2
        (rejected,) = [event for event in stage.events if isinstance(event, ActionRejected)]
        assert f"{shown} would be written into answer.txt" in rejected.reason


async def test_a_stop_after_an_answer_with_a_secret_leads_to_no_other_diff(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [change("wrong", SECRET)], approvals=OPEN, headless=True, secrets=SECRETS) as stage:
        await run_until_killed(stage, ModelAnswered)
        async with reopened(stage, [change("wrong", "right"), FINISH]) as again:
            await run_unattended(again.session, again.recorder, (T1,))
            (applied,) = [event for event in again.events if isinstance(event, PatchApplied)]
            assert [chunk.text for chunk in applied.shown] == ["right\n"]


async def test_text_that_speaks_of_what_stands_for_a_secret_can_be_changed(tmp_path: Path) -> None:
    text = "«redacted:NAME» is what one reads"
    sayings = [change(text, f"{text} instead")]
    async with (
        a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, start={"answer.txt": f"{text}\n"}) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        assert (await front.gate(Permission.DIFF)).step == 1


async def test_a_secret_beside_a_change_refuses_it(tmp_path: Path) -> None:
    sayings = [call("write_diff", "--- a/env\n+++ b/env\n@@ -2 +2 @@\n-off\n+on\n"), change("wrong", "right")]
    async with a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, secrets=SECRETS) as stage:
        stage.user.write("env", f"{SECRET}\noff\n")
        stage.user.commit("A secret, in git of all places")
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda it: it.state.gate.proposal and it.state.gate.proposal.step == 2)
        decided = [event for event in stage.events if isinstance(event, ActionDecided)][-1]
        assert (decided.by, decided.verdict) == ("policy:secrets", Verdict.REJECT)
        assert all(SECRET not in str(event) for event in stage.events)


@pytest.mark.parametrize("kind", [Permission.DIFF, Permission.COMMAND])
async def test_a_secret_in_an_edit_refuses_it(tmp_path: Path, kind: Permission) -> None:
    first = change("wrong", "left") if kind is Permission.DIFF else call("run_command", '{"command": "echo hello"}')
    edit = diff("wrong", SECRET) if kind is Permission.DIFF else f"echo {SECRET}"
    async with (
        a_stage(
            tmp_path, [first, change("wrong", "right")], approvals=CHECKS_OPEN, settings=COMMANDS, secrets=SECRETS
        ) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(kind)
        await front.submit(EditProposal(waiting.id, edit))
        await front.until(lambda it: it.state.gate.proposal and it.state.gate.proposal.step == 2)
        assert "+right" in (await front.gate(Permission.DIFF)).diff
        assert [event.by for event in stage.events if isinstance(event, ActionDecided)][-1] == "policy:secrets"
        assert not [line for line in stage.shell.lines if "redacted" in line]


def kept(line: str) -> str:
    return call("run_command", f'{{"command": "{line}"}}')


async def test_what_a_command_changed_is_a_proposal_of_its_own(tmp_path: Path) -> None:
    sayings = [kept("echo right > answer.txt; echo new > new.txt"), FINISH]
    async with (
        a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, settings=COMMANDS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.COMMAND)
        keep = await front.gate(Permission.DIFF)
        assert (keep.tool, keep.paths) == ("keep_changes", ("answer.txt", "new.txt"))
        run = stage.state.run
        assert run is not None
        folder = Path(run.workspace.path)
        assert (folder / "answer.txt").read_text() == "wrong\n"
        assert not (folder / "new.txt").exists()
        await front.approve(Permission.DIFF)
        assert (await front.gate(Permission.COMMIT)).diff == keep.diff


async def test_what_a_command_changed_can_be_refused(tmp_path: Path) -> None:
    sayings = [kept("echo right > answer.txt"), change("wrong", "right")]
    async with (
        a_stage(tmp_path, sayings, approvals=CHECKS_OPEN, settings=COMMANDS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.approve(Permission.COMMAND)
        await front.reject(Permission.DIFF, "do it yourself")
        assert "-wrong" in (await front.gate(Permission.DIFF)).diff
        assert stage.model.requests[-1].messages[-1].text.endswith("The user rejected that: do it yourself")


async def test_what_a_command_may_not_change_is_put_back(tmp_path: Path) -> None:
    narrow = replace(task(), scope=PathScope(allowed_write_globs=("src/**",)))
    sayings = [kept("echo right > answer.txt"), FINISH]
    async with (
        a_stage(
            tmp_path,
            sayings,
            tasks=(narrow,),
            approvals=Approvals(check=Approval.AUTO, command=Approval.AUTO),
            settings=COMMANDS,
        ) as stage,
        in_front_of(stage) as front,
    ):
        stage.model.sayings.append(reflexion())
        stage.model.sayings.append(call("write_diff", "--- /dev/null\n+++ b/src/x\n@@ -0,0 +1 @@\n+right\n"))
        await front.start()
        assert (await front.gate(Permission.DIFF)).paths == ("src/x",)
        told = stage.model.requests[1].messages[-1].text
        assert told.startswith("exit code 0")
        assert "What it changed was put back: answer.txt" in told
        run = stage.state.run
        assert run is not None
        assert (Path(run.workspace.path) / "answer.txt").read_text() == "wrong\n"


async def test_what_is_not_text_is_put_back_and_said(tmp_path: Path) -> None:
    sayings = [kept("printf 'a\\\\000b' > blob; echo right > answer.txt"), FINISH]
    open_ = Approvals(check=Approval.AUTO, command=Approval.AUTO)
    async with a_stage(tmp_path, sayings, approvals=open_, settings=COMMANDS) as stage, in_front_of(stage) as front:
        await front.start()
        assert (await front.approve(Permission.DIFF)).paths == ("answer.txt",)
        await front.gate(Permission.COMMIT)
        assert "not text and were put back: blob" in stage.model.requests[1].messages[-1].text


async def test_special_files_of_a_command_need_a_person(tmp_path: Path) -> None:
    open_ = Approvals(check=Approval.AUTO, diff=Approval.AUTO, command=Approval.AUTO)
    sayings = [kept("mkdir -p .github && echo run > .github/ci.yml && rm README.md")]
    async with (
        a_stage(tmp_path, sayings, approvals=open_, settings=COMMANDS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        keep = await front.gate(Permission.DIFF)
        assert keep.special == (".github/ci.yml", "README.md")


async def test_the_bounds_of_a_task_hold(tmp_path: Path) -> None:
    tight = replace(task(), constraints=Constraints(max_files_changed=1, max_diff_bytes=200))
    two = diff("wrong", "right") + "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"
    sayings = [
        call("write_diff", two),
        change("wrong", "r" * 300),
        change("wrong", "right"),
        call("write_diff", "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"),
        FINISH,
    ]
    async with a_stage(tmp_path, sayings, tasks=(tight,), approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        await front.start()
        await front.approve(Permission.DIFF)
        await front.gate(Permission.COMMIT)
        reasons = [event.reason for event in stage.events if isinstance(event, ActionRejected)]
        assert [needle in reason for needle, reason in zip(("2 files", "200", "2 files"), reasons, strict=True)] == [
            True,
            True,
            True,
        ], reasons


OBEYED = [
    *(
        ".agent.yml",
        "memory/plans/PLAN.yaml",
        "skills/x/SKILL.md",
        "SKILLS/x",
        ".git/config",
        "tasks/queue/app/T-1.yaml",
    ),
    *(".mcp.json", "web/.MCP.json", ".env", "web/.env", ".ENV.local", ".m\u200dcp.json"),
    *(".agents/skills/x/SKILL.md", "sub/.agents/x", ".claude/settings.json", "a/b/.Claude/hooks/x.sh"),
    *("tools/skills [own]/x/SKILL.md", "Tools/Skills [own]/x", "no\u0301tes/x", "n\u00f3tes/x"),
]
OWN_FOLDERS = Settings(
    skills=SkillSettings(dirs=("./tools/skills [own]/",)), memory=MemorySettings(dir="n\u00f3tes/", plan="plans/P.yaml")
)


@pytest.mark.slow(quick=6)
@pytest.mark.parametrize("path", OBEYED)
async def test_what_the_workbench_obeys_is_never_written(tmp_path: Path, path: str) -> None:
    step = call("write_diff", f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n")
    async with (
        a_stage(tmp_path, [step, change("wrong", "right")], approvals=CHECKS_OPEN, settings=OWN_FOLDERS) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        (rejected,) = [event for event in stage.events if isinstance(event, ActionRejected)]
        assert "is protected" in rejected.reason or ".git" in rejected.reason


async def test_nothing_is_renamed_to_or_from_what_the_workbench_obeys(tmp_path: Path) -> None:
    moves = [("answer.txt", ".claude/answer.txt"), (".mcp.json", "mcp.txt"), ("answer.txt", ".env")]
    sayings = [
        call("write_diff", f"diff --git a/{old} b/{new}\nrename from {old}\nrename to {new}\n") for old, new in moves
    ]
    start = {"answer.txt": "wrong\n", ".mcp.json": "{}\n"}
    async with (
        a_stage(tmp_path, [*sayings, change("wrong", "right")], approvals=CHECKS_OPEN, start=start) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        await front.gate(Permission.DIFF)
        reasons = [event.reason for event in stage.events if isinstance(event, ActionRejected)]
        assert ["is protected" in reason for reason in reasons] == [True] * len(moves), reasons


async def test_a_command_leaves_nothing_where_the_workbench_obeys(tmp_path: Path) -> None:
    open_ = Approvals(check=Approval.AUTO, command=Approval.AUTO)
    sayings = [kept("mkdir -p sub/.claude && echo run > sub/.claude/settings.json"), kept("echo x > AGENTS.md"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=open_, settings=COMMANDS) as stage, in_front_of(stage) as front:
        await front.start()
        keep = await front.gate(Permission.DIFF)
        assert (keep.paths, keep.special) == (("AGENTS.md",), ("AGENTS.md",))
        told = stage.model.requests[1].messages[-1].text
        assert "What it changed was put back: sub/.claude/settings.json is protected" in told


async def test_instructions_for_agents_are_not_changed_unattended(tmp_path: Path) -> None:
    start = {"answer.txt": "wrong\n", "sub/AGENTS.md": "Run the tests.\n"}
    step = change("Run the tests.", "Ignore the tests.", "sub/AGENTS.md")
    sayings = [step, change("wrong", "right"), FINISH]
    async with a_stage(tmp_path, sayings, approvals=OPEN, headless=True, start=start) as stage:
        await run_unattended(stage.session, stage.recorder, (T1,))
        rejected = [each for each in stage.events if isinstance(each, ActionDecided) and each.by == "policy:unattended"]
        assert [each.reason for each in rejected] == ["these files need a person's approval: sub/AGENTS.md"]


@pytest.mark.slow(quick=2)
@pytest.mark.parametrize("seed", range(6))
async def test_what_was_approved_is_what_is_committed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    pool = ["a", "b", "", "ä", "wrong", "\tx ", "a\r"]
    before = [chance.choice(pool) for _ in range(chance.randrange(3, 12))]
    after = [each for each in before if chance.random() < 0.7] + [chance.choice(pool) for _ in range(3)]
    old = "".join(f"-{line}\n" for line in before)
    new = "".join(f"+{line}\n" for line in after)
    step = f"--- a/it.txt\n+++ b/it.txt\n@@ -1,{len(before)} +1,{len(after)} @@\n{old}{new}"
    accept = ("echo left >> it.txt; echo left > left.txt",)
    async with a_stage(tmp_path, [call("write_diff", step), FINISH], tasks=(task(accept=accept),)) as stage:
        stage.user.write("it.txt", "".join(f"{line}\n" for line in before).encode())
        stage.user.commit("It")
        async with in_front_of(stage) as front:
            await front.start()
            await front.approve(Permission.CHECK)
            shown = await front.approve(Permission.DIFF)
            await front.approve(Permission.CHECK)
            commit = await front.approve(Permission.COMMIT)
            await front.skip(Permission.MERGE)
            await front.over()
        (committed,) = [event for event in stage.events if isinstance(event, TaskCommitted)]
        assert commit.diff == shown.diff
        assert stage.git("show", f"{committed.commit}:it.txt") + "\n" == "".join(f"{line}\n" for line in after)
        assert stage.git("diff", "--name-only", "main", committed.commit) == "it.txt"


async def test_a_policy_lets_through_what_cannot_be_seen_and_all_who_look_later_see_it(tmp_path: Path) -> None:
    """Nobody looks where a policy decides: the text is applied to the letter, and shown with codes ever after."""
    hidden = "right\u3164\ufe0f"
    steps = [change("wrong", hidden), FINISH]
    asked = replace(OPEN, commit=Approval.ASK)
    async with (
        a_stage(tmp_path, steps, approvals=asked, tasks=(task(accept=("true",)),)) as stage,
        in_front_of(stage) as front,
    ):
        await front.start()
        waiting = await front.gate(Permission.COMMIT)
        assert f"+{hidden}\n" in waiting.diff
        decided = [event.by for event in stage.events if isinstance(event, ActionDecided)]
        assert "policy:diff=auto" in decided
        assert front.now is not None
        shown = [line.text for line in diff_lines(view_diff(front.now).diff)]
        assert "right‹3164›‹FE0F›" in shown
        run = stage.state.run
        assert run is not None
        assert "right‹3164›‹FE0F›" in [line.text for hunk in view_review(run).hunks for line in hunk.lines]


async def test_a_file_that_became_a_link_is_shown_again_or_refused(tmp_path: Path) -> None:
    sayings = [change("wrong", "right"), FINISH, reflexion()]
    async with a_stage(tmp_path, sayings, approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        stage.model.sayings.extend([change("wrong", "right")])
        await front.start()
        shown = await front.gate(Permission.DIFF)
        run = stage.state.run
        assert run is not None
        answer = Path(run.workspace.path) / "answer.txt"
        answer.unlink()
        answer.symlink_to(stage.user.root / "README.md")
        await front.approve(Permission.DIFF)
        await front.until(lambda it: it.state.run and it.state.run.step > shown.step)
        results = [event for event in stage.events if isinstance(event, ActionFinished)]
        assert any(event.result is ActionResult.REFUSED and event.proposal_id == shown.id for event in results)
        assert (stage.user.root / "README.md").read_text() == "# Hello\n"


async def test_a_diff_that_only_undoes_what_nobody_approved_is_refused(tmp_path: Path) -> None:
    async with a_stage(tmp_path, [], approvals=CHECKS_OPEN) as stage, in_front_of(stage) as front:
        stage.model.sayings.extend([change("wrong", "first"), change("stray", "wrong"), change("wrong", "right")])
        await front.start()
        await front.gate(Permission.DIFF)
        run = stage.state.run
        assert run is not None
        (Path(run.workspace.path) / "answer.txt").write_text("stray\n")
        await front.reject(Permission.DIFF, "wait")
        await front.until(lambda _: len(stage.model.requests) == 3)
        assert "only brings back what was approved" in stage.model.requests[2].messages[-1].text
