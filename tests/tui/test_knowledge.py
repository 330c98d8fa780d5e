"""The screen of the notes: searched while one types, read, edited; and notes at the gate."""

from agent_workbench.core.events import ActionProposed, NotesOffered, OfferedNote
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.intents import EditNote, FindNotes, OfferNotes
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote
from agent_workbench.core.outcomes import Accepted, NotesFound, Refused
from agent_workbench.core.proposal_kinds import KnowledgeProposal
from agent_workbench.core.proposals import OFFER_NOTES
from agent_workbench.core.proposed_action import SimilarNote
from agent_workbench.core.repo.retrieval import Signal, SignalKind
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, driving

RETRY = KnowledgeNote(
    "retry-logic", "---\ntitle: Retry \x1b]52;c;x\x07[bold]\ntype: concept\n---\n\none\ntwo\nthree\nfour\n"
)
HIT = KnowledgeHit(RETRY, 3.2, (Signal(SignalKind.WORDS, 1.0, ("retry",)),))
BAD = KnowledgeHit(KnowledgeNote("binary", problem="is not text"), 0.0)
DIFF = """\
diff --git a/memory/knowledge/uv.md b/memory/knowledge/uv.md
new file mode 100644
--- /dev/null
+++ b/memory/knowledge/uv.md
@@ -0,0 +1 @@
+Use uv.
"""
NOTES = KnowledgeProposal(
    *(ProposalId("P-99"), OFFER_NOTES, "==> memory/knowledge/uv.md <==\nUse uv.\n", 0),
    diff=DIFF,
    paths=("memory/knowledge/uv.md",),
    similar=(SimilarNote("memory/knowledge/uv.md", "memory/knowledge/pip.md", "Use pip."),),
    origins=("a retrospective",),
)


async def test_notes_are_searched_read_and_edited() -> None:
    async with driving(ScriptedSession(*runs.up_to_first_diff()), SMALL) as bench:
        await bench.press("M")
        assert bench.session.intents == [FindNotes("")]
        await bench.answer(NotesFound("", (BAD, HIT), "in memory/knowledge binary.md is not text; not searched"))
        for words in ("2 notes, by name", "binary.md is not text", "it is not text", "Retry ␛]52;c;x␇[bold]"):
            assert words in bench.text()
        assert "three" not in bench.text()
        await bench.press("slash", "r")
        assert bench.session.intents[1:] == [FindNotes("r")]
        await bench.answer(NotesFound("r", (HIT,)))
        assert "1 note for “r”" in bench.text()
        assert "words 100% retry" in bench.text()
        await bench.press("enter", "enter")
        assert "three" in bench.text()
        await bench.press("e", "Z", "ctrl+s")
        assert EditNote("retry-logic", RETRY.text, f"Z{RETRY.text}") in bench.session.intents
        assert bench.session.intents[-1] == FindNotes("r"), "what is shown is searched again"
        await bench.answer(NotesFound("r", ()))
        assert "no note fits" in bench.text()
        await bench.press("slash", "backspace")
        await bench.answer(NotesFound("", ()))
        assert "`agent knowledge add TITLE` writes the first note" in bench.text()
        await bench.press("escape")
        assert bench.screen.name == "workbench"


async def test_what_was_rejected_is_offered_on_demand() -> None:
    session = ScriptedSession(*runs.opening())
    async with driving(session, SMALL) as bench:
        await bench.press("M")
        await bench.answer(NotesFound("", ()))
        session.outcome = Refused("nothing was rejected")
        await bench.press("plus")
        assert session.intents[-1] == OfferNotes()
        assert "nothing was rejected" in bench.text()
        session.outcome = Accepted()
        await bench.press("plus")
        assert bench.screen.name == "workbench"


async def test_notes_at_the_gate_say_what_they_repeat() -> None:
    offered = NotesOffered((OfferedNote("uv", "Use uv."),), "a retrospective")
    session = ScriptedSession(*runs.opening(), offered, ActionProposed(NOTES))
    async with driving(session, SMALL) as bench:
        await bench.press("3", "z")
        for words in (
            "1 note to keep beyond this task",
            "From: a retrospective",
            "repeats memory/knowledge/pip.md",
            "Use uv.",
        ):
            assert words in bench.text()
        assert "knowledge" in bench.text()
        assert session.outcome == Accepted()
