"""Updates of the protocol: recorded events, and the model's answer in pieces while it arrives."""

from collections.abc import Collection, Iterator

from acp import schema as wire
from msgspec import Struct

from agent_workbench.acp.editor import Update, message, thought, user_message
from agent_workbench.acp.tool_calls import (
    MAX_SHOWN_CHARS,
    Content,
    both_forms,
    diff_content,
    kind_of,
    output_content,
    places_of,
    size_of,
    title_of,
)
from agent_workbench.core.events import (
    AbortAsked,
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    Event,
    ModelAnswered,
    ModelInterrupted,
    PromptBuilt,
    ProposalReplaced,
    Recorded,
    TaskCommitted,
    TaskFinished,
    TaskMerged,
    TaskRolledBack,
    TaskStarted,
    TroubleMet,
    UserSaid,
)
from agent_workbench.core.events.log_lines import log_line
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.live import Streaming
from agent_workbench.core.model import Purpose
from agent_workbench.core.plan import Task, WorkState
from agent_workbench.core.proposals import Proposal, Verdict
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.chat_form import split_chat_answer, split_streamed
from agent_workbench.core.text.markdown import literal
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, without_colours
from agent_workbench.core.tools.spec import FINISH
from agent_workbench.core.tools.strict_json import JsonError, read_bounded_json
from agent_workbench.views.plan import task_state
from agent_workbench.views.transcript_blocks import split_answer

MAX_PLAN_ENTRIES = 50
MAX_REASON_CHARS = 2_000
STATUSES: dict[WorkState, wire.PlanEntryStatus] = {
    WorkState.PENDING: "pending",
    WorkState.RUNNING: "in_progress",
    WorkState.WAITS: "in_progress",
    WorkState.DONE: "completed",
}
"""The protocol has no word for any other state: such a task is pending, and its text says which."""

SHOWN = frozenset({Purpose.EXECUTOR, Purpose.REFLEXION, Purpose.CHAT})
ACTION = "Action:"
LABELS = ("Thought:", ACTION, "Answer:", "Reflexion:")


class EventUpdates:
    """Translation of a session's events, in their order. `root` is the user's checkout.

    `whole`: the client gets the history, and so what the user said; else it knows that.
    """

    def __init__(self, root: str, *, whole: bool) -> None:
        self._root = root
        self._whole = whole
        self._proposals: dict[ProposalId, Proposal] = {}
        self.answer = AnswerStream()

    def live_from_now(self) -> None:
        """Pass over what the user says: the client that sends it knows it."""
        self._whole = False

    def of(self, recorded: Recorded) -> Iterator[Update]:
        """Yield the updates of the next event."""
        event = recorded.event
        yield from self.answer.recorded(event)
        match event:
            case ActionProposed() | ProposalReplaced():
                yield self._proposed(event.proposal, again=isinstance(event, ProposalReplaced))
                if event.proposal.tool == FINISH:
                    yield from _closing_words(event.proposal.text)
            case ActionDecided() | ActionFinished():
                yield from self._changed(event)
            case ActionRejected():
                yield thought(f"\n\n{sanitize(event.reason, limit_chars=MAX_REASON_CHARS)}\n\n")
            case TaskStarted():
                yield from self._started(event)
            case UserSaid() if self._whole:
                yield user_message(sanitize(event.text))
            case TaskCommitted() | TaskMerged() | TaskRolledBack() | TaskFinished() | TroubleMet() | AbortAsked():
                yield message(f"{literal(log_line(event), MAX_REASON_CHARS)}\n\n")
            case _:
                pass

    def _started(self, event: TaskStarted) -> Iterator[Update]:
        task = event.definition
        title = sanitize_line(f"{event.task} {task.title}")
        yield wire.SessionInfoUpdate(session_update="session_info_update", title=title)
        if self._whole:
            yield user_message(sanitize("\n\n".join(filter(None, (task.description, task.goal)))))

    def _proposed(self, proposal: Proposal, *, again: bool) -> Update:
        self._proposals[proposal.id] = proposal
        content, places, title = self._content(proposal), places_of(proposal, self._root), title_of(proposal)
        if again:
            return wire.ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=proposal.id,
                title=title,
                status="pending",
                content=content,
                locations=places,
            )
        return wire.ToolCallStart(
            session_update="tool_call",
            tool_call_id=proposal.id,
            title=title,
            kind=kind_of(proposal),
            status="pending",
            content=content,
            locations=places,
        )

    def _content(self, proposal: Proposal) -> list[Content]:
        if not 0 < len(proposal.diff) <= MAX_SHOWN_CHARS:
            return []
        found = diff_content(proposal, self._root) if proposal.of_files else None
        content = both_forms(found, proposal.diff)
        return content if size_of(content) <= MAX_SHOWN_CHARS else []

    def _changed(self, event: ActionDecided | ActionFinished) -> Iterator[Update]:
        proposal = self._proposals.get(event.proposal_id)
        if proposal is None:
            return
        match event:
            case ActionDecided(verdict=Verdict.APPROVE):
                yield _progress(event, "in_progress")
            case ActionDecided():
                yield _progress(event, "failed", output=sanitize_line(log_line(event), MAX_REASON_CHARS))
            case ActionFinished():
                done: wire.ToolCallStatus = "completed" if event.result is ActionResult.OK else "failed"
                content = [] if proposal.diff else output_content(without_colours(event.observation))
                yield _progress(event, done, content=content)


def _closing_words(arguments: str) -> Iterator[Update]:
    """Yield what the model says of the finished task."""
    try:
        read = read_bounded_json(arguments)
    except JsonError:
        return
    summary = read.get("summary") if isinstance(read, dict) else None
    if isinstance(summary, str) and summary.strip():
        yield message(f"{sanitize(summary.strip(), limit_chars=MAX_REASON_CHARS)}\n\n")


def plan_update(state: SessionState, taken: Collection[TaskId]) -> wire.AgentPlanUpdate:
    """Return the plan as the client lists it: the tasks that are at work or to be done, after the newest others.

    Other sessions work on the tasks of `taken`.
    """
    plan = state.plan
    left = [task for task in plan.tasks if task.open][:MAX_PLAN_ENTRIES]
    over = [task for task in plan.tasks if not task.open][::-1][: MAX_PLAN_ENTRIES - len(left)]
    kept = {task.id for task in (*left, *over)}
    entries = [_entry(task, task_state(state, task, taken=task.id in taken)) for task in plan.tasks if task.id in kept]
    return wire.AgentPlanUpdate(session_update="plan", entries=entries)


def _entry(task: Task, state: WorkState) -> wire.PlanEntry:
    told = "" if state in STATUSES else f" ({state})"
    text = sanitize_line(f"{task.id}{told} {task.description}", 200)
    return wire.PlanEntry(content=text, priority="medium", status=STATUSES.get(state, "pending"))


def _progress(
    event: ActionDecided | ActionFinished,
    status: wire.ToolCallStatus,
    *,
    content: list[Content] | None = None,
    output: str | None = None,
) -> wire.ToolCallProgress:
    return wire.ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=event.proposal_id,
        status=status,
        content=content or None,
        raw_output=output,
    )


class _Parts(Struct, frozen=True):
    thought: str
    reply: str = ""


class AnswerStream:
    """Part of the arriving answer that was sent. Pieces are sent only as long as the whole begins with them."""

    def __init__(self) -> None:
        self._purpose = Purpose.EXECUTOR
        self._sent = _Parts("")
        self._ended = True

    def streamed(self, streaming: Streaming | None) -> list[Update]:
        """Return what is new of an answer that arrives."""
        if streaming is None or self._ended or self._purpose not in SHOWN:
            return []
        return self._added(_parts(self._purpose, streaming.thought, streaming.text, whole=False))

    def recorded(self, event: Event) -> list[Update]:
        """Return what an event adds to the answer: its end brings what was not sent."""
        match event:
            case PromptBuilt():
                self._purpose, self._sent, self._ended = event.purpose, _Parts(""), False
            case ModelAnswered() if self._purpose in SHOWN and not self._ended:
                self._ended = True
                return self._added(_parts(self._purpose, event.reasoning, event.text, whole=True), last=True)
            case ModelInterrupted() if self._purpose in SHOWN and not self._ended:
                self._ended = True
                return self._added(_parts(self._purpose, event.reasoning, event.partial, whole=True), last=True)
            case _:
                pass
        return []

    def _added(self, parts: _Parts, *, last: bool = False) -> list[Update]:
        before = self._sent
        grows = parts.thought.startswith(before.thought) and parts.reply.startswith(before.reply)
        if not grows and not last:
            return []
        self._sent = parts
        end = "\n\n" if last else ""
        found: list[Update] = []
        if (said := _rest(before.thought, parts.thought, end)) and parts.thought:
            found.append(thought(said))
        if (said := _rest(before.reply, parts.reply, end)) and parts.reply:
            found.append(message(said))
        return found


def _rest(sent: str, whole: str, end: str) -> str:
    """Return what follows the part that was sent; all of it where that was another text."""
    rest = whole[len(sent) :] if whole.startswith(sent) else f"\n\n{whole}"
    return f"{rest}{end}"


def _parts(purpose: Purpose, reasoning: str, text: str, *, whole: bool) -> _Parts:
    """Return the thoughts and the reply of an answer; of one that arrives without what may become a label."""
    kept = text if whole else _without_open_label(text)
    if purpose is not Purpose.CHAT:
        return _Parts(_joined(reasoning, split_answer(kept).thought))
    form = split_chat_answer(kept) if whole else split_streamed(kept)
    # Space at the end is sent with what follows it, because the whole has none there.
    return _Parts(_joined(reasoning, form.thought), sanitize(form.reply or "").strip())


def _joined(reasoning: str, said: str) -> str:
    return "\n\n".join(filter(None, (sanitize(reasoning).strip(), sanitize(said).strip())))


def _without_open_label(text: str) -> str:
    """Return the text without a last line that is the beginning of a label, or an action that is not whole."""
    head, _, last = text.rpartition("\n")
    opens = last.startswith(ACTION) or any(label.startswith(last) for label in LABELS)
    return head if last and opens else text
