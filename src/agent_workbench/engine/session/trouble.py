"""Trouble: an error that stopped a move, as an event. Its source selects the exit code of an unattended run."""

from agent_workbench.core.errors import ExitCode, JournalError, LockedError, ModelError, StorageError, WorkbenchError
from agent_workbench.core.events import TroubleMet
from agent_workbench.engine.flow import Execute, Move, Recover

LOCKED, JOURNAL, STORAGE, MODEL = "locked", "journal", "storage", "model"
_SOURCES: tuple[tuple[type[WorkbenchError], str], ...] = (
    (LockedError, LOCKED),  # is a JournalError too
    (JournalError, JOURNAL),
    (StorageError, STORAGE),
    (ModelError, MODEL),
)
# Sources as journals spell them since 0.1.
_MOVE_SOURCES: dict[type[Move], str] = {Execute: "carry", Recover: "settle"}
_EXIT_CODES = {LOCKED: ExitCode.LOCKED, JOURNAL: ExitCode.JOURNAL, MODEL: ExitCode.MODEL}


def trouble_event(move: Move, error: WorkbenchError) -> TroubleMet:
    """Return the event for `error`; the source of an error without a kind of its own is the move."""
    named = _MOVE_SOURCES.get(type(move), type(move).__name__.lower())
    source = next((source for kind, source in _SOURCES if isinstance(error, kind)), named)
    return TroubleMet(source, str(error), error.advice, isinstance(error, ModelError) and error.lasting)


def exit_code_of(trouble: TroubleMet) -> ExitCode:
    """Return the exit code of an unattended run that ends in this trouble."""
    return _EXIT_CODES.get(trouble.source, ExitCode.ENVIRONMENT)
