"""Chat messages of the prompt, built from the session's state. Between compactions they only grow at the end."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.events import (
    FAILING_FIRST,
    ActionDecided,
    ActionFinished,
    ActionRejected,
    ChunkDropped,
    ChunkPinned,
    CodeRetrieved,
    ContextCompacted,
    ContextFilled,
    InterruptCause,
    ModelAnswered,
    ModelInterrupted,
    PatchApplied,
    PromptBuilt,
    Recorded,
    ScratchpadChanged,
    SkillsChosen,
    StepUndone,
)
from agent_workbench.core.model import Message, Purpose, Role
from agent_workbench.core.state.file_pieces import (
    LEAVES_OUT,
    begins_prompts,
    chunks_shown_by,
    offered_pieces,
    offers_pieces,
    pieces_shown_by,
)
from agent_workbench.core.state.session_state import SessionState, TaskRun
from agent_workbench.engine.prompt.attempts import AttemptCollector, reflexion_request
from agent_workbench.engine.prompt.parts import (
    CODE,
    KNOWLEDGE,
    PINNED,
    SKILL,
    Part,
    compacted_parts,
    newest_skills,
    parts_of,
    skill_parts,
    wording_version,
)
from agent_workbench.engine.prompt.prompt_text import (
    GREEN_BEFORE,
    LOOPED,
    NOTES_SUMMARY,
    RED_BEFORE,
    SUMMARY,
    notes_text,
    rules,
    visible_notes,
)
from agent_workbench.engine.prompt.step_history import without_summaries
from agent_workbench.engine.prompt.task_text import skill_changes

NOTES = "scratchpad"
OF_THE_USER = frozenset({"user", "dropped", NOTES, PINNED, SKILL})
"""Labels of the parts that stay where a prompt is answered again; of pins and skills the first word."""
OF_THE_CODE = frozenset({CODE, PINNED, "map", "observation", "summary", "change", "failing"})
"""Labels of the parts that tell of the code and its checks as they were; of code and pins the first word."""
ABOUT_NOTES = (PromptBuilt, ModelAnswered, ModelInterrupted, ActionRejected, ActionDecided)
"""Events that no step's prompt tells while a summary of the notes is asked for, read and decided."""


def build_parts(state: SessionState, purpose: Purpose) -> tuple[Part, ...]:
    """Return the prompt's parts in order. Every prompt of a task starts with the parts of the previous one.

    Only a compaction rewrites it; the prompt that asks for the summary still grows from the previous one.
    """
    if state.run is None:
        return ()
    if purpose is Purpose.SUMMARY and state.run.notes_full:
        # No step's prompt grows from this one, so it needs nothing of theirs.
        return (Part(Role.USER, "scratchpad", f"{NOTES_SUMMARY}\n\n{state.scratchpad(state.run.task).strip()}"),)
    history, growth = state.run.history, _Growth(state.run)
    # What was tried before a compaction is told to a reflexion all the same.
    anew = [number for number, recorded in enumerate(history) if isinstance(recorded.event, ContextCompacted)]
    for number, recorded in enumerate(history):
        if not anew or number >= anew[-1]:
            growth.take(number, recorded)
        growth.tried.take(recorded)
    return growth.asked(purpose)


def to_messages(parts: Iterable[Part]) -> tuple[Message, ...]:
    """Return the messages: adjacent parts of one role are joined, because chat templates expect alternating roles."""
    messages: list[Message] = []
    for part in parts:
        if messages and messages[-1].role is part.role:
            messages[-1] = Message(part.role, f"{messages[-1].text}\n\n{part.text}")
        else:
            messages.append(Message(part.role, part.text))
    return tuple(messages)


def prompt_sha(messages: tuple[Message, ...]) -> str:
    """Return the SHA-256 of a prompt's roles and texts."""
    digest = sha256()
    for message in messages:
        digest.update(f"{message.role}\0{message.text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class _Prompt(Struct, frozen=True):
    """Parts of a prompt, each with the number of its event, and the places that are shown in it."""

    parts: tuple[tuple[int, Part], ...]
    shown: frozenset[str]


class _Growth:
    """Builder of a prompt, event by event. Each part is stored with the number of its event."""

    def __init__(self, run: TaskRun) -> None:
        self._run = run
        self._wording = wording_version(run.history)
        self.tried = AttemptCollector(run.history)
        self._numbers = offered_pieces(run).numbers if offers_pieces(run) else None
        # What failed before any change comes last in the first prompt.
        self._before: list[tuple[int, Part]] = []
        self._rules = Part(Role.SYSTEM, "rules", rules(run.specs, self._wording))
        self._parts: list[tuple[int, Part]] = [(-1, self._rules)]
        # Said after a prompt was sent and before its answer: the model reads it after its answer.
        self._unseen: list[tuple[int, Part]] = []
        self._asked = False
        self._aside = self._sent = False
        self._shown: set[str] = set()
        # What the user chose before the first prompt.
        self._left_out: set[str] = set()
        self._added: set[str] = set()
        self._reviewed = self._wording >= LEAVES_OUT
        self._skills: SkillsChosen | None = None
        # Parts and shown places of the newest prompt, and of the one that led to the first diff in effect. A later
        # attempt that looked at nothing new before its diff begins where the one before it did: its own words about
        # what it had seen already would grow in each prompt, and a small model goes by them.
        self._newest = self._unchanged = _Prompt((), frozenset())
        self._diffs, self._afresh = 0, False

    def take(self, number: int, recorded: Recorded) -> None:
        """Add the parts of the event at this index of the run's history."""
        seq, event = recorded.seq, recorded.event
        if isinstance(event, ContextFilled):
            self._aside = event.notes
        elif isinstance(event, PromptBuilt):
            self._aside = self._aside and event.purpose is Purpose.SUMMARY
        if self._aside and isinstance(event, ABOUT_NOTES):
            return
        if isinstance(event, PatchApplied):
            self._unchanged = self._before_diff()
            self._diffs += 1
        elif isinstance(event, StepUndone):
            self._diffs, self._afresh = self._diffs - 1, event.afresh
        match event:
            case ScratchpadChanged() if event.task != self._run.task:
                pass
            case ScratchpadChanged() if self._wording and not self._sent:
                # The model has read none of it yet: it need not hear of what was there before.
                self._parts = [(each, part) for each, part in self._parts if part.label != NOTES]
                self._parts.append((seq, Part(Role.USER, NOTES, notes_text(visible_notes(event)))))
            case ChunkDropped() | ChunkPinned() if self._reviewed:
                self._review(recorded, event)
            case SkillsChosen():
                self._take_skills(seq, event)
            case ActionFinished() if self._wording >= FAILING_FIRST and not self._sent:
                self._before = [(seq, part) for part in self._new_parts(recorded)]
            case PromptBuilt():
                self._leave_out()
                if begins_prompts(event):
                    self._shown |= self._added
                    self._reviewed = False
                self._parts += self._unseen
                self._newest = _Prompt(tuple(self._parts), frozenset(self._shown))
                self._parts += ((seq, part) for part in self._question(event.purpose))
                self._unseen, self._asked, self._sent = [], True, True
            case ModelInterrupted(cause=InterruptCause.REPETITION) if self._run.tries_afresh:
                # A small model goes on with a loop that it reads.
                self._return_to(self._newest)
                if self._parts[-1][1].text != LOOPED:
                    self._parts.append((seq, Part(Role.USER, "observation", LOOPED)))
            case ModelAnswered() | ModelInterrupted():
                self._parts += ((seq, part) for part in self._new_parts(recorded))
                self._parts += self._unseen
                self._unseen, self._asked = [], False
            case ContextFilled() if event.through_seq >= 0:
                self._parts = [(each, part) for each, part in self._parts if each <= event.through_seq]
                self._unseen, self._asked = [], False
            case ActionRejected(again=True):
                self._return_to(self._newest)
            case StepUndone(afresh=True):
                self._return_to(self._unchanged)
            case CodeRetrieved(failing=failing) if failing:
                self._build_on(recorded, failing)
            case ContextCompacted():
                self._begin_anew(self._run.history[: number + 1], recorded, event)
            case _:
                grown = [(seq, part) for part in self._new_parts(recorded)]
                (self._unseen if self._asked else self._parts).extend(grown)
                self._shown.update(chunk.place for chunk in pieces_shown_by(event))

    def asked(self, purpose: Purpose) -> tuple[Part, ...]:
        """Return the prompt that ends with the question for `purpose`."""
        self._leave_out()
        self._parts += self._unseen
        return (*(part for _, part in self._parts), *self._question(purpose))

    def _review(self, recorded: Recorded, event: ChunkDropped | ChunkPinned) -> None:
        """Take the user's choice before the first prompt: it has no code that is dropped, or added and unpinned."""
        place = event.place if isinstance(event, ChunkDropped) else event.chunk.place
        self._parts = [(each, part) for each, part in self._parts if part.label != f"{PINNED} {place}"]
        self._added.discard(place)
        self._left_out.discard(place)
        if isinstance(event, ChunkDropped):
            self._left_out.add(place)
        elif event.pinned:
            self._added.add(place)
            self._parts += ((recorded.seq, part) for part in self._new_parts(recorded))

    def _take_skills(self, seq: int, event: SkillsChosen) -> None:
        """Put the skills before the task; after the first prompt only tell what the user changed."""
        if self._reviewed:
            own = {part.label for part in skill_parts(self._skills)}
            others = [(each, part) for each, part in self._parts if part.label not in own]
            self._parts = [others[0], *((seq, part) for part in skill_parts(event)), *others[1:]]
        else:
            changes = skill_changes(self._skills, event)
            grown = [(seq, Part(Role.USER, f"{SKILL} {name}", text)) for name, text in changes]
            (self._unseen if self._asked else self._parts).extend(grown)
        self._skills = event

    def _new_parts(self, recorded: Recorded) -> Iterator[Part]:
        return parts_of(recorded, self._shown, self._wording, self._numbers)

    def _leave_out(self) -> None:
        """Remove the code that was dropped before the first prompt, and its heading if none is left."""
        if self._before:
            last, part = self._before[-1]
            told = RED_BEFORE if self._run.failed_before else GREEN_BEFORE
            self._parts += [*self._before[:-1], (last, replace(part, text=f"{part.text}\n\n{told}"))]
            self._before = []
        if not self._left_out:
            return
        out = {f"{kind} {place}" for place in self._left_out for kind in (CODE, KNOWLEDGE)}
        gone = {part.label.partition(" ")[0] for _, part in self._parts if part.label in out}
        self._parts = [(each, part) for each, part in self._parts if part.label not in out]
        gone -= {part.label.partition(" ")[0] for _, part in self._parts if " " in part.label}
        self._parts = [(each, part) for each, part in self._parts if part.label not in gone]
        self._shown -= self._left_out
        self._left_out.clear()

    def _before_diff(self) -> "_Prompt":
        """Return the prompt with which the next attempt begins if the one of the diff that was applied now fails."""
        nothing_new = self._afresh and self._newest.shown <= self._unchanged.shown
        return self._unchanged if self._diffs or nothing_new else self._newest

    def _return_to(self, prompt: "_Prompt") -> None:
        """Take an earlier prompt again, with what the user said, changed and pinned since."""
        since = (*self._parts[len(prompt.parts) :], *self._unseen)
        own = [each for each in since if each[1].label.partition(" ")[0] in OF_THE_USER]
        self._parts, self._unseen, self._asked = [*prompt.parts, *own], [], False
        self._shown = set(prompt.shown)

    def _build_on(self, recorded: Recorded, failing: str) -> None:
        """Begin again as before the attempt that is kept, with the code as it is now, and what fails now at the end."""
        before = tuple(takewhile(lambda each: each[1].role is not Role.ASSISTANT, self._unchanged.parts))
        said = (*self._parts[len(before) :], *self._unseen)
        own = [each for each in said if each[1].label.partition(" ")[0] in OF_THE_USER]
        parts = [each for each in (*before, *own) if each[1].label.partition(" ")[0] not in OF_THE_CODE]
        self._shown = set()
        parts += ((recorded.seq, part) for part in self._new_parts(recorded))
        parts.append((recorded.seq, Part(Role.USER, "observation", f"{failing}\n\n{RED_BEFORE}")))
        self._parts, self._unseen, self._asked = parts, [], False
        self._diffs, self._afresh = 0, False
        self._shown = {chunk.place for chunk in chunks_shown_by(recorded.event)}
        self._newest = self._unchanged = _Prompt(tuple(parts), frozenset(self._shown))

    def _begin_anew(self, history: Sequence[Recorded], recorded: Recorded, event: ContextCompacted) -> None:
        compacted = compacted_parts(history, event, self._numbers)
        self._parts = [(-1, self._rules), *((recorded.seq, part) for part in compacted)]
        self._unseen, self._asked, self._afresh = [], False, False
        self._skills = newest_skills(history)
        newer = [each.event for each in without_summaries(history) if each.seq > event.through_seq]
        self._shown = {chunk.place for each in (event, *newer) for chunk in chunks_shown_by(each)}
        self._unchanged = _Prompt(tuple(self._parts), frozenset(self._shown))

    def _question(self, purpose: Purpose) -> list[Part]:
        """Return the question for `purpose`, empty if the prompt ends with it already."""
        if purpose is Purpose.REFLEXION:
            asking = Part(Role.USER, "reflexion", reflexion_request(self.tried.found, self._wording))
        elif purpose is Purpose.SUMMARY:
            asking = Part(Role.USER, "summary", SUMMARY)
        else:
            return []
        return [] if self._parts[-1][1] == asking else [asking]
