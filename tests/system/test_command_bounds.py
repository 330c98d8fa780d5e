"""A command of the agent records nothing outside of its own folders, however it hides where it comes from."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_workbench.adapters.git.commands.plumbing import Plumbing, find_git
from agent_workbench.adapters.inbox.local_inbox import LocalInbox
from agent_workbench.core.errors import TrustError
from agent_workbench.system import command_bounds
from agent_workbench.system.atomic_files import make_directories, write_atomically
from agent_workbench.system.command_bounds import COMMAND_MARK, bounds_text, check_record
from agent_workbench.system.locks import FileLock
from agent_workbench.system.user_dirs import describe_user
from tests.adapters.git.user import User
from tests.adapters.shell.conftest import Bench, bwrap_works, confined, make_bench, unconfined
from tests.contracts.test_inbox import SESSION, decision

__all__ = ["bwrap_works", "confined", "make_bench", "unconfined"]

SOURCE = Path(__file__).parents[2] / "src"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="machine lacks: /proc")

ASK = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from agent_workbench.core.errors import TrustError
from agent_workbench.system.command_bounds import check_record
def ask(path):
    try:
        check_record(path)
    except TrustError:
        return "refused"
    return "let through"
"""
OUTSIDE = f"""
{ASK}
print(ask({outside!r}))
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
{OUTSIDE}
"""
# The parent ends, and is asked about, while the ancestors are looked at: as if its number were another process's.
RACED = f"""
import os
ended, alive = os.pipe()
if os.fork():
    os.close(alive)
    os.read(ended, 1)
    os._exit(0)
going, gone = os.pipe()
if os.fork():
    os.close(gone)
    os.read(going, 1)
    os._exit(0)
os.close(going)
parent = os.getppid()
{ASK}
from agent_workbench.system import command_bounds
real = command_bounds._words
def words(process):
    if process == parent:
        os.close(gone) if os.getppid() == parent else None
        while os.getppid() == parent:
            pass
        return ["another", "program"]
    return real(process)
command_bounds._words = words
command_bounds._parent, look = (lambda process: 0 if process == parent else look(process)), command_bounds._parent
command_bounds._is_limited = lambda: False
print(ask({outside!r}))
"""
# A daemon that an earlier command left behind: it kills the supervisor, and no ancestor tells where it came from.
LEFT_BEHIND = f"""
import os, signal, time
if os.fork():
    time.sleep(60)
os.setsid()
supervisor = os.getppid()
if os.fork():
    os._exit(0)
os.environ.clear()
os.kill(int(open(f"/proc/{{supervisor}}/stat").read().rpartition(")")[2].split()[1]), signal.SIGKILL)
while not os.path.exists("go"):
    time.sleep(0.01)
{ASK}
with open("answer.part", "w") as answer:
    answer.write(ask({outside!r}) + " " + ask("x.py"))
os.rename("answer.part", "answer")
"""
OWN = f"""
{ASK}
import tempfile
own = tempfile.mkdtemp()
os.symlink({outside!r}, own + "/link")
os.makedirs(own + "/repo/.git")
asked = ["state/new", own + "/state", own + "/repo/.git", own + "/link/state", own + "/../x", ".git/refs", {outside!r}]
print(*(ask(each) for each in asked), sep=", ")
"""
HIDES = {
    "child": "",
    "without the mark": f"env -u {COMMAND_MARK}",
    "without an environment": "env -i",
    "in a session of its own": "env -i setsid -w nohup",
    "with another home": "env -i HOME=/tmp XDG_STATE_HOME=/tmp",
}
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
