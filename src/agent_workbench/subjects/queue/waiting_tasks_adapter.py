"""Tasks of a queue that have not ended: queued files, and records of claimed and parked tasks."""

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.core.errors import PlanError, error_text
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueueState
from agent_workbench.core.yaml_documents import DocumentError, decode_document
from agent_workbench.subjects.queue.files_adapter import (
    QueueFiles,
    UnreadableFile,
    folded,
    key_of,
    name_problem,
    stem_of,
)
from agent_workbench.subjects.queue.records_adapter import QueueRecord, QueueRecords

MOST_FILES = 1000
"""Files that are looked at, by name; the others come when these are done."""
ReadFacts = Callable[[str, str], "TaskFacts"]
"""Return the facts in a definition, of which the second text is the file's name; raise `PlanError`."""
TrackedNames = Callable[[], Collection[str] | None]
"""Return the names in the folder that git tracks, None if all of it belongs to another repository. Blocks."""


class TaskFacts(Struct, frozen=True):
    """Facts in a definition that order a queue: the task is done after those that it depends on, by its priority.

    `id` is the task's id (empty: the file's name without its suffix). With `sets_id` the text sets it, and no other
    text may have the same one, also after the task's end.
    """

    priority: int = 0
    depends_on: tuple[str, ...] = ()
    id: str = ""
    sets_id: bool = False


class _Queued(Struct, frozen=True):
    """A queued file: its name, its text, the facts in it, and why it is no task (empty: it is one)."""

    name: str
    definition: str = ""
    facts: TaskFacts = TaskFacts()
    problem: str = ""

    @property
    def id(self) -> str:
        """Id of the task."""
        return self.facts.id or stem_of(self.name)


class WaitingTasks:
    """The tasks in `files` and `records` that have not ended. A file that did not change is read once."""

    def __init__(
        self, files: QueueFiles, records: QueueRecords, read_facts: ReadFacts, tracked_names: TrackedNames
    ) -> None:
        self._files = files
        self._records = records
        self._read_facts = read_facts
        self._tracked_names = tracked_names
        self._known: dict[str, tuple[tuple[int, ...], _Queued]] = {}

    def all(self) -> Iterator[tuple[QueueRecord, str]]:
        """Yield the record of each task that has not ended, as it is or would be; with why it is no task."""
        queued = self._files.names()[:MOST_FILES]
        self._known = {name: known for name, known in self._known.items() if name in queued}
        records = self._records.open()
        moving = {each.name for each in records if each.to_file}
        active: dict[str, QueueRecord] = {}
        for record in sorted(records, key=is_draft, reverse=True):  # a claim goes before what was put under the name
            if not record.ended and (not is_draft(record) or record.name in queued):
                active[key_of(record.name)] = record
        tracked = _Tracked(self._tracked_names, self._files)
        holders: dict[str, str] = {folded(each.id): each.name for each in active.values() if not is_draft(each)}
        names: dict[str, str] = {}
        for name in queued:
            known = active.get(key_of(name))
            twin = names.setdefault(key_of(name), name) if known is None else known.name
            if twin != name:
                yield QueueRecord(name, name), f"{name}: {twin} is queued too, and has the same name"
            elif name not in moving and (known is None or is_draft(known)) and (file := self._look(name)) is not None:
                yield self._queued(file, known, holders, tracked)
        # Claimed and parked tasks go on without their files; those from elsewhere never had one.
        for record in active.values():
            if has_no_file(record) and record.fence == 0:
                yield record, self._text_problem(record)
            elif not is_draft(record):
                yield record, ""

    def named(self, task: str) -> QueueRecord | None:
        """Return the task that has not ended and has this id or, if there is none, whose file has this name."""
        waiting = [record for record, _ in self.all()]
        named = (each for each in waiting if stem_of(each.name) == task)
        return next((each for each in waiting if each.id == task), None) or next(named, None)

    def has(self, task: str) -> bool:
        """Return True if a queued file has this name or a task that has not ended this id, in whatever spelling."""
        names = {key_of(name) for name in self._files.names()}
        names |= {folded(record.id) for record, problem in self.all() if not problem}
        return folded(task) in names

    def facts(self, definition: str, name: str) -> TaskFacts:
        """Return the facts in a definition; those of a text that is no task are empty."""
        try:
            return self._read_facts(definition, name)
        except PlanError:
            return TaskFacts()

    def _queued(
        self, file: _Queued, draft: QueueRecord | None, holders: dict[str, str], tracked: "_Tracked"
    ) -> tuple[QueueRecord, str]:
        """Return the record that a file gets with its first claim, and why it is no task.

        `holders` are the files of the tasks that were looked at, by id. The number of claims of the id goes on.
        """
        former = self._records.find(file.id)
        origin = TaskOrigin.REPOSITORY if tracked.has(file.name) else TaskOrigin.LOCAL
        record = QueueRecord(
            file.id,
            file.name,
            file.definition,
            origin,
            (draft.priority if draft is not None else 0) or file.facts.priority,
            fence=former.fence if former is not None else 0,
            depends_on=file.facts.depends_on,
        )
        if file.problem:
            return record, file.problem
        holder = holders.setdefault(folded(file.id), file.name)
        problem = ""
        if holder != file.name:
            problem = f"{file.name}: the id {file.id} is that of {holder}, which is queued too"
        elif file.facts.sets_id and former is not None and former.ended:
            problem = f"{file.name}: {file.id} is {former.state} already; to do it again, give it another `id`"
        return (replace(record, id=file.name), problem) if problem else (record, "")

    def _text_problem(self, record: QueueRecord) -> str:
        try:
            self._read_facts(record.definition, record.name)
        except PlanError as error:
            return error_text(error)
        return ""

    def _look(self, name: str) -> _Queued | None:
        """Return a queued file, None if it is gone; one that did not change is not read again."""
        print_ = self._files.fingerprint(name)
        if not print_:
            return None
        known = self._known.get(name)
        if known is None or known[0] != print_:
            known = self._known[name] = (print_, self._read(name))
        return known[1]

    def _read(self, name: str) -> _Queued:
        if problem := name_problem(name):
            return _Queued(name, problem=f"its name {problem}")
        try:
            data = self._files.read(name)
            text = decode_document(data or b"")
            return _Queued(name, text, self._read_facts(text, name))
        except UnreadableFile as problem:
            return _Queued(name, problem=f"{name} {problem}")
        except DocumentError as fault:
            return _Queued(name, problem=fault.in_file(name))
        except PlanError as error:
            return _Queued(name, problem=error_text(error))


class _Tracked:
    """The names that git tracks, asked for once and only if there is a file."""

    def __init__(self, names: TrackedNames, files: QueueFiles) -> None:
        self._ask = names
        self._files = files
        self._names: frozenset[str] | None = None
        self._asked = False

    def has(self, name: str) -> bool:
        """Return True if git tracks this name, in whatever spelling, or if another repository holds the folder."""
        if not self._asked:
            names = None if self._files.in_other_repo() else self._ask()
            self._names = None if names is None else frozenset(map(folded, names))
            self._asked = True
        return self._names is None or folded(name) in self._names


def has_no_file(record: QueueRecord) -> bool:
    """Return True if a task was put by something else than a file, so that its origin is known from here alone."""
    return record.origin not in {TaskOrigin.LOCAL, TaskOrigin.REPOSITORY}


def is_draft(record: QueueRecord) -> bool:
    """Return True if a task was put and never claimed; its file is what counts."""
    return record.state is QueueState.QUEUED and record.fence == 0 and record.origin is TaskOrigin.LOCAL
