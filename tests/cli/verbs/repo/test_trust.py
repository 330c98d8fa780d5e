"""Trust without a terminal: in whatever is there, or in one content alone."""

from tests.e2e.machine import Machine


def test_a_digest_trusts_the_content_that_was_shown_and_no_other(machine: Machine) -> None:
    repo = machine.new_repo("repo", {".agent.yml": "test_command: make test\n"})
    shown = machine.agent("trust", "--show", cwd=repo)
    assert shown.code == 0
    *lines, digest = shown.out.splitlines()
    assert lines[0].startswith("test_command: make test")
    digest = digest.removeprefix("digest ")
    (repo / ".agent.yml").write_text("test_command: make evil\n")
    refused = machine.agent("trust", "--yes", digest, cwd=repo)
    assert refused.code == 4
    assert f"not {digest}" in refused.err
    assert "make evil" in machine.agent("trust", "--show", cwd=repo).out
    (repo / ".agent.yml").write_text("test_command: make test\n")
    for _ in range(2):
        assert machine.agent("trust", "--yes", digest, cwd=repo).code == 0, "a restarted container says it again"
    assert machine.agent("trust", "--show", cwd=repo).out == "there is nothing left to trust here\n"


def test_without_a_digest_it_is_as_it_is(machine: Machine) -> None:
    repo = machine.new_repo("repo", {".agent.yml": "test_command: make test\n"})
    assert machine.agent("trust", cwd=repo).code == 3
    assert machine.agent("trust", "--yes", cwd=repo).code == 0
    assert machine.agent("trust", "--revoke", cwd=repo).out == "no longer trusted\n"
