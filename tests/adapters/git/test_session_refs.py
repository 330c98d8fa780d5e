"""A session's refs between two machines: pushed with a fence, taken over, fetched, continued."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_workbench.adapters.git.remote_transport import RemoteAddress, Transport
from agent_workbench.core.errors import LockedError, StorageError, WorkspaceError
from agent_workbench.core.events import TaskRolledBack
from agent_workbench.core.history.leftovers import SessionFacts
from tests.adapters.git.fingerprint import fingerprint
from tests.adapters.git.machines import AUDIT, BRANCH, Journal, Machine, Remote
from tests.adapters.git.user import OTHER_SESSION, SESSION, TASK, User, commit_task


async def test_a_session_continues_on_another_machine_with_its_files_modes_and_history(
    here: Machine, there: Machine, journal: Journal, remote: Remote
) -> None:
    before = [fingerprint(each.user.root) for each in (here, there)]
    first = await journal.begin(here)
    await journal.change(first, {"src/app.py": "print('one')\n"})
    await journal.change(first, {"run.sh": "#!/bin/sh\n"}, executable=True)
    Path(first.facts.path, "notes.txt").write_text("not approved yet\n")
    await journal.change(first, {"src/app.py": "print('two')\n"})
    await here.refs.push(await here.head(journal, 4, 1))
    await first.release(keep=True)

    await there.refs.take_over(await there.head(journal, 4, 2), journal.recorded)
    head = await there.refs.fetch(SESSION, journal.recorded)
    assert head == await there.head(journal, 4, 2)
    second = await there.repository.open(there.user.request(base=first.facts.base))
    root = Path(second.facts.path)
    assert second.facts.rebuilt
    assert (root / "src/app.py").read_text() == "print('two')\n"
    assert (root / "notes.txt").read_text() == "not approved yet\n"
    assert os.access(root / "run.sh", os.X_OK)
    assert not os.access(root / "src/app.py", os.X_OK)
    assert "notes.txt" in [each.path for each in await second.unapproved_changes(journal.tree)]
    await journal.change(second, {"src/app.py": "print('three')\n"})
    commit = await journal.commit(second)
    await there.refs.push(await there.head(journal, 6, 2))
    refs = remote.refs()
    assert refs[f"refs/heads/{BRANCH}"] == refs[f"refs/agent/{SESSION}/tip/{TASK}"] == commit
    assert {ref for ref in refs if not ref.startswith(("refs/agent/", "refs/heads/agent/"))} == {"refs/heads/main"}
    assert [fingerprint(each.user.root) for each in (here, there)] == before


async def test_uncommitted_changes_travel_as_the_base_of_the_task(
    here: Machine, there: Machine, journal: Journal
) -> None:
    here.user.write("draft.py", "x = 1\n")
    base = await here.repository.snapshot_checkout(SESSION, {})
    await journal.begin(here, base)
    await here.refs.push(await here.head(journal, 1, 1))
    await there.refs.fetch(SESSION, journal.recorded)
    workspace = await there.repository.open(there.user.request(base=base))
    assert Path(workspace.facts.path, "draft.py").read_text() == "x = 1\n"
    assert not (there.user.root / "draft.py").exists()


async def test_a_writer_with_an_old_fence_is_refused_as_a_whole(
    here: Machine, there: Machine, journal: Journal, remote: Remote
) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await here.refs.push(await here.head(journal, 2, 1))
    await there.refs.take_over(await there.head(journal, 2, 2), journal.recorded)
    refs = remote.refs()
    await journal.change(workspace, {"a.py": "2\n"})
    for machine in (here, here.again()):
        with pytest.raises(LockedError, match="taken over by there"):
            await machine.refs.push(await machine.head(journal, 3, 1))
    with pytest.raises(LockedError):
        await here.refs.take_over(await here.head(journal, 2, 2), journal.recorded)
    assert remote.refs() == refs


async def test_of_two_that_take_over_at_once_one_gets_the_session(
    here: Machine, there: Machine, journal: Journal, remote: Remote
) -> None:
    await journal.begin(here)
    await here.refs.push(await here.head(journal, 1, 1))
    heads = [await here.head(journal, 1, 2), await there.head(journal, 1, 2)]
    taken = await asyncio.gather(
        *(each.refs.take_over(head, journal.recorded) for each, head in zip((here, there), heads, strict=True)),
        return_exceptions=True,
    )
    assert sum(each is None for each in taken) == 1
    assert sum(isinstance(each, LockedError) for each in taken) == 1, taken
    assert len(remote.git("rev-list", AUDIT).splitlines()) == 2


async def test_a_push_that_was_stopped_while_another_machine_took_over_changes_nothing(
    here: Machine, there: Machine, journal: Journal, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The push stands still after the remote has its objects, and before it moves a ref."""
    workspace = await journal.begin(here)
    await here.refs.push(await here.head(journal, 1, 1))
    await journal.change(workspace, {"a.py": "1\n"})
    told, go, hooks = tmp_path / "told", tmp_path / "go", tmp_path / "hooks"
    for pipe in (told, go):
        os.mkfifo(pipe)
    hooks.mkdir()
    (hooks / "pre-receive").write_text(f"#!/bin/sh\necho stopped > {told}\nread x < {go}\n")
    (hooks / "pre-receive").chmod(0o755)
    with monkeypatch.context() as patch:
        words = (f"--receive-pack=git -c core.hooksPath={hooks} receive-pack",)
        patch.setattr(RemoteAddress, "push_words", property(lambda _: words))
        pushing = asyncio.create_task(here.refs.push(await here.head(journal, 2, 1)))
        assert await asyncio.to_thread(told.read_text) == "stopped\n"
    await there.refs.take_over(await there.head(journal, 1, 2), journal.recorded)
    refs = remote.refs()
    await asyncio.to_thread(go.write_text, "go\n")
    with pytest.raises(LockedError, match="taken over by there"):
        await pushing
    assert remote.refs() == refs


async def test_an_answer_of_the_remote_that_was_lost_costs_nothing(
    here: Machine, journal: Journal, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await journal.begin(here)
    await here.refs.push(await here.head(journal, 1, 1))
    await journal.change(workspace, {"a.py": "1\n"})
    push = Transport.push

    def lost(transport: Transport, updates: Mapping[str, str], leases: Mapping[str, str]) -> str:
        push(transport, updates, leases)
        raise StorageError("the connection was cut")

    with monkeypatch.context() as patch:
        patch.setattr(Transport, "push", lost)
        with pytest.raises(StorageError, match="cut"):
            await here.refs.push(await here.head(journal, 2, 1))
    await journal.change(workspace, {"a.py": "2\n"})
    await here.refs.push(await here.head(journal, 3, 1))
    assert f"refs/agent/{SESSION}/3" in remote.refs()
    assert [each.seq for each in await here.refs.heads(SESSION)] == [3]


async def test_nothing_is_pushed_twice_and_a_restart_pushes_what_is_missing(
    here: Machine, journal: Journal, remote: Remote
) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    head = await here.head(journal, 2, 1)
    await here.refs.push(head)
    refs = remote.refs()
    await here.refs.push(head)
    await here.again().refs.push(head)
    assert remote.refs() == refs
    await journal.change(workspace, {"a.py": "2\n"})
    await here.again().refs.push(head)
    assert f"refs/agent/{SESSION}/3" in remote.refs()


async def test_checkpoints_that_waited_are_one_push(
    here: Machine, journal: Journal, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await journal.begin(here)
    await here.refs.push(await here.head(journal, 1, 1))
    for number in range(5):
        await journal.change(workspace, {"a.py": f"{number}\n"})
    pushes, push = [], Transport.push

    def counted(transport: Transport, updates: Mapping[str, str], leases: Mapping[str, str]) -> str:
        pushes.append(updates)
        return push(transport, updates, leases)

    monkeypatch.setattr(Transport, "push", counted)
    for seq in range(2, 7):
        await here.refs.push(await here.head(journal, seq, 1), if_missing=True)
    assert len(pushes) == 1
    await here.refs.push(await here.head(journal, 6, 1))
    assert [each.seq for each in await here.refs.heads(SESSION)] == [6]


async def test_a_branch_of_somebody_else_stays_and_the_session_can_be_continued_all_the_same(
    here: Machine, there: Machine, journal: Journal, remote: Remote
) -> None:
    foreign = await commit_task(there.repository, there.user.request(session=OTHER_SESSION), {"other.py": "x\n"})
    there.user.git("push", "--quiet", "origin", BRANCH)
    there.user.git("branch", "-D", BRANCH)
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await journal.commit(workspace)
    notes = await here.refs.push(await here.head(journal, 3, 1))
    assert [f"{BRANCH} has other work" in each for each in notes] == [True]
    assert remote.refs()[f"refs/heads/{BRANCH}"] == foreign
    await there.refs.fetch(SESSION, journal.recorded)
    assert there.user.git("rev-parse", BRANCH) == here.user.git("rev-parse", BRANCH)


async def test_a_branch_here_with_other_work_is_refused_and_stays(
    here: Machine, there: Machine, journal: Journal
) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await here.refs.push(await here.head(journal, 2, 1))
    there.user.git("checkout", "--quiet", "-b", BRANCH)
    there.user.write("mine.py", "x\n")
    there.user.commit("mine")
    there.user.git("checkout", "--quiet", "main")
    refs = there.user.git("for-each-ref")
    with pytest.raises(WorkspaceError, match="already exists here with other work"):
        await there.refs.fetch(SESSION, journal.recorded)
    assert there.user.git("for-each-ref", "refs/heads", f"refs/agent/{SESSION}") == "\n".join(
        line for line in refs.splitlines() if "refs/heads" in line
    )


async def test_commits_of_the_user_on_top_of_the_task_stay(here: Machine, there: Machine, journal: Journal) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await journal.commit(workspace)
    await here.refs.push(await here.head(journal, 3, 1))
    await there.refs.fetch(SESSION, journal.recorded)
    there.user.git("worktree", "add", "--quiet", "../extra", BRANCH)
    extra = User(there.user.root.parent / "extra")
    extra.write("mine.py", "x\n")
    mine = extra.commit("mine")
    await there.refs.fetch(SESSION, journal.recorded)
    assert there.user.git("rev-parse", BRANCH) == mine


async def test_a_session_that_comes_back_keeps_what_this_machine_had_beside_it(
    here: Machine, there: Machine, journal: Journal
) -> None:
    first = await journal.begin(here)
    await journal.change(first, {"a.py": "1\n"})
    await here.refs.push(await here.head(journal, 2, 1))
    lost = Journal(list(journal.recorded), journal.tree)
    await lost.change(first, {"a.py": "lost\n"})  # a checkpoint whose line never was copied
    Path(first.facts.path, "b.py").write_text("unsaved\n")
    await first.release(keep=True)
    ours = here.user.git("rev-parse", f"refs/agent/{SESSION}/3")

    await there.refs.take_over(await there.head(journal, 2, 2), journal.recorded)
    await there.refs.fetch(SESSION, journal.recorded)
    second = await there.repository.open(there.user.request(base=first.facts.base))
    await journal.change(second, {"a.py": "2\n"})
    await journal.commit(second)
    await there.refs.push(await there.head(journal, 4, 2))
    await second.release(keep=True)

    back = here.again()
    await back.refs.take_over(await back.head(journal, 4, 3), journal.recorded)
    await back.refs.fetch(SESSION, journal.recorded)
    third = await back.repository.open(back.user.request(base=first.facts.base))
    assert Path(third.facts.path, "a.py").read_text() == "2\n"
    assert not Path(third.facts.path, "b.py").exists()
    withdrawn = here.user.git("for-each-ref", "--format=%(objectname)", f"refs/agent/{SESSION}/withdrawn").split()
    assert ours in withdrawn
    assert "unsaved" in [here.user.git("show", f"{each}:b.py") for each in withdrawn if each != ours]
    commit = await journal.commit(third)
    assert here.user.git("rev-parse", BRANCH) == commit
    await back.refs.push(await back.head(journal, 5, 3))


async def test_a_branch_that_another_machine_finished_can_be_cleaned_here(
    here: Machine, there: Machine, journal: Journal
) -> None:
    first = await journal.begin(here)
    await journal.change(first, {"a.py": "1\n"})
    await here.refs.push(await here.head(journal, 2, 1))
    await first.release(keep=True)
    await there.refs.take_over(await there.head(journal, 2, 2), journal.recorded)
    await there.refs.fetch(SESSION, journal.recorded)
    second = await there.repository.open(there.user.request(base=first.facts.base))
    await journal.commit(second)
    await there.refs.push(await there.head(journal, 3, 2))
    await here.refs.fetch(SESSION, journal.recorded)
    facts = SessionFacts({}, lambda _: "", "")
    listed = {each.name: each.kept for each in await here.repository.leftovers(facts, ())}
    assert listed == {BRANCH: "", f"refs/agent/{SESSION}": ""}


async def test_a_rolled_back_task_leaves_no_branch_on_the_other_machine(
    here: Machine, there: Machine, journal: Journal
) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await journal.commit(workspace)
    await workspace.restore(workspace.facts.base)
    await workspace.withdraw()
    journal.add(TaskRolledBack(TASK, workspace.facts.base, "no"))
    await here.refs.push(await here.head(journal, 4, 1))
    await there.refs.fetch(SESSION, journal.recorded)
    assert there.user.git("for-each-ref", "refs/heads/agent") == ""
    reopened = await there.repository.open(there.user.request(base=workspace.facts.base))
    assert not Path(reopened.facts.path, "a.py").exists()


async def test_refs_are_removed_only_as_they_are_here_and_the_audit_ref_never(
    here: Machine, there: Machine, journal: Journal, remote: Remote
) -> None:
    workspace = await journal.begin(here)
    await journal.change(workspace, {"a.py": "1\n"})
    await here.refs.push(await here.head(journal, 2, 1))
    checkpoint = f"refs/agent/{SESSION}/2"
    mine = {checkpoint: remote.refs()[checkpoint], f"refs/heads/{BRANCH}": "0" * 40}
    await here.refs.remove(SESSION, mine)
    assert checkpoint not in remote.refs()
    assert {AUDIT, f"refs/heads/{BRANCH}"} <= remote.refs().keys()
    await there.refs.take_over(await there.head(journal, 2, 2), journal.recorded)
    at = f"refs/agent/{SESSION}/at/{TASK}"
    with pytest.raises(LockedError, match="continued on another machine"):
        await here.refs.remove(SESSION, {at: remote.refs()[at]})
    assert at in remote.refs()
