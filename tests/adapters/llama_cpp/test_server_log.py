from pathlib import Path

from agent_workbench.adapters.llama_cpp.embedded_server import ServerLog


async def test_lines_are_joined_over_pieces_and_kept_in_the_file(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "deep" / "log")
    assert await log.add(b"one\ntw") == ("one",)
    assert await log.add(b"o\n\nthree") == ("two", "")
    assert log.last_lines(2) == ("two", "three")
    assert log.path.read_text() == "one\ntwo\n\nthree"
    assert log.path.stat().st_mode & 0o077 == 0


async def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log", file_bytes=1000)
    for number in range(1000):
        await log.add(b"line %d\n" % number)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log", "log.1"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000
    assert log.path.read_text().endswith("line 999\n")


async def test_a_line_without_end_is_cut_and_control_codes_go(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    for _ in range(100):
        await log.add(b"x" * 10_000)
    await log.add(b"\n\x1b[31mred\xff\n")
    assert all(len(line) <= 400 for line in log.last_lines(10))
    assert log.last_lines(1) == ("[31mred\ufffd",)


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = ServerLog(tmp_path / "file" / "log")
    assert await log.add(b"said\n") == ("said",)
    assert "cannot be written" in log.last_lines(1)[0]
