"""A session that a test scripts: real events, really folded; submitted intents are kept in `intents`."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence

from msgspec.structs import replace

from agent_workbench.core.custom_prompts import CustomPrompt, expand, named_call
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import Event, Recorded
from agent_workbench.core.fold import fold
from agent_workbench.core.history.replay_marks import Marks, marks_of
from agent_workbench.core.ids import SessionId
from agent_workbench.core.inbox import InboxChoice, InboxDecision, InboxFilter, InboxItem, InboxReceipt, Reference
from agent_workbench.core.intents import (
    AddTask,
    ApproveProposal,
    CompleteCode,
    DraftTask,
    EditPlan,
    ExpandPrompt,
    FindCode,
    FindNotes,
    Intent,
    Leave,
    ListModels,
    ListPastActions,
    ListPrompts,
    ListSkills,
    LoadModel,
    OpenFile,
    OpenPlan,
    PreviewPrompt,
    RejectProposal,
    SkipProposal,
    UnloadModel,
)
from agent_workbench.core.live import Followed, Live, Notice, Recording, ReplayPosition, SessionUpdate
from agent_workbench.core.outcomes import Accepted, Outcome, PromptExpanded, PromptsListed
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import SessionEnd, SessionRequest
from agent_workbench.core.state.session_state import SessionState

QUESTIONS = (
    FindCode
    | FindNotes
    | CompleteCode
    | ListPastActions
    | ListSkills
    | OpenFile
    | PreviewPrompt
    | OpenPlan
    | EditPlan
    | DraftTask
    | AddTask
    | ListModels
    | LoadModel
    | UnloadModel
)


def is_verdict(intent: Intent) -> bool:
    """Return whether an intent decides a proposal."""
    return isinstance(intent, ApproveProposal | RejectProposal | SkipProposal)


class FakeClock:
    """Time that goes on only when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> str:
        return "2026-11-20T10:15:00.000000Z"

    def monotonic_seconds(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class ScriptedSession:
    """Implements `SessionHandle`. Questions (`QUESTIONS`) stay open until a test gives their outcome.

    Questions about `prompts` are answered at once, and are not among the `intents`.
    """

    def __init__(self, *events: Event) -> None:
        self.intents: list[Intent] = []
        self.newest = SessionUpdate(SessionState())
        self.recorded: list[Recorded] = []
        self.open_questions: list[asyncio.Future[Outcome]] = []
        self.outcome: Outcome = Accepted()
        self.prompts: dict[str, CustomPrompt] = {}
        self.about_prompts = ""
        self.ends_when_left = True
        self._news = asyncio.Event()
        self.record(*events)

    def record(self, *events: Event) -> "ScriptedSession":
        """Let these happen."""
        state = self.newest.state
        for event in events:
            seq = state.seq + 1
            time = f"2026-11-20T10:{15 + seq // 60:02}:{seq % 60:02}.000000Z"
            self.recorded.append(Recorded(seq, time, event, f"{seq:064x}"))
            state = fold(state, self.recorded[-1])
        return self._publish(replace(self.newest, state=state))

    def show(self, live: Live) -> "ScriptedSession":
        """Let this be the moment."""
        return self._publish(replace(self.newest, live=live))

    def notify(self, notice: str) -> "ScriptedSession":
        """Tell the user something."""
        now = self.newest.live
        number = now.notices[-1].number + 1 if now.notices else 1
        return self.show(replace(now, notices=(*now.notices, Notice(number, notice))))

    def end(self, farewell: str = "") -> "ScriptedSession":
        """End the session."""
        return self._publish(replace(self.newest, ended=True, farewell=farewell))

    def as_replay(self, *, seq: int | None = None, playing: bool = False) -> "ScriptedSession":
        """Show what was recorded as a replay that stands at its end, or at `seq` of a longer one."""
        state = self.newest.state
        runs = (*state.past, state.run) if state.run is not None else state.past
        events = (*state.opening, *(each for run in runs for each in run.history))
        last = state.seq if seq is None else seq
        recording = Recording(events, Marks(last + 1, marks_of(events).places))
        return self.show(Live(replay=ReplayPosition(state.seq, last, playing, 1.0, recording), decidable=False))

    def as_followed(
        self, *, holder: str = "", decided: InboxDecision | None = None, about: tuple[str, ...] = ()
    ) -> "ScriptedSession":
        """Show what was recorded as a session that is not open here."""
        return self.show(Live(followed=Followed(holder, decided, about), decidable=False))

    @property
    def session(self) -> SessionId:
        return self.newest.state.session

    @property
    def opened_seq(self) -> int:
        return -1

    def submit(self, intent: Intent) -> Awaitable[Outcome]:
        if isinstance(intent, ListPrompts | ExpandPrompt):
            answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            answered.set_result(self._about_prompts(intent))
            return answered
        self.intents.append(intent)
        if isinstance(intent, Leave) and self.ends_when_left:
            self.end("kept")
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if isinstance(intent, QUESTIONS):
            self.open_questions.append(outcome)
        else:
            outcome.set_result(self.outcome)
        return outcome

    def _about_prompts(self, intent: ListPrompts | ExpandPrompt) -> Outcome:
        if isinstance(intent, ListPrompts):
            return PromptsListed(tuple(self.prompts.values()), self.about_prompts)
        call = named_call(intent.words)
        prompt = self.prompts.get(call.name) if call is not None else None
        if call is None or prompt is None:
            return PromptExpanded(intent.words)
        return PromptExpanded(expand(prompt.text, call.words), prompt.file)

    def answer(self, outcome: Outcome) -> "ScriptedSession":
        """Give the oldest open question its outcome."""
        self.open_questions.pop(0).set_result(outcome)
        return self

    async def events(self, after_seq: int = -1) -> AsyncGenerator[Recorded]:
        for recorded in self.recorded[after_seq + 1 :]:
            yield recorded

    async def wait(self) -> SessionEnd:
        return SessionEnd()

    async def live(self) -> AsyncGenerator[SessionUpdate]:
        shown: SessionUpdate | None = None
        while True:
            if self.newest is shown:
                await self._news.wait()
                continue
            shown = self.newest
            yield shown
            if shown.ended:
                return

    def _publish(self, update: SessionUpdate) -> "ScriptedSession":
        self.newest = update
        self._news.set()
        self._news = asyncio.Event()
        return self


class ScriptedHost:
    """Implements `core.ports.session_host.SessionHost`: opens these sessions, one after the other."""

    def __init__(self, *sessions: SessionHandle, error: WorkbenchError | None = None) -> None:
        self.requests: list[SessionRequest] = []
        self.error = error
        self.waiting: list[tuple[InboxItem, ScriptedSession]] = []
        self.refusal: WorkbenchError | None = None
        self._sessions = iter(sessions)

    async def open(self, request: SessionRequest) -> SessionHandle:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        waiting = (session for item, session in self.waiting if request.followed and item.session == request.session)
        return next(waiting, None) or next(self._sessions)

    async def inbox(self, wanted: InboxFilter) -> Sequence[InboxItem]:
        """Return the items that wait, and are not decided in the session that follows them; raise `refusal` if set."""
        if self.refusal is not None:
            raise self.refusal
        open_items = (item for item, session in self.waiting if not any(map(is_verdict, session.intents)))
        return [item for item in open_items if wanted.selects(item)]

    async def decide(self, reference: Reference, choice: InboxChoice) -> InboxReceipt:
        """Return that the decision is recorded."""
        return InboxReceipt(InboxDecision(reference, choice.verdict, choice.reason), recorded=True)
