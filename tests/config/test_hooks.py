"""Hooks in the settings: what is refused, whose counts, and what the trust in one covers."""

import json
from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.config.trust_question import trust_question, without_untrusted
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings.extensions import HookPoint

HOOK = "hooks: {check: {events: [diff_proposed], command: sh tools/check.sh}}"


def load(root: Path, file: str = "", own: str = "") -> LoadedSettings:
    repo, mine = root / "repo", root / "mine"
    for folder in (repo, mine):
        folder.mkdir(exist_ok=True)
    (repo / ".agent.yml").write_text(file)
    (mine / "settings.yml").write_text(own)
    (mine / "settings.yml").chmod(0o600)
    return load_settings(repo, {}, {}, mine)


def items(root: Path, line: str) -> dict[str, str]:
    """Return what is asked about the files that a hook's line names, by their paths."""
    loaded = load(root, f"hooks: {{a: {{events: [task_done], command: {json.dumps(line)}}}}}")
    found = trust_question(root / "repo", loaded).items
    return {name.removeprefix("hooks.a file "): text for name, text in found.items() if " file " in name}


def test_hooks_of_both_are_read_in_order(tmp_path: Path) -> None:
    loaded = load(tmp_path, HOOK, "hooks: {mine: {events: [task_done, task_failed], command: notify, network: true}}")
    (mine, own), (theirs, check) = loaded.settings.hooks
    assert (mine, own.events, own.network) == ("mine", (HookPoint.TASK_DONE, HookPoint.TASK_FAILED), True)
    assert (theirs, check.command, check.timeout_seconds, check.unconfined) == ("check", "sh tools/check.sh", 30, False)
    assert [name for name, _ in without_untrusted(loaded).settings.hooks] == ["mine"]


def test_a_repository_neither_replaces_nor_changes_a_hook_of_the_users(tmp_path: Path) -> None:
    own = "hooks: {check: {events: [diff_proposed, command_proposed], command: mine}}"
    ((_, hook),) = load(tmp_path, f"{HOOK[:-2]}, unconfined: true, timeout_seconds: 600}}}}", own).settings.hooks
    assert (hook.command, len(hook.events), hook.unconfined, hook.timeout_seconds) == ("mine", 2, False, 30)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("hooks: {a: {command: x}}", "hooks.a has no events"),
        ("hooks: {a: {events: [task_done]}}", "hooks.a has no command"),
        ("hooks: {a: {events: [], command: x}}", "hooks.a has no events"),
        ("hooks: {a: {events: [task_done], command: '  '}}", "hooks.a has no command"),
        ("hooks: {a: {events: [read_proposed], command: x}}", "read_proposed"),
        ("hooks: {a: {events: [task_done], command: x, timeout_seconds: 601}}", "at most 600, found 601"),
        ("hooks: {a: {events: [task_done], command: x, timeout_seconds: 0}}", "more than 0"),
        ("hooks: {a: {events: [task_done], command: x, decision: allow}}", "unknown key 'decision'"),
        ("hooks: {A b: {events: [task_done], command: x}}", "expected a name"),
        (
            "hooks: {" + ", ".join(f"a{number}: {{events: [task_done], command: x}}" for number in range(21)) + "}",
            "21 hooks are set",
        ),
    ],
)
def test_what_is_no_hook_is_refused(tmp_path: Path, file: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, file)
    assert words in str(refused.value)


def test_the_trust_covers_every_file_that_a_line_names(tmp_path: Path) -> None:
    load(tmp_path)
    tools = tmp_path / "repo" / "tools"
    tools.mkdir()
    for name in ("a.sh", "b.py", "c"):
        (tools / name).write_text(name)
    lines = [
        "sh tools/a.sh && python3 tools/b.py | ./tools/c",
        "sh -c 'cat | tools/a.sh --x=tools/b.py $(tools/c)'",
        'X=tools/a.sh sh "tools/b.py" `tools/c` \'not closed',
    ]
    for line in lines:
        assert {path.removeprefix("./") for path in items(tmp_path, line)} == {"tools/a.sh", "tools/b.py", "tools/c"}
    before = items(tmp_path, lines[0])
    (tools / "a.sh").write_text("changed")
    assert items(tmp_path, lines[0]) != before


def test_a_link_out_of_the_repository_is_told_with_its_target(tmp_path: Path) -> None:
    load(tmp_path)
    outside = tmp_path / "outside.sh"
    outside.write_text("one")
    (tmp_path / "repo" / "check.sh").symlink_to(outside)
    told = items(tmp_path, "sh check.sh; sh /bin/sh ../outside.sh")
    assert set(told) == {"check.sh"}
    assert told["check.sh"].startswith(f"a link to {outside}, ")
    outside.write_text("two")
    assert items(tmp_path, "sh check.sh") != told
