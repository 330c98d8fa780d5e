"""Lines of a worker's log: levels, forms, a file, and texts that cannot control a terminal."""

import json
from pathlib import Path

import pytest

from agent_workbench.core.errors import StorageError, UsageError
from agent_workbench.core.workers import LogLevel, WorkerLine
from agent_workbench.subjects.worker.parked_task_calls import WorkerLog
from agent_workbench.subjects.worker.verb import log_lines
from tests.contracts.clocks import SetClock

LINE = WorkerLine("2026-01-02T03:04:05.000000Z", LogLevel.INFO, "done", "done:\x1b]52;c;x\x07 \u202e ok\nnext", "a")


def test_text_and_json_cannot_control_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "json"):
        with log_lines(form, "", None) as log:
            log(LINE)
    text, document = capsys.readouterr().out.splitlines()
    assert text.startswith("2026-01-02T03:04:05Z info    a done:␛]52;c;x␇ ")
    said = json.loads(document)
    assert (said["event"], said["task"], said["level"]) == ("done", "a", "info")
    assert "\x1b" not in text + said["text"]
    assert "\u202e" not in text + said["text"]


def test_a_level_leaves_out_what_is_less_important(capsys: pytest.CaptureFixture[str]) -> None:
    with log_lines("text", "WARNING", None) as log:
        log(LINE)
    assert capsys.readouterr().out == ""
    with pytest.raises(UsageError, match="the log level 'loud' is unknown"), log_lines("text", "loud", None):
        pass


def test_a_file_gets_the_same_lines_and_is_private(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "worker.log"
    for _ in range(2):
        with log_lines("json", "", path) as log:
            log(LINE)
    assert path.read_text() == capsys.readouterr().out
    assert path.stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link.log"
    link.symlink_to(path)
    with pytest.raises(StorageError), log_lines("json", "", link):
        pass


def test_no_secret_is_in_a_line_and_the_task_is_named_once() -> None:
    lines: list[WorkerLine] = []
    log = WorkerLog(lines.append, SetClock(), lambda text: text.replace("s3cret", "«redacted»"))
    log.note("session", "a started with s3cret", "a")
    assert [each.text for each in lines] == ["started with «redacted»"]
