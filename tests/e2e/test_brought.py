"""A journal that came with a repository: its approvals do not count, and it can be looked at."""

import shutil

import pytest

from tests.e2e.calc import SCRIPTS, calc_repo
from tests.e2e.machine import WHOLE, Machine, bodies, journal_lines, journal_path

RUN = ("run", "--task", "T-1", "--yes", "--json")


@pytest.mark.slow
def test_it_is_not_taken_up_and_can_be_seen(served: Machine) -> None:
    repo = calc_repo(served)
    parked = served.scripted(SCRIPTS, "run", "--task", "T-1", "--json", cwd=repo)
    assert parked.code == 3, parked.said
    session = journal_path(repo).parent.name
    copy = served.folder / "copy"
    shutil.copytree(repo, copy, symlinks=True)
    before = journal_lines(copy, session)

    refused = served.scripted(SCRIPTS, *RUN, "--session", session, cwd=copy)
    assert refused.code == 4, refused.said
    assert f"session {session} was not begun here" in refused.err
    assert f"agent replay {session}" in refused.err
    done = served.scripted(SCRIPTS, *RUN, cwd=copy)
    assert done.code == 0, done.said
    (own,) = {event["session"] for event in done.events}
    assert own != session
    assert journal_lines(copy, session) == before
    shown = served.agent("sessions", "show", session, cwd=copy)
    assert (shown.code, shown.err) == (0, "")
    assert served.agent("sessions", "verify", session, cwd=copy).code in WHOLE

    again = served.scripted(SCRIPTS, *RUN, "--session", session, cwd=repo)
    assert again.code == 0, again.said
    assert len(bodies(journal_lines(repo, session), "session_resumed")) == 1
