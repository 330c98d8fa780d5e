"""A consultation of a session: what a consultant was asked, and its answer."""

from msgspec import Struct

from agent_workbench.core.consult.session_log import MESSAGE_CHARS, LogEntry
from agent_workbench.core.events.consult import ConsultantAnswered, ConsultantAsked


class Consultation(Struct, frozen=True):
    """One consultation; `answered` is None while it runs, and after a stop of the process. `time` is that of its end.

    `root` is the repository's.
    """

    asked: ConsultantAsked
    answered: ConsultantAnswered | None = None
    seq: int = -1
    time: str = ""
    root: str = ""

    @property
    def entry(self) -> LogEntry:
        """The entry in the log of its label; one without an answer is `unknown`."""
        asked, answered = self.asked, self.answered
        return LogEntry(
            session_id=asked.label,
            timestamp=self.time,
            skill=asked.skill,
            phase=asked.phase,
            project_root=self.root,
            file_path=asked.paths[0] if asked.paths else "",
            final_status=answered.status.value if answered is not None else "unknown",
            model_used=answered.model if answered is not None else "",
            duration_ms=answered.duration_ms if answered is not None else 0,
            message=answered.text[:MESSAGE_CHARS] if answered is not None else "",
            attempts=answered.attempts if answered is not None else (),
        )
