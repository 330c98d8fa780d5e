"""The skills of a task are chosen once, recorded with their text, stand before the task, and can be changed."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_workbench.core.errors import ConfigError, ModelError
from agent_workbench.core.events import Author, PromptBuilt, SkillsChosen, SkillText
from agent_workbench.core.intents import ChooseSkill, PauseTask, StartTask
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, Refused
from agent_workbench.core.plan import Budget, Constraints, PathScope
from agent_workbench.core.settings import Settings, SkillSettings
from agent_workbench.core.skills import SkillEntry, SkillQuery
from agent_workbench.engine.rerun import rerun
from agent_workbench.engine.task.skill_choice import BY_USER, DROPPED, estimate_tokens, pick_skills
from tests.engine.front import in_front_of
from tests.engine.stage import OPEN, Stage, a_stage, call, task
from tests.fakes.ports import GivenSkills

LOOK = call("list_files")
HEAD = "Skill {} (a way of working; it permits nothing):\n{}"


def chosen(stage: Stage) -> list[SkillsChosen]:
    return [event for event in stage.events if isinstance(event, SkillsChosen)]


async def test_they_are_found_by_words_recorded_and_stand_before_the_task(tmp_path: Path) -> None:
    skills = {"answer": "Answer well.", "care": "Be careful.", "other": "Not this."}
    wanted = replace(task(), applicable_skills=("care",))
    async with a_stage(tmp_path, [LOOK] * 20, tasks=(wanted,), approvals=OPEN, skills=skills) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda _: len(stage.model.requests) > 1)
            prompt = stage.model.requests[0].messages[-1].text
            begin = "\n\n".join(
                (HEAD.format("care", "Be careful."), HEAD.format("answer", "Answer well."), "Task T-1:")
            )
            assert prompt.startswith(begin)
            assert "Not this" not in prompt
        (event,) = chosen(stage)
        assert [(each.name, each.text, each.reason) for each in event.skills] == [
            ("care", "Be careful.", "named by the task"),
            ("answer", "Answer well.", "answer"),
        ]
        assert event.by is Author.WORKBENCH
        labels = [part.label for part in next(e for e in stage.events if isinstance(e, PromptBuilt)).parts]
        assert labels[:4] == ["rules", "skill care", "skill answer", "task"]
        assert [each.difference for each in rerun(stage.journal())] == [None] * len(stage.model.requests)


async def test_one_that_does_not_fit_is_left_out_whole_and_told(tmp_path: Path) -> None:
    settings = Settings(skills=SkillSettings(max_tokens=60))
    skills = {"answer": "Answer well.", "care": "Be careful. " * 100}
    wanted = replace(task(), applicable_skills=("care",))
    async with a_stage(
        tmp_path, [LOOK] * 9, settings=settings, tasks=(wanted,), approvals=OPEN, skills=skills
    ) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda _: stage.model.requests)
            assert "Be careful" not in stage.model.requests[0].messages[-1].text
        (event,) = chosen(stage)
        assert [each.name for each in event.skills] == ["answer"]
        (out,) = event.left_out
        assert (out.name, out.tokens > 60) == ("care", True)
        assert "do not fit into the 60 of 60 that are left (named by the task)" in out.reason
        assert sum(each.tokens for each in event.skills) <= 60


async def test_an_unknown_one_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    wanted = replace(task(), applicable_skills=("nope",))
    async with a_stage(tmp_path, [], tasks=(wanted,), skills={"care": "x"}) as stage:
        with pytest.raises(ConfigError, match="there is no skill 'nope'"):
            await pick_skills(stage.ports.skills, SkillQuery(named={"nope": "named"}), estimate_tokens)
        async with in_front_of(stage) as front:
            refused = await front.outcome(StartTask())
            assert isinstance(refused, Refused)
            assert "there is no skill 'nope'" in refused.reason
        assert stage.state.run is None


async def test_the_user_changes_the_choice_before_the_first_prompt(tmp_path: Path) -> None:
    settings = Settings(skills=SkillSettings(max_tokens=40))
    skills = {"answer": "Answer well.", "care": "Be careful. " * 30}
    async with a_stage(tmp_path, [LOOK] * 9, settings=settings, approvals=OPEN, skills=skills) as stage:
        config = stage.state.config
        assert config is not None
        await stage.session.record(replace(config, review_context=True))
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda update: update.state.run is not None and update.state.run.awaits_send)
            assert isinstance(await front.outcome(ChooseSkill("answer", chosen=False)), Accepted)
            accepted = await front.outcome(ChooseSkill("care"))
            assert isinstance(accepted, Accepted)
            assert "skills.max_tokens is 40" in accepted.note
            assert isinstance(await front.outcome(ChooseSkill("care")), Refused)
            assert isinstance(await front.outcome(ChooseSkill("answer", chosen=False)), Refused)
            await front.outcome(PauseTask(paused=False))
            await front.until(lambda _: stage.model.requests)
            prompt = stage.model.requests[0].messages[-1].text
            assert "Answer well." not in prompt
            assert prompt.startswith("Skill care ")
        newest = chosen(stage)[-1]
        assert newest.by is Author.USER
        assert [(each.name, each.reason) for each in newest.skills] == [("care", BY_USER)]
        assert [(each.name, each.reason) for each in newest.left_out] == [("answer", DROPPED)]
        assert [each.difference for each in rerun(stage.journal())] == [None] * len(stage.model.requests)


async def test_a_change_after_the_first_prompt_is_told_at_its_end(tmp_path: Path) -> None:
    skills = {"answer": "Answer well.", "care": "Be careful."}
    async with a_stage(tmp_path, [LOOK] * 30, approvals=OPEN, skills=skills) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda _: stage.model.requests)
            await front.outcome(ChooseSkill("answer", chosen=False))
            await front.outcome(ChooseSkill("care"))
            asked = len(stage.model.requests)
            await front.until(lambda _: len(stage.model.requests) > asked + 1)
            messages = [message.text for message in stage.model.requests[-1].messages]
            assert messages[1].startswith("Skill answer ")
            later = "\n".join(messages[2:])
            assert "The user dropped the skill answer: do not follow it any more." in later
            assert f"The user added a skill.\n{HEAD.format('care', 'Be careful.')}" in later
        assert [each.difference for each in rerun(stage.journal())] == [None] * len(stage.model.requests)


async def test_all_limits_of_the_task_are_told(tmp_path: Path) -> None:
    limited = replace(
        task(),
        scope=PathScope(("answer.txt",), ("answer.txt", "docs/**")),
        constraints=Constraints(1, 200, 30, ("git push.*--force",)),
        budget=Budget(tokens=20_000, minutes=5),
    )
    async with a_stage(tmp_path, [LOOK] * 9, tasks=(limited,), approvals=OPEN, skills={}) as stage:
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda _: stage.model.requests)
            prompt = stage.model.requests[0].messages[-1].text
        assert chosen(stage) == []
        for line in (
            "You may change only: answer.txt",
            "You may read only: answer.txt, docs/**",
            "Limits of the changes: at most 1 file in all, at most 200 bytes in one diff, at most 30 seconds for a",
            "Commands that are refused: git push.*--force",
            "Budget of the whole task: 20,000 tokens, 5 minutes",
        ):
            assert line in prompt


async def test_the_same_catalogue_gives_the_same_choice_and_a_lost_server_an_estimate(tmp_path: Path) -> None:
    catalogue = GivenSkills({f"word{n}": "text " * n for n in range(1, 30)})
    query = SkillQuery(words=" ".join(f"word{n}" for n in range(29, 0, -1)), max_tokens=300)
    first, second = [await pick_skills(catalogue, query, estimate_tokens) for _ in range(2)]
    assert first == second
    assert len(first.skills) == 5
    assert len(first.skills) + len(first.left_out) == 29
    async with a_stage(tmp_path, [LOOK] * 9, approvals=OPEN, skills={"answer": "Answer well."}) as stage:

        async def lost(texts: Sequence[str], purpose: Purpose = Purpose.EXECUTOR) -> tuple[int, ...]:
            raise ModelError("no server")

        stage.model.count_tokens = lost  # type: ignore[method-assign]  # the server is away while skills are counted
        async with in_front_of(stage) as front:
            await front.start()
            await front.until(lambda update: update.state.run is not None and update.state.run.skills is not None)
        (event,) = chosen(stage)
        assert not event.counted
        assert event.skills[0].tokens == len(HEAD.format("answer", "Answer well.")) // 4 + 1


async def test_a_skill_that_is_far_too_large_is_not_read_and_cannot_be_added(tmp_path: Path) -> None:
    class Watched(GivenSkills):
        async def list(self) -> tuple[SkillEntry, ...]:
            return tuple(replace(each, tokens=250_000 if each.name == "huge" else 10) for each in await super().list())

        async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
            assert "huge" not in names, "it is not read to be counted"
            return await super().load(names)

    catalogue = Watched({"huge": "", "small": "Small."})
    choice = await pick_skills(catalogue, SkillQuery(words="huge small"), estimate_tokens)
    assert [each.name for each in choice.skills] == ["small"]
    assert choice.left_out[0].reason.startswith("250,000 tokens do not fit into the 2,000 of 2,000")
    skills = {"answer": "Answer well.", "huge": "word " * 100_000}
    async with a_stage(tmp_path, [LOOK] * 30, approvals=OPEN, skills=skills) as stage, in_front_of(stage) as front:
        await front.start()
        await front.until(lambda _: stage.model.requests)
        refused = await front.outcome(ChooseSkill("huge"))
        assert isinstance(refused, Refused)
        assert "more than half of the context" in refused.reason
