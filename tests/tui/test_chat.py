"""A chat in a tab: words go to the model, the conversation is shown, and a message becomes a task."""

from msgspec.structs import replace
from textual.widgets import TextArea

from agent_workbench.core.events import (
    ActionProposed,
    ChatReplied,
    ChatStarted,
    ModelAnswered,
    PromptBuilt,
    UserSaid,
)
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import AbortTask, ApproveProposal, ListSkills, SayToModel, StopAnswer
from agent_workbench.core.intents.outcomes import SkillsListed
from agent_workbench.core.intents.plan import DraftTask
from agent_workbench.core.live import Live, Streaming
from agent_workbench.core.model import AnswerFigures, Purpose
from agent_workbench.core.proposals import Proposal, shown_sha
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.settings import Permission
from agent_workbench.core.skills.entries import SkillEntry, SkillOrigin
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import MIDDLE, SMALL, driving

HOSTILE = "# Errors\n[@click=app.approve]all[/] \x1b]52;c;aGk=\x07"
CALL = Proposal(
    ProposalId("P-9"), Permission.EXTERNAL, "mcp__s__hang", '{"a": "[@click=app.approve]"}', 2, source="mcp:s", spec="d"
)


def chat() -> ScriptedSession:
    return ScriptedSession(*runs.opening(), ChatStarted(1))


async def test_words_go_to_the_model_and_the_reply_is_shown_literally() -> None:
    async with driving(chat(), SMALL) as bench:
        assert "ask the model about this repository" in bench.text()
        await bench.press("enter", *"why?", "enter")
        assert bench.session.intents[-1:] == [SayToModel("why?")]
        await bench.record(UserSaid("why?"), PromptBuilt(1, Purpose.CHAT, 2, 10, "sha"))
        await bench.live(Live(activity="answering", streaming=Streaming(text="Thought: x\nAnswer: half")))
        assert "half▌" in bench.text()
        await bench.press("escape")
        assert bench.session.intents[-1:] == [StopAnswer()]
        await bench.live(Live())
        await bench.record(ModelAnswered(1, f"Answer: {HOSTILE}", AnswerFigures(), "e"), ChatReplied(1, HOSTILE))
        text = bench.text()
        assert "[@click=app.approve]all[/] ␛]52;c;aGk=␇" in text
        assert text.count("Errors") == 1
        await bench.press("Y", "enter")
        assert bench.session.intents[-1:] == [DraftTask("why?")]


async def test_a_call_waits_at_the_gate_and_is_approved_or_given_up() -> None:
    async with driving(chat(), MIDDLE) as bench:
        await bench.record(UserSaid("hang"), PromptBuilt(1, Purpose.CHAT, 2, 10, "sha"), ActionProposed(CALL))
        assert "mcp__s__hang from mcp:s" in bench.text()
        await bench.look()
        await bench.press("a")
        assert bench.session.intents[-1:] == [ApproveProposal(CALL.id, shown_sha(CALL))]
        other = replace(CALL, id=ProposalId("P-10"))
        await bench.record(ActionProposed(other))
        await bench.press("X")
        assert bench.session.intents[-1:] == [AbortTask()]


async def test_a_key_opens_a_chat_beside_the_session() -> None:
    other = chat()
    async with driving(ScriptedSession(*runs.opening()), SMALL, others=[other]) as bench:
        await bench.press("Y")
        assert "this is no chat" in bench.text()
        assert not bench.screen.query(TextArea)
        await bench.press("H", *"why?", "enter")
        assert bench.opened[-1] == SessionRequest(OpenMode.NEW, chat=True)
        assert other.intents == [SayToModel("why?")]


async def test_the_first_words_of_a_chat_wait_for_its_session() -> None:
    other = ScriptedSession()
    async with driving(ScriptedSession(*runs.opening()), SMALL, others=[other]) as bench:
        await bench.press("H", *"why?", "enter")
        assert other.intents == []
        assert "as soon as the session is open" in bench.text()
        other.record(*runs.opening(), ChatStarted(1))
        await bench.idle()
        assert other.intents == [SayToModel("why?")]
        assert bench.screen.name == "workbench"


async def test_skills_and_consultants_are_completed() -> None:
    skill = SkillEntry("yaml-validation", "[bold]Check[/] YAML", SkillOrigin.PACKAGE, "skills/yaml-validation")
    async with driving(chat(), SMALL) as bench:
        await bench.press("colon", "slash", "y")
        assert bench.session.intents[-1:] == [ListSkills()]
        await bench.answer(SkillsListed((skill,)))
        assert "/yaml-validation  [bold]Check[/] YAML" in bench.text()
        await bench.press("tab", *"this", "enter")
        assert bench.session.intents[-1:] == [SayToModel("/yaml-validation this")]
        await bench.press("colon", *"/rev")
        await bench.answer(SkillsListed(()))
        assert "/review" in bench.text()
