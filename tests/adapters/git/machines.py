"""Two machines with clones of one repository, a bare remote between them, and the journal of a session."""

import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agent_workbench.adapters.git.repository import Repository
from agent_workbench.adapters.git.session_refs import GitSessionRefs
from agent_workbench.adapters.git.working_trees.workspace import GitWorkspace
from agent_workbench.core.events import CheckpointTaken, Event, Recorded, SessionStarted, TaskCommitted, TaskStarted
from agent_workbench.core.history.signed_approvals import SignedHead
from agent_workbench.core.ids import CommitId, SessionId
from agent_workbench.core.patch.values import FileChange, FileContent
from agent_workbench.core.plan import Task
from agent_workbench.core.signed import PERSON_PURPOSES, SignedPurpose
from tests.adapters.git.user import GIT, SESSION, TASK, User
from tests.fakes.signatures import FakeSignatures

BRANCH = f"agent/{TASK}"
AUDIT = f"refs/agent/audit/{SESSION}"


class Remote(Struct, frozen=True):
    """The bare repository, as somebody with access to its disk sees it."""

    path: Path

    def git(self, *words: str, stdin: bytes = b"") -> str:
        done = subprocess.run([GIT, "--git-dir", str(self.path), *words], input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)


class Machine(Struct, frozen=True):
    """A clone with a state folder and a key of its own."""

    name: str
    user: User
    repository: Repository
    signatures: FakeSignatures
    refs: GitSessionRefs

    async def head(self, journal: "Journal", seq: int, fence: int) -> SignedHead:
        """Return the head at an event of the journal (-1: before the first), signed by this machine."""
        digest = journal.recorded[seq].hash if seq >= 0 else ""
        head = SignedHead(SESSION, seq, digest, fence, self.name)
        return replace(head, signature=await self.signatures.sign(SignedPurpose.JOURNAL, head.message))

    def again(self) -> "Machine":
        """Return the machine after a restart of its processes."""
        repository = Repository(self.user.root, self.user.root.parent / f"state-{self.name}")
        refs = repository.session_refs("origin", self.signatures, self.name)
        return Machine(self.name, self.user, repository, self.signatures, refs)


class Journal(Struct):
    """Events of `SESSION` with hashes, and its work on one task."""

    recorded: list[Recorded] = field(default_factory=list)
    tree: str = ""

    def add(self, event: Event) -> None:
        before = self.recorded[-1].hash if self.recorded else ""
        digest = sha256(f"{before}{event!r}".encode()).hexdigest()
        self.recorded.append(Recorded(len(self.recorded), "2026-11-20T10:15:00Z", event, digest))

    async def begin(self, machine: Machine, base: str = "") -> GitWorkspace:
        """Start the task on a machine and return its workspace."""
        base = base or machine.user.head()
        self.add(SessionStarted(SESSION, str(machine.user.root), CommitId(base), "0.0"))
        workspace = await machine.repository.open(machine.user.request(base=base))
        self.add(TaskStarted(TASK, Task(TASK, "Greet"), workspace.facts, ()))
        self.tree = workspace.facts.tree
        return workspace

    async def change(self, workspace: GitWorkspace, files: Mapping[str, str], *, executable: bool = False) -> None:
        """Change files and take a checkpoint."""
        changes = [
            FileChange(path, await workspace.read(path), FileContent(text.encode(), executable))
            for path, text in files.items()
        ]
        self.tree = await workspace.write(changes, self.tree)
        self.add(CheckpointTaken(1, await workspace.checkpoint(SESSION, len(self.recorded), "checkpoint")))

    async def commit(self, workspace: GitWorkspace) -> CommitId:
        last = self.recorded[-1]
        message = f"[Agent] Complete {TASK}\n\nAgent-Journal: {SESSION}:{last.seq}:{last.hash}"
        commit = await workspace.commit(self.tree, message)
        self.add(TaskCommitted(TASK, commit, BRANCH, message))
        return commit


def clone(folder: Path, name: str, remote: Path, allowed: tuple[str, ...]) -> Machine:
    """Make a machine from a clone of the remote."""
    subprocess.run([GIT, "clone", "--quiet", str(remote), str(folder / name)], check=True)
    signatures = FakeSignatures(name, dict.fromkeys(allowed, PERSON_PURPOSES))
    user = User(folder / name)
    repository = Repository(user.root, folder / f"state-{name}")
    return Machine(name, user, repository, signatures, repository.session_refs("origin", signatures, name))


def other_session() -> SessionId:
    return SessionId("20261121T101500-zzzzzz")
