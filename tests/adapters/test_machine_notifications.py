"""The desktop is told by the system's own program, which takes nothing of the text for anything but text."""

from pathlib import Path

import pytest

from agent_workbench.adapters.local_machine import DesktopNotifications


@pytest.mark.parametrize(
    ("platform", "program", "text"),
    [("linux", "notify-send", "T-1: &lt;b&gt; -u"), ("darwin", "osascript", "T-1: <b> -u")],
)
async def test_the_text_is_an_argument_of_its_own(tmp_path: Path, platform: str, program: str, text: str) -> None:
    script = tmp_path / program
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" "$DBUS_SESSION_BUS_ADDRESS" "$SECRET" > {tmp_path}/told\n')
    script.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus", "SECRET": "s"}
    await DesktopNotifications(environ, platform).notify("Agent Workbench", "T-1: <b> -u")
    assert (tmp_path / "told").read_text().splitlines()[-4:] == ["Agent Workbench", text, "unix:path=/run/bus", ""]


async def test_without_such_a_program_nothing_happens(tmp_path: Path) -> None:
    await DesktopNotifications({"PATH": str(tmp_path)}, "linux").notify("title", "text")


async def test_such_a_program_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notify-send").write_text("#!/bin/sh\n: > canary\n")
    (tmp_path / "notify-send").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    await DesktopNotifications({"PATH": f".::{tmp_path / 'none'}"}, "linux").notify("title", "text")
    assert not (tmp_path / "canary").exists()
