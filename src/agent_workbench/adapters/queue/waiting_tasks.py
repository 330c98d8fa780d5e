"""Tasks of a queue that have not ended: queued files, and records of claimed and parked tasks."""

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.queue.queue_files import QueueFiles, UnreadableFile
from agent_workbench.adapters.queue.queue_names import folded, key_of, name_problem, stem_of
from agent_workbench.adapters.queue.queue_records import QueueRecord, QueueRecords
from agent_workbench.core.errors import PlanError, error_text
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.ports.task_queue import QueueState
from agent_workbench.core.yaml_documents.nodes import DocumentError, decode_document

MOST_FILES = 1000
"""Files that are looked at, by name; the others come when these are done."""
ReadOrder = Callable[[str, str], "TaskOrder"]
"""Return the order of a definition, of which the second text is the file's name; raise `PlanError`."""
TrackedNames = Callable[[], Collection[str] | None]
"""Return the names in the folder that git tracks, None if all of it belongs to another repository. Blocks."""


class TaskOrder(Struct, frozen=True):
    """When a task is done: after the tasks that it depends on, and before those with a lower priority."""

    priority: int = 0
    depends_on: tuple[str, ...] = ()


class _Queued(Struct, frozen=True):
    """A queued file: its name, its text, its order, and why it is no task (empty: it is one)."""

    name: str
    definition: str = ""
    order: TaskOrder = TaskOrder()
    problem: str = ""


class WaitingTasks:
    """The tasks in `files` and `records` that have not ended. A file that did not change is read once."""

    def __init__(
        self, files: QueueFiles, records: QueueRecords, read_order: ReadOrder, tracked_names: TrackedNames
    ) -> None:
        self._files = files
        self._records = records
        self._read_order = read_order
        self._tracked_names = tracked_names
        self._known: dict[str, tuple[tuple[int, ...], _Queued]] = {}

    def all(self) -> Iterator[tuple[QueueRecord, str]]:
        """Yield the record of each task that has not ended, as it is or would be; with why it is no task."""
        queued = self._files.names()[:MOST_FILES]
        self._known = {name: known for name, known in self._known.items() if name in queued}
        active = {
            key_of(each.name): each
            for each in self._records.open()
            if not each.ended and (not is_draft(each) or each.name in queued)
        }
        tracked = _Tracked(self._tracked_names, self._files)
        names: dict[str, str] = {}
        for name in queued:
            key = key_of(name)
            record = active.get(key)
            twin = names.setdefault(key, name) if record is None else record.name
            if twin != name:
                yield QueueRecord(f"{name}", name), f"{name}: {twin} is queued too, and has the same name"
                continue
            if record is None and (file := self._look(name)) is not None:
                yield self._new(file, self._records.find(stem_of(name)), tracked)
        # Claimed and parked tasks go on without their files; those from elsewhere never had one.
        for record in active.values():
            if has_no_file(record) and record.fence == 0:
                yield record, self._text_problem(record)
            elif not is_draft(record):
                yield record, ""
            elif (file := self._look(record.name)) is not None:
                origin = TaskOrigin.REPOSITORY if tracked.has(record.name) else TaskOrigin.LOCAL
                order = file.order
                yield (
                    replace(
                        record,
                        definition=file.definition,
                        priority=record.priority or order.priority,
                        origin=origin,
                        depends_on=order.depends_on,
                    ),
                    file.problem,
                )

    def _new(self, file: "_Queued", former: QueueRecord | None, tracked: "_Tracked") -> tuple[QueueRecord, str]:
        """Return the record that a file gets with its first claim; the number of claims of the name goes on."""
        origin = TaskOrigin.REPOSITORY if tracked.has(file.name) else TaskOrigin.LOCAL
        fence = former.fence if former is not None else 0
        record = QueueRecord(stem_of(file.name), file.name, file.definition, origin, file.order.priority, fence=fence)
        return replace(record, depends_on=file.order.depends_on), file.problem

    def _text_problem(self, record: QueueRecord) -> str:
        try:
            self._read_order(record.definition, record.name)
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
            return _Queued(name, text, self._read_order(text, name))
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
