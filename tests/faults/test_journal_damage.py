"""G1: a journal that is cut anywhere opens with its whole lines; one that is changed anywhere is red."""

import asyncio
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.line_format import claimed_hash, encode_line
from agent_workbench.adapters.journal.reader import read_journal, verify_journal
from agent_workbench.adapters.journal.session_list import past_actions
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.core.errors import JournalError
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.strict_json import JsonValue
from tests.adapters.journal.journals import NO_SECRETS, SHORT_STORY, STORY, append_all, write_quickly


def test_cut_at_every_byte_the_whole_lines_remain(tmp_path: Path) -> None:
    lines = write_quickly(tmp_path, SHORT_STORY)
    data = b"".join(lines)
    for cut in range(len(data) + 1):
        (tmp_path / "journal.jsonl").write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        content = read_journal(tmp_path)
        assert tuple(each.event for each in content.events) == SHORT_STORY[:whole]
        assert content.torn == data[:cut].rpartition(b"\n")[2]
        assert verify_journal(tmp_path).ok


def test_cut_around_every_end_of_a_line_it_goes_on(tmp_path: Path) -> None:
    lines = write_quickly(tmp_path / "whole")
    data = b"".join(lines)
    ends = [sum(map(len, lines[:count])) for count in range(len(lines) + 1)]
    cuts = {end + offset for end in ends for offset in (-70, -1, 0, 1, 7) if 0 <= end + offset <= len(data)}

    async def go_on(directory: Path, whole: int) -> None:
        opened = await asyncio.to_thread(JournalWriter.open_existing, directory, NO_SECRETS)
        assert tuple(each.event for each in opened.events) == STORY[:whole]
        await append_all(opened.writer, STORY[whole:], first=whole)
        await opened.writer.close()

    for cut in sorted(cuts):
        directory = tmp_path / str(cut)
        write_quickly(directory)
        (directory / "journal.jsonl").write_bytes(data[:cut])
        asyncio.run(go_on(directory, data[:cut].count(b"\n")))
        assert (directory / "journal.jsonl").read_bytes() == data
        torn = data[:cut].rpartition(b"\n")[2]
        aside = directory / "journal.torn-1"
        assert (aside.read_bytes() if aside.exists() else b"") == torn


@pytest.mark.slow
def test_changed_at_every_byte_it_is_red_and_names_the_line(tmp_path: Path) -> None:
    lines = write_quickly(tmp_path, SHORT_STORY)
    data = b"".join(lines)
    journal = tmp_path / "journal.jsonl"
    for place in range(len(data) - 1):
        number = data[:place].count(b"\n") + 1
        for flipped in (1, 0x20):
            changed = bytearray(data)
            changed[place] ^= flipped
            journal.write_bytes(changed)
            report = verify_journal(tmp_path)
            assert not report.ok, f"byte {place} of line {number}"
            assert number in {each.line for each in report.problems}
        with pytest.raises(JournalError, match=f"line {number}: "):
            read_journal(tmp_path)


def test_without_its_last_newline_the_last_line_counts_as_torn(tmp_path: Path) -> None:
    # It cannot be told from one that was cut by a crash; the head's hash in checkpoints and commits tells.
    lines = write_quickly(tmp_path)
    head = verify_journal(tmp_path).head
    for end in (b"x", b""):
        (tmp_path / "journal.jsonl").write_bytes(b"".join(lines)[:-1] + end)
        report = verify_journal(tmp_path)
        assert report.torn_bytes == len(lines[-1]) - 1 + len(end)
        assert report.events == len(STORY) - 1
        assert report.head != head


def test_every_blob_changed_at_every_kind_of_place_is_red(tmp_path: Path) -> None:
    write_quickly(tmp_path)
    (blob,) = (tmp_path / "blobs").iterdir()
    data = blob.read_bytes()
    for place in (0, 1, len(data) // 2, len(data) - 1):
        changed = bytearray(data)
        changed[place] ^= 1
        for content in (bytes(changed), data[:place], data + b"x"):
            blob.write_bytes(content)
            assert [each.line for each in verify_journal(tmp_path).problems] == [5]


@pytest.mark.parametrize("levels", [40, 200, 700])
def test_a_deeply_nested_line_is_red(tmp_path: Path, levels: int) -> None:
    directory = tmp_path / "20260101T000000-abcdef"
    first, *_ = write_quickly(directory, SHORT_STORY)
    nested: JsonValue = {"blob": "none", "bytes": 0}
    for _ in range(levels):
        nested = [nested]
    # A valid chain: only the body of the line is hostile.
    line, _ = encode_line(
        1,
        "2026-01-01T00:00:00.000000Z",
        "action_proposed",
        {"proposal": nested},
        claimed_hash(first.rstrip(b"\n")) or "",
    )
    (directory / "journal.jsonl").write_bytes(first + line)
    (problem,) = verify_journal(directory).problems
    assert problem.line == 2
    with pytest.raises(JournalError, match="line 2: "):
        read_journal(directory)
    assert past_actions(tmp_path, Permission.DIFF).actions == ()
