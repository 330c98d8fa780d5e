"""Stand-ins for the ports of subjects whose folders are not installed: a session does without them, and says so."""

import asyncio
from collections.abc import Collection, Sequence

from agent_workbench.core.errors import ExtraMissing
from agent_workbench.core.events import SkillText
from agent_workbench.core.hook_answers import HookOutcome
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxDecision, Reference
from agent_workbench.core.knowledge import KnowledgeHit, KnowledgeNote
from agent_workbench.core.ports.extensions import Hooks, Skills
from agent_workbench.core.ports.search import Knowledge
from agent_workbench.core.ports.stores import Inbox
from agent_workbench.core.settings.extensions import HookPoint
from agent_workbench.core.skills import SkillEntry, SkillHit, SkillPlace


class _Absent:
    def __init__(self, missing: ExtraMissing) -> None:
        self._missing = missing


class NoHooks(_Absent, Hooks):
    """A hook that the settings name has failed before it began, so that a person is asked."""

    async def run(self, name: str, point: HookPoint, document: str, workspace: str) -> HookOutcome:
        return HookOutcome(failure=str(self._missing))


class NoInbox(_Absent, Inbox):
    """Nobody decides from outside."""

    async def put(self, decision: InboxDecision) -> InboxDecision:
        raise self._missing

    async def pending(self, session: SessionId) -> tuple[InboxDecision, ...]:
        return ()

    def refused(self, session: SessionId) -> tuple[str, ...]:
        return ()

    async def wait(self, session: SessionId, known: Collection[Reference] = ()) -> tuple[InboxDecision, ...]:
        never: asyncio.Future[tuple[InboxDecision, ...]] = asyncio.get_running_loop().create_future()
        return await never

    async def remove(self, decision: InboxDecision) -> None:
        return


class NoKnowledge(_Absent, Knowledge):
    """No notes, and none can be written."""

    async def notes(self) -> tuple[KnowledgeNote, ...]:
        return ()

    async def has_notes(self) -> bool:
        return False

    async def read(self, name: str) -> KnowledgeNote | None:
        return None

    async def search(self, words: str, limit: int) -> tuple[KnowledgeHit, ...]:
        return ()

    async def problem(self) -> str:
        return str(self._missing)

    async def write(self, note: KnowledgeNote, before: str | None) -> None:
        raise self._missing

    async def close(self) -> None:
        return


class NoSkills(_Absent, Skills):
    """No skills: a task that names one is refused."""

    async def list(self) -> tuple[SkillEntry, ...]:
        return ()

    async def places(self) -> tuple[SkillPlace, ...]:
        return ()

    async def rank(self, words: str) -> tuple[SkillHit, ...]:
        return ()

    async def body(self, name: str) -> str:
        raise self._missing

    async def read_file(self, name: str, path: str) -> str:
        raise self._missing

    async def load(self, names: Sequence[str]) -> tuple[SkillText, ...]:
        if names:
            raise self._missing
        return ()
