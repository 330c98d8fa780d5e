"""A process that writes a journal and says what was acknowledged; the fault tests kill it, or starve it of space.

journal_child.py write <directory>            append without end
journal_child.py starve <directory> <bytes>   append under a limit on the size of files, then lift it
journal_child.py fill <directory>             append until the disk is full, make space, append; then prove it all
journal_child.py hold <directory>             open, and keep it open until a line is read
"""

import asyncio
import itertools
import resource
import sys
from pathlib import Path

from agent_workbench.adapters.journal.reader import verify_journal
from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.errors import StorageError
from agent_workbench.core.events import ActionFinished, ActionResult, Event, SessionStarted
from agent_workbench.core.ids import CommitId, ProposalId, SessionId

BLOB_EVERY = 3


def event(seq: int) -> Event:
    """Return the event of this number; every third one brings a blob of its own."""
    if seq == 0:
        return SessionStarted(SessionId("20260102T030405-abc234"), "/r", CommitId("c" * 40), "0.1.0")
    output = f"{seq} " * 5000 if seq % BLOB_EVERY == 0 else ""
    return ActionFinished(ProposalId(f"p{seq}"), ActionResult.OK, f"event {seq}", output=output)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(directory: Path) -> None:
    if (directory / "journal.jsonl").exists():
        writer, recorded, torn_bytes = await asyncio.to_thread(JournalWriter.open_existing, directory, Redactor({}))
        say("opened", len(recorded), torn_bytes)
        first = len(recorded)
    else:
        writer = await asyncio.to_thread(JournalWriter.open_new, directory, Redactor({}))
        say("opened", 0, 0)
        first = 0
    for seq in itertools.count(first):
        await writer.append(seq, f"t{seq}", event(seq))
        say("acknowledged", seq)


async def starve(directory: Path, limit: int) -> None:
    writer = await asyncio.to_thread(JournalWriter.open_new, directory, Redactor({}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    seq = 0
    try:
        while True:
            await writer.append(seq, f"t{seq}", event(seq))
            seq += 1
    except StorageError as error:
        say("full", seq, (directory / "journal.jsonl").stat().st_size)
        say(error, "|", error.advice)
    for _ in range(3):
        try:
            await writer.append(seq, f"t{seq}", event(seq))
        except StorageError:
            say("still full", seq)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await writer.append(seq, f"t{seq}", event(seq))
    say("acknowledged", seq)
    await writer.close()


async def fill(directory: Path) -> None:
    ballast = directory.with_name("ballast")
    ballast.write_bytes(b"x" * 20_000)
    writer = await asyncio.to_thread(JournalWriter.open_new, directory, Redactor({}))
    seq = 0
    try:
        while True:
            await writer.append(seq, f"t{seq}", event(seq))
            seq += 1
    except StorageError as error:
        say("full", seq, "|", error, "|", error.advice)
    report = await asyncio.to_thread(verify_journal, directory)
    say("ok" if report.ok else "damaged", report.events, report.torn_bytes)
    ballast.unlink()
    await writer.append(seq, f"t{seq}", event(seq))
    await writer.close()
    report = await asyncio.to_thread(verify_journal, directory)
    say("ok" if report.ok else "damaged", report.events, report.torn_bytes)


async def hold(directory: Path) -> None:
    opened = await asyncio.to_thread(JournalWriter.open_existing, directory, Redactor({}))
    say("opened", len(opened.events), opened.torn_bytes)
    await asyncio.to_thread(sys.stdin.readline)
    await opened.writer.close()


if __name__ == "__main__":
    verb, place, *rest = sys.argv[1:]
    match verb:
        case "write":
            asyncio.run(write(Path(place)))
        case "starve":
            asyncio.run(starve(Path(place), int(rest[0])))
        case "fill":
            asyncio.run(fill(Path(place)))
        case "hold":
            asyncio.run(hold(Path(place)))
