"""What stopped a move, as an event; its source tells those apart that a caller answers differently."""

from agent_workbench.core.errors import ExitCode, JournalError, LockedError, ModelError, StorageError, WorkbenchError
from agent_workbench.core.events import TroubleMet
from agent_workbench.engine.flow import Move

LOCKED, JOURNAL, STORAGE, MODEL = "locked", "journal", "storage", "model"
_SOURCES: tuple[tuple[type[WorkbenchError], str], ...] = (
    (LockedError, LOCKED),  # is a JournalError too
    (JournalError, JOURNAL),
    (StorageError, STORAGE),
    (ModelError, MODEL),
)
_EXIT_CODES = {LOCKED: ExitCode.LOCKED, JOURNAL: ExitCode.JOURNAL, MODEL: ExitCode.MODEL}


def trouble_event(move: Move, error: WorkbenchError) -> TroubleMet:
    """Return the trouble that `error` is; an error of no kind of its own is named after the move."""
    named = type(move).__name__.lower()
    source = next((source for kind, source in _SOURCES if isinstance(error, kind)), named)
    return TroubleMet(source, str(error), error.advice, isinstance(error, ModelError) and error.lasting)


def exit_code_of(trouble: TroubleMet) -> ExitCode:
    """Return the exit code of a run that ends in this trouble."""
    return _EXIT_CODES.get(trouble.source, ExitCode.ENVIRONMENT)
