"""Outcomes of intents: accepted, refused with the reason, or the value that was asked for."""

from msgspec import Struct

from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.events import PromptBuilt
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.knowledge import KnowledgeHit
from agent_workbench.core.local_models import FoundServer
from agent_workbench.core.plan import PlanPiece, Task, TaskDraft
from agent_workbench.core.repo.retrieval import Chunk, Completion
from agent_workbench.core.settings import Permission
from agent_workbench.core.skills import SkillEntry


class Accepted(Struct, frozen=True):
    """The intent was carried out; `note` is a remark for the user (empty: none)."""

    note: str = ""


class Refused(Struct, frozen=True):
    """The intent was not carried out; `reason` tells the user why, and what to do instead."""

    reason: str


class PlanOpened(Struct, frozen=True):
    """Answer to `OpenPlan`: the text to show or edit."""

    piece: PlanPiece


class TaskDrafted(Struct, frozen=True):
    """Answer to `DraftTask`: the task that is proposed."""

    draft: TaskDraft


class TaskAdded(Struct, frozen=True):
    """Answer to `AddTask`: the task as it is in the plan."""

    task: Task


class CodeCompleted(Struct, frozen=True):
    """Answer to `CompleteCode`: files and symbols that fit, best first.

    `remark` says why some may be missing, empty if none are.
    """

    prefix: str
    items: tuple[Completion, ...]
    remark: str = ""


class CodeFound(Struct, frozen=True):
    """Answer to `FindCode`: the pieces found, best first, and the skills whose names hold the words.

    A single place that was named is pinned already.
    """

    asked: str
    chunks: tuple[Chunk, ...]
    skills: tuple[SkillEntry, ...] = ()


class SkillsListed(Struct, frozen=True):
    """Answer to `ListSkills`: the usable skills by name."""

    skills: tuple[SkillEntry, ...]


class PromptsListed(Struct, frozen=True):
    """Answer to `ListPrompts`: the prompts that can be called, by name; `remark` says why others cannot."""

    prompts: tuple[CustomPrompt, ...]
    remark: str = ""


class PromptExpanded(Struct, frozen=True):
    """Answer to `ExpandPrompt`: the words to send. `file` is the file of the prompt, empty if none is called."""

    words: str
    file: str = ""


class FileOpened(Struct, frozen=True):
    """Answer to `OpenFile`: the file's text, cut if it is long, and the line to begin at (from 1)."""

    path: str
    line: int
    text: str


class PromptPreviewed(Struct, frozen=True):
    """Answer to `PreviewPrompt`: the event that sending it would record, and the seconds to read it (0: unknown).

    `seq` is the last event that the prompt is made from.
    """

    seq: int
    built: PromptBuilt
    reading_seconds: float = 0.0


class PastActionsFound(Struct, frozen=True):
    """Answer to `ListPastActions`: past actions of one kind, from all sessions of the repo."""

    kind: Permission
    past: PastActions


class NotesFound(Struct, frozen=True):
    """Answer to `FindNotes`: the notes, best first, or all by name; `problem` says why some are not searched."""

    asked: str
    hits: tuple[KnowledgeHit, ...]
    problem: str = ""


class ModelsListed(Struct, frozen=True):
    """Answer to `ListModels`: the servers, each with its models or the reason why it lists none."""

    servers: tuple[FoundServer, ...]


Answer = (
    PlanOpened
    | TaskDrafted
    | TaskAdded
    | CodeCompleted
    | CodeFound
    | SkillsListed
    | PromptsListed
    | PromptExpanded
    | FileOpened
    | PromptPreviewed
    | PastActionsFound
    | NotesFound
    | ModelsListed
)
Outcome = Accepted | Refused | Answer
