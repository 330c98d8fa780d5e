"""Figures of earlier sessions: the newest answer of the same model tells how fast it reads."""

import asyncio
from pathlib import Path

from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_list import past_reading_speed
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.events import ModelAnswered, SessionStarted
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.model import AnswerFigures, ModelFacts

FACTS = ModelFacts("embedded", "coder.gguf", 4096)


async def session(folder: Path, day: str, *answers: ModelAnswered) -> None:
    name = SessionId(f"202601{day}T030405-abc234")
    writer = await asyncio.to_thread(JournalWriter.open_new, folder / name, Redactor({}))
    await writer.append(0, "t", SessionStarted(name, "r", CommitId("c"), "0", None, None))
    for seq, answer in enumerate(answers, 1):
        await writer.append(seq, "t", answer)
    await writer.close()


def answered(tokens: int, seconds: float, model: str = "coder.gguf", endpoint: str = "embedded") -> ModelAnswered:
    figures = AnswerFigures(prompt_tokens=tokens, prompt_seconds=seconds)
    return ModelAnswered(1, "Thought: x" * 900, figures, endpoint, model)


def test_the_newest_answer_that_tells_counts(tmp_path: Path) -> None:
    asyncio.run(session(tmp_path, "01", answered(1000, 10.0)))
    asyncio.run(session(tmp_path, "02", answered(1000, 20.0), answered(1000, 5.0), answered(20, 0.1)))
    asyncio.run(
        session(tmp_path, "03", answered(1000, 1.0, model="other.gguf"), answered(1000, 1.0, endpoint="http://far"))
    )
    assert past_reading_speed(tmp_path, FACTS) == 200.0


def test_damage_and_strangers_tell_nothing(tmp_path: Path) -> None:
    assert past_reading_speed(tmp_path / "none", FACTS) == 0.0
    asyncio.run(session(tmp_path, "01", answered(1000, 10.0)))
    (tmp_path / "20260102T030405-abc234").mkdir()
    asyncio.run(session(tmp_path, "03", answered(1000, 1.0)))
    journal = tmp_path / "20260103T030405-abc234" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"prompt_tokens":1000', b'"prompt_tokens":"x"'))
    assert past_reading_speed(tmp_path, FACTS) == 100.0
