"""Nobody decides from inside a command of the agent: not in the sandbox, and not without it as far as can be seen."""

import os
import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.inbox.local_inbox import LocalInbox
from agent_workbench.adapters.inbox.origin import check_not_a_command, describe_user
from agent_workbench.core.errors import TrustError
from agent_workbench.system.processes import COMMAND_MARK
from tests.adapters.shell.conftest import Bench, bwrap_works, confined, make_bench, unconfined
from tests.contracts.test_inbox import SESSION, decision

__all__ = ["bwrap_works", "confined", "make_bench", "unconfined"]

SOURCE = Path(__file__).parents[3] / "src"

ASK = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from agent_workbench.adapters.inbox.origin import check_not_a_command
from agent_workbench.core.errors import TrustError
try:
    check_not_a_command(os.environ)
except TrustError:
    print("refused")
else:
    print("let through")
"""
# The question comes from an orphan in a session of its own; the command waits until it has ended.
ORPHANED = f"""
import os
ended, alive = os.pipe()
if os.fork():
    os.close(alive)
    os.read(ended, 1)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while os.getppid() == os.getsid(0):
    pass
{ASK}
"""
PUT = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(SOURCE)!r})
sys.path.insert(0, {str(SOURCE.parent)!r})
from agent_workbench.adapters.inbox.local_inbox import LocalInbox
from tests.contracts.test_inbox import decision
asyncio.run(LocalInbox(Path(sys.argv[1])).put(decision("P-15")))
print("written")
"""
WRITES = {
    "a decision": PUT,
    "over a decision": "import sys; open(sys.argv[1] + '/{session}/{name}', 'w').write('{{}}'); print('written')",
    "a folder": "import os, sys; os.mkdir(sys.argv[1] + '/20260103T030405-def567'); print('written')",
    "a link": "import os, sys; os.symlink('/tmp', sys.argv[1] + '/20260103T030405-def567'); print('written')",
    "a hard link": "import os, sys; os.link('x.py', sys.argv[1] + '/{session}/P-15.json'); print('written')",
    "a removal": "import os, sys; os.remove(sys.argv[1] + '/{session}/{name}'); print('written')",
    "a rename": "import os, sys; os.rename(sys.argv[1], sys.argv[1] + '-away'); print('written')",
}


def test_a_person_may_decide() -> None:
    if COMMAND_MARK not in os.environ:
        check_not_a_command(os.environ)
    assert "@" in describe_user()


def test_a_variable_tells_a_command() -> None:
    with pytest.raises(TrustError, match="a command that the agent runs cannot decide"):
        check_not_a_command({COMMAND_MARK: ""})


async def ask(bench: Bench, program: str, *, prefix: str = "") -> str:
    (bench.folder / "x.py").write_text(program)
    return (await bench.run(f"{prefix} {sys.executable} -I x.py".strip())).output


@pytest.mark.parametrize("prefix", ["", f"env -u {COMMAND_MARK}", "env -i"], ids=["", "unmarked", "bare"])
@pytest.mark.parametrize("program", [ASK, ORPHANED], ids=["child", "orphan"])
@pytest.mark.skipif(sys.platform != "linux", reason="machine lacks: /proc")
async def test_an_unconfined_command_cannot_decide_by_asking(unconfined: Bench, program: str, prefix: str) -> None:
    assert await ask(unconfined, program, prefix=prefix) == "refused\n"


async def test_a_confined_command_cannot_decide_by_asking(confined: Bench) -> None:
    assert await ask(confined, ASK) == "refused\n"


@pytest.mark.parametrize("kind", WRITES)
async def test_a_confined_command_cannot_write_to_the_inbox(confined: Bench, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "state" / "inbox"
    await LocalInbox(folder).put(decision())
    name = next((folder / SESSION).iterdir()).name
    before = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    program = WRITES[kind] if kind == "a decision" else WRITES[kind].format(session=SESSION, name=name)
    (confined.folder / "x.py").write_text(program)
    outcome = await confined.run(f"{sys.executable} x.py {folder}")
    assert outcome.exit_code != 0
    assert not outcome.output.endswith("written\n")
    assert "Read-only file system" in outcome.output or "Invalid cross-device link" in outcome.output, outcome.output
    assert {path: path.lstat() for path in sorted(folder.rglob("*"))} == before
    assert await LocalInbox(folder).pending(SESSION) == (decision(),)
