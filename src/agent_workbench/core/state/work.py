"""Kinds of `Work` of a session, each with its gate, and consultations; a task's run is in `session_state`."""

from msgspec import Struct, field

from agent_workbench.core.consult_requests import MESSAGE_CHARS, LogEntry
from agent_workbench.core.events import (
    ActionDecided,
    ChatReplied,
    ModelAnswered,
    NotesOffered,
    PlanAnswered,
    PlanSurveyed,
    Recorded,
)
from agent_workbench.core.events.beside_tasks import ConsultantAnswered, ConsultantAsked
from agent_workbench.core.model import Purpose
from agent_workbench.core.proposals import Proposal, ProposalStage
from agent_workbench.core.proposed_plan import ProposedPlan
from agent_workbench.core.repo.retrieval import Chunk
from agent_workbench.core.state.growing_tuple import GrowingTuple
from agent_workbench.core.tools.spec import ToolSpec


class Gate(Struct, frozen=True):
    """The newest proposal of a work, how far it came, and the newest decision."""

    proposal: Proposal | None = None
    stage: ProposalStage = ProposalStage.FINISHED
    decision: ActionDecided | None = None

    @property
    def waiting(self) -> Proposal | None:
        """The proposal that waits for a decision, None if there is none."""
        return self.proposal if self.stage is ProposalStage.WAITING else None

    @property
    def tool(self) -> str:
        """The tool of the proposal, empty if nothing was proposed."""
        return self.proposal.tool if self.proposal is not None else ""

    @property
    def open(self) -> bool:
        """True if the proposal waits, or is approved and has no result yet."""
        return self.waiting is not None or self.begun is not None

    @property
    def running(self) -> bool:
        """True if the effect of the proposal has begun and has no result yet."""
        return self.stage is ProposalStage.RUNNING

    @property
    def begun(self) -> Proposal | None:
        """The proposal that is approved and has no result yet, None if there is none."""
        return self.proposal if self.stage in {ProposalStage.APPROVED, ProposalStage.RUNNING} else None


class Work(Struct, frozen=True, kw_only=True):
    """What a session does until it is over: a task's run, a chat, a planning, or an offer of notes.

    `misses` are the consecutive answers to a message, or for a plan, that could not be used.
    """

    gate: Gate = field(default_factory=Gate)
    misses: int = 0


class ModelConversation(Work, frozen=True, kw_only=True):
    """Work in steps that the model is asked for: a task's run or a chat.

    `history` holds every event since it started. `answer` is the one that is not read yet. `prompt_parts` is the number
    of parts that the next prompt shares with the previous one. `pinned` is code that stays in the prompt, `dropped` are
    places that are left out of it.
    """

    specs: tuple[ToolSpec, ...] = ()
    history: GrowingTuple[Recorded] = field(default_factory=GrowingTuple)
    step: int = 0
    answered_step: int = 0
    answer: ModelAnswered | None = None
    prompt_parts: int = 0
    tokens: int = 0
    dollars: float = 0.0
    pinned: tuple[Chunk, ...] = ()
    dropped: tuple[str, ...] = ()

    def known_parts(self, purpose: Purpose) -> int:
        """Return how many parts the next prompt shares with the previous one."""
        return self.prompt_parts


class Chat(ModelConversation, frozen=True, kw_only=True):
    """Conversation of a session that works on no task.

    `due`: the newest message has no reply yet. `calls` counts the calls since that message. Prompts leave out the
    events up to `shortened_seq`.
    """

    wording: int = 0
    due: bool = False
    calls: int = 0
    shortened_seq: int = -1
    reply: ChatReplied | None = None

    @property
    def open(self) -> bool:
        """True while a message has no reply, or a call is at the gate."""
        return self.due or self.gate.open


class PlanAttempt(Struct, frozen=True):
    """An answer that did not become the plan, and the reason. `by_user`: the user refused it."""

    answer: str
    reason: str
    by_user: bool


class Planning(Work, frozen=True):
    """Planning for a goal. It is `open` until a plan is approved and written, put aside, or given up.

    `wording` is the version of the prompt's texts. `step` counts the prompts. `aside` is the plan that was put aside
    last; asking for the same goal proposes it again. `check_for` is the task for which only an acceptance command is
    asked, empty for a plan. `rest`: the plan is to replace the tasks that are not over.
    """

    goal: str
    wording: int
    replaces: bool = False
    survey: PlanSurveyed | None = None
    attempts: tuple[PlanAttempt, ...] = ()
    step: int = 0
    answer: PlanAnswered | None = None
    aside: ProposedPlan | None = None
    open: bool = True
    check_for: str = ""
    rest: bool = False


class NoteOffer(Work, frozen=True):
    """Notes that were offered, and their proposal once nothing else is at the gate.

    It is `open` until the notes are written, rejected or skipped. `later` are offers that came meanwhile, oldest first.
    """

    offered: NotesOffered
    open: bool = True
    later: tuple[NotesOffered, ...] = ()


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
