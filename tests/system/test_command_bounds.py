"""A command of the agent records nothing outside of its own folders, however it hides where it comes from."""

import sys
from pathlib import Path

import pytest

from agent_workbench.adapters.git.plumbing import Plumbing, find_git
from agent_workbench.core.errors import TrustError
from agent_workbench.subjects.inbox.adapter import LocalInbox
from agent_workbench.system.command_bounds import COMMAND_MARK, bounds_text, check_record
from agent_workbench.system.user_dirs import describe_user
from tests.adapters.git.user import make_repo
from tests.adapters.shell.conftest import Bench, bench, confined, make_bench, unconfined, until
from tests.contracts.test_inbox import SESSION, decision

__all__ = ["bench", "confined", "make_bench", "unconfined"]

SOURCE = Path(__file__).parents[2] / "src"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="machine lacks: /proc")

# Each program gets a path outside of the command's folders.
ASK = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from agent_workbench.core.errors import TrustError
from agent_workbench.system import command_bounds

def ask(path):
    try:
        command_bounds.check_record(path)
    except TrustError:
        return "refused"
    return "let through"
"""
CHILD = ASK + "print(ask(sys.argv[1]))\n"
# The question comes from an orphan in a session of its own; the command waits until it has ended.
ORPHANED = """
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
"""
# While the ancestors are looked at, the parent ends and its number becomes that of a process without ancestors.
REUSED = """
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
"""
REUSE = """
parent, words_of, parent_of = os.getppid(), command_bounds._words, command_bounds._parent
os.close(going)

def words(process):
    if process != parent:
        return words_of(process)
    os.close(gone)
    while os.getppid() == parent:
        pass
    return ["another", "program"]

command_bounds._words = words
command_bounds._parent = lambda process: 0 if process == parent else parent_of(process)
command_bounds._is_limited = lambda: False
"""
# A daemon ends the supervisor, so that no ancestor tells where it came from, and asks when the command is long over.
LEFT_BEHIND = """
supervisor = os.getpid()
while not any(word.endswith("supervisor.py") for word in command_bounds._words(supervisor)):
    supervisor = command_bounds._parent(supervisor)
if os.fork():
    signal.pause()
os.setsid()
os.closerange(0, 3)
os.environ.clear()
os.kill(supervisor, signal.SIGKILL)
for _ in range(6_000):
    if os.path.exists("go"):
        break
    time.sleep(0.01)
with open("answer.part", "w") as answer:
    answer.write(f"{ask(sys.argv[1])}, {ask('x.py')}")
os.rename("answer.part", "answer")
"""
OWN = """
import tempfile
own = tempfile.mkdtemp()
os.symlink("/usr", own + "/link")
os.makedirs(own + "/repo/.git")
asked = ["state/new", own + "/state", own + "/repo/.git", own + "/link/state", own + "/../../x", ".git/refs"]
print(*map(ask, asked), sep=", ")
"""
HIDDEN = {
    "child": "",
    "without the mark": f"env -u {COMMAND_MARK}",
    "without an environment": "env -i",
    "detached": "env -i setsid -w nohup",
    "with folders of its own": "env -i HOME=. XDG_STATE_HOME=.",
    "with a forged mark": f"env {COMMAND_MARK}='[\"/\"]'",
}
PUT = f"""
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {str(SOURCE)!r})
sys.path.insert(0, {str(SOURCE.parent)!r})
from agent_workbench.subjects.inbox.adapter import LocalInbox
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


def test_the_user_is_named() -> None:
    assert "@" in describe_user()


async def ask(bench: Bench, program: str, *, prefix: str = "", outside: str = "") -> str:
    (bench.folder / "x.py").write_text(program)
    return (await bench.run(f"{prefix} {sys.executable} -I x.py {outside or bench.folder.parent}".strip())).output


@LINUX
@pytest.mark.parametrize("prefix", HIDDEN.values(), ids=HIDDEN)
async def test_a_command_is_known_by_its_ancestors(unconfined: Bench, prefix: str) -> None:
    assert await ask(unconfined, ORPHANED + CHILD, prefix=prefix) == "refused\n"


@LINUX
async def test_a_number_that_is_used_again_hides_nothing(unconfined: Bench) -> None:
    program = REUSED + ASK + REUSE + "print(ask(sys.argv[1]))\n"
    assert await ask(unconfined, program, prefix="env -i") == "refused\n"


@LINUX
async def test_a_daemon_without_ancestors_owns_nothing(unconfined: Bench) -> None:
    """Not even what was its command's own: nobody says any more which folders those were."""
    await ask(unconfined, "import signal, time\n" + ASK + LEFT_BEHIND)
    (unconfined.folder / "go").touch()
    await until((unconfined.folder / "answer").exists, 20)
    assert (unconfined.folder / "answer").read_text() == "refused, refused"


async def test_a_command_records_in_its_own_folders(bench: Bench) -> None:
    """As in the sandbox, which leaves them writable: the tests of a project may run `agent` there."""
    assert await ask(bench, ASK + OWN) == "let through, let through, let through, refused, refused, refused\n"


async def test_a_confined_command_is_known(confined: Bench) -> None:
    assert await ask(confined, CHILD, outside="/usr/state") == "refused\n"


def test_a_command_in_a_command_has_the_bounds_of_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("agent_workbench.system.command_bounds._supervised", lambda: ((str(tmp_path),),))
    monkeypatch.setenv(COMMAND_MARK, bounds_text([str(tmp_path / "inner")]))
    check_record(tmp_path / "inner/state")
    for outside in (tmp_path / "state", tmp_path / "inner-2", tmp_path / "inner/../state"):
        with pytest.raises(TrustError, match="a command that the agent runs cannot decide"):
            check_record(outside)


@pytest.mark.parametrize("mark", ["", "1", "{}", "[", '{"a": "/"}', "[[]]", '["relative"]', "9" * 5000])
def test_a_mark_that_names_no_folders_grants_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str) -> None:
    monkeypatch.setenv(COMMAND_MARK, mark)
    with pytest.raises(TrustError):
        check_record(tmp_path)


EFFECTS = (
    ("update-ref", "refs/heads/other", "HEAD"),
    ("symbolic-ref", "HEAD", "refs/heads/other"),
    ("read-tree", "-m", "-u", "HEAD"),
    ("-c", "core.bare=false", "checkout-index", "--all"),
    ("config", "user.name", "x"),
    ("worktree", "add", "../other"),
    ("whatever-git-learns-to-do",),
)


def test_git_changes_no_repository_of_others_for_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    git_dir = str(user.root / ".git")
    # A git directory of the command's own that has its refs elsewhere.
    own = tmp_path / "own/git"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{git_dir}\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    plumbing = Plumbing(find_git("/nonexistent"), git_dir)
    monkeypatch.setenv(COMMAND_MARK, bounds_text([str(tmp_path / "own")]))
    assert plumbing.resolve("HEAD") != [None]
    assert plumbing.line("symbolic-ref", "--short", "HEAD")
    for words in EFFECTS:
        for where in (git_dir, str(own)):
            with pytest.raises(TrustError):
                plumbing.attempt(*words, git_dir=where)
    index = str(tmp_path / "index")
    assert plumbing.attempt("read-tree", "HEAD", index=index).status == 0
    with pytest.raises(TrustError):
        plumbing.attempt("read-tree", "-m", "-u", "HEAD", index=index, work_tree=str(user.root))
    monkeypatch.setenv(COMMAND_MARK, bounds_text([str(tmp_path)]))
    assert plumbing.attempt(*EFFECTS[0]).status == 0


@pytest.mark.slow(quick=2)
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
    refusals = ("Read-only file system", "Invalid cross-device link", "cannot decide")
    assert any(each in outcome.output for each in refusals), outcome.output
    assert {path: path.lstat() for path in sorted(folder.rglob("*"))} == before
    assert await LocalInbox(folder).pending(SESSION) == (decision(),)
