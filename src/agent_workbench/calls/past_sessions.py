"""The repo's sessions as a screen asks for them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_workbench.calls.exporting import ExportFormat, write_export
from agent_workbench.calls.forking import foresee_fork, fork_session
from agent_workbench.calls.records import session_summaries, verify_session
from agent_workbench.core.ids import SessionId
from agent_workbench.core.place import Place
from agent_workbench.core.sessions import SessionSummary


class RepoSessions:
    """`core.sessions.PastSessions` on the repository around `place`."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def summaries(self) -> Sequence[SessionSummary]:
        """Return all sessions, newest first."""
        return await session_summaries(self._place)

    async def verify(self, session: SessionId) -> tuple[bool, str]:
        """Return whether its journal proves itself, and what was found."""
        report = await verify_session(self._of(session))
        if report.ok:
            return True, f"whole: {report.events} events, head {report.head[:12]}"
        return False, f"{len(report.problems)} of {report.events} lines do not fit; {report.problems[0]}"

    async def foresee_fork(self, session: SessionId, at: int | None) -> tuple[str, ...]:
        """Return what a fork would go on from."""
        return await foresee_fork(self._of(session), at)

    async def fork(self, session: SessionId, at: int | None) -> SessionId:
        """Make a new session of it; return its name."""
        child, _ = await fork_session(self._of(session), at)
        return child

    async def export(self, session: SessionId) -> str:
        """Write it as markdown into a new file of the folder; return the file's name."""
        path = Path(f"session-{session}.md")
        await write_export(self._of(session), ExportFormat.MARKDOWN, self._place.folder / path)
        return str(path)

    def _of(self, session: SessionId) -> Place:
        return replace(self._place, session=session)
