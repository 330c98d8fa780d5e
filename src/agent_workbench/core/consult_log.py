"""Log of the consultations under one label: its entries, and the history that a later prompt is given."""

import json
from collections.abc import Iterable

import msgspec

from agent_workbench.core.consult_attempts import ConsultAttempt
from agent_workbench.core.text.sanitizer import without_chat_markers
from agent_workbench.core.tools.strict_json import JsonValue

MESSAGE_CHARS = 200
MAX_ENTRIES = 100
MAX_HISTORY_CHARS = 8_000
HISTORY = "## Session history"


class LogEntry(msgspec.Struct, frozen=True):
    """One consultation as the log tells it. `message` is the beginning of its answer, `timestamp` UTC."""

    session_id: str
    timestamp: str
    skill: str
    phase: str
    project_root: str
    file_path: str
    final_status: str
    model_used: str
    duration_ms: int
    message: str
    attempts: tuple[ConsultAttempt, ...] = ()


def log_json(entries: Iterable[LogEntry]) -> str:
    """Return the newest entries as indented JSON, without the texts of attempts that were not taken."""
    return json.dumps(log_rows(entries), ensure_ascii=False, indent=2)


def log_rows(entries: Iterable[LogEntry]) -> list[JsonValue]:
    """Return the newest entries as JSON values, as `log_json` has them."""
    rows: list[JsonValue] = []
    for entry in tuple(entries)[-MAX_ENTRIES:]:
        row = msgspec.to_builtins(entry)
        row["attempts"] = [
            {
                "model": each.model or each.endpoint,
                "tier": each.tier.value,
                "duration_ms": each.duration_ms,
                "warm_start": each.warm_start,
                "verdict": each.verdict.value,
                "feedback": each.feedback,
            }
            for each in entry.attempts
        ]
        rows.append(row)
    return rows


def history_block(entries: Iterable[LogEntry], phase: str) -> str:
    """Return the block about earlier consultations, without those of the current phase; empty if there are none."""
    told = [_line(entry) for entry in entries if entry.phase != phase][-MAX_ENTRIES:]
    while told and sum(map(len, told)) > MAX_HISTORY_CHARS:
        told.pop(0)
    return "\n".join((HISTORY, "", *told, "")) if told else ""


def _line(entry: LogEntry) -> str:
    about = f" {entry.file_path}" if entry.file_path else ""
    message = " ".join(entry.message.split())
    return without_chat_markers(f"- {entry.skill} ({entry.phase}){about}, {entry.final_status}: {message}")
