"""Output without end, without mercy, without an encoding: memory and time stay bounded and nothing is invented."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent_workbench.adapters.shell.output import KeptOutput, LiveOutput, cut_line
from agent_workbench.adapters.shell.shell import SandboxedShell
from agent_workbench.core.ports.workspace import Command
from agent_workbench.core.repo.workspace import CommandOutcome
from agent_workbench.core.settings import SandboxSettings

MEGABYTE = 1024 * 1024


async def run(folder: Path, line: str, seconds: float = 60) -> tuple[CommandOutcome, list[str]]:
    pieces: list[str] = []
    return await run_passing_on(folder, line, seconds, pieces.append), pieces


async def run_passing_on(folder: Path, line: str, seconds: float, on_piece: Callable[[str], None]) -> CommandOutcome:
    # Confinement changes nothing here, and the search for it would disturb the measurement.
    shell = SandboxedShell(SandboxSettings(), str(folder), {"PATH": "/nonexistent"})
    command = Command(line, str(folder), seconds, {"PATH": os.environ["PATH"]})
    return await shell.run(command, on_piece)


@pytest.mark.slow
async def test_a_gigabyte_of_output_costs_no_memory(tmp_path: Path) -> None:
    await run(tmp_path, "true")
    process = psutil.Process()
    before, most = process.memory_info().rss, 0
    size = 1024 * MEGABYTE
    lengths: list[int] = []  # and not the pieces: the longer it takes, the more of them there are
    line = f"yes 'a line of output' | head -c {size}; echo; echo the end"
    running = asyncio.create_task(run_passing_on(tmp_path, line, 240, lambda piece: lengths.append(len(piece))))
    while not running.done():
        most = max(most, process.memory_info().rss)
        await asyncio.sleep(0.02)
    outcome = await running
    assert outcome.exit_code == 0
    assert most - before < 64 * MEGABYTE
    assert outcome.cut_bytes + 8 * MEGABYTE == size + len("\nthe end\n")
    assert outcome.output.startswith("a line of output\n")
    assert cut_line(outcome.cut_bytes) in outcome.output
    assert outcome.output.endswith("\nthe end\n")
    assert len(outcome.output) <= 8 * MEGABYTE + 100
    assert len(lengths) <= outcome.seconds * 20 + 2
    assert max(lengths) < 20_000


async def test_endless_output_is_stopped_by_the_time(tmp_path: Path) -> None:
    outcome, _ = await run(tmp_path, "yes", seconds=0.5)
    assert (outcome.exit_code, outcome.reason) == (None, "timed out after 0.5 s")
    assert outcome.seconds < 30
    assert len(outcome.output) <= 8 * MEGABYTE + 100


async def test_invalid_bytes_are_replaced(tmp_path: Path) -> None:
    outcome, pieces = await run(tmp_path, r"printf 'a\377b\303'; printf '\0c\n'")
    assert outcome.output == "a\ufffdb\ufffd\0c\n"
    assert "".join(pieces) == outcome.output


async def test_characters_cut_between_writes_are_joined(tmp_path: Path) -> None:
    code = "import os,time\nfor byte in 'é€😀'.encode(): os.write(1, bytes([byte])); time.sleep(0.06)"
    (tmp_path / "slow.py").write_text(code)
    outcome, pieces = await run(tmp_path, f"{sys.executable} slow.py")
    assert outcome.output == "é€😀"
    assert "".join(pieces) == "é€😀"
    assert len(pieces) > 1


async def test_control_codes_are_left_as_they_are(tmp_path: Path) -> None:
    outcome, _ = await run(tmp_path, r"printf '\033[31mred\033[0m\r\n'")
    assert outcome.output == "\x1b[31mred\x1b[0m\r\n"


@pytest.mark.parametrize("size", range(1, 40))
def test_what_is_kept_is_head_and_tail(size: int) -> None:
    text = "äöü€😀xyz"
    data = text.encode()
    kept = KeptOutput(size)
    for at in range(0, len(data), 3):
        kept.add(data[at : at + 3])
    found, cut = kept.text()
    if not cut:
        assert found == text
        return
    head, _, tail = found.partition(cut_line(cut))
    assert text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail)
    assert len(head.removesuffix("\n").encode()) + cut + len(tail.encode()) == len(data)
    assert "\ufffd" not in found


async def test_a_piece_that_is_passed_on_is_bounded() -> None:
    pieces: list[str] = []
    live = LiveOutput(pieces.append, every_seconds=60, limit_bytes=10)
    live.add(b"first")
    live.add("ü".encode() * 100)
    live.close()
    assert pieces == ["first", f"{cut_line(190)}üüüüü"]


async def test_nothing_is_passed_on_after_the_end() -> None:
    pieces: list[str] = []
    live = LiveOutput(pieces.append, every_seconds=0.01, limit_bytes=100)
    live.add(b"one")
    live.add(b"two")
    live.close()
    await asyncio.sleep(0.03)
    assert pieces == ["one", "two"]
