"""Push of a branch and its tag to the forge, from a git directory in which the repository has configured nothing."""

import asyncio
import base64
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from agent_workbench.adapters.git.detached_git import DetachedGit, network_variables
from agent_workbench.adapters.git.discovery import discover
from agent_workbench.adapters.git.plumbing import GitResult
from agent_workbench.core.errors import ForgeError, StorageError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.ports.forge import AnnotatedTag
from agent_workbench.system.loopback import is_loopback

PUSH_SECONDS = 120.0
TAGGER = "Agent Workbench <agent@localhost>"
_BRANCH = re.compile(r"agent/[A-Za-z][A-Za-z0-9._-]{0,80}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class ForgePush:
    """`core.ports.forge.ForgeRemote` at `url`, for the repository that contains the folder `start`.

    The token is in the environment of git alone: in no argument and no file.
    """

    def __init__(self, start: Path, url: str, token: str) -> None:
        self._start = start
        self._url = url
        self._told = base64.b64encode(f"agent:{token}".encode()).decode()
        self._secrets = (token, self._told)

    async def push(self, branch: str, commit: CommitId, tag: AnnotatedTag | None) -> None:
        await asyncio.to_thread(self._push, branch, commit, tag)

    def _push(self, branch: str, commit: CommitId, tag: AnnotatedTag | None) -> None:
        if not _BRANCH.fullmatch(branch) or not _COMMIT.fullmatch(commit) or (tag and not _TAG.fullmatch(tag.name)):
            raise ForgeError(f"{shown(branch)} at {shown(commit)} is not a branch of the agent")
        program, paths = discover(str(self._start))
        address = urlsplit(self._url)
        header = (f"http.{self._url}.extraHeader", f"Authorization: Basic {self._told}")
        network = {} if is_loopback(address.hostname or "") else network_variables()
        with tempfile.TemporaryDirectory(prefix="agent-push-") as folder:
            git = DetachedGit(program, paths, Path(folder), address.scheme, (header,), network)
            git.prepare()
            refs = [f"{commit}:refs/heads/{branch}"]
            if tag is not None:
                made = self._checked(self._run(git, "mktag", stdin=_tag_object(commit, tag)))
                refs.append(f"{made.out.decode().strip()}:refs/tags/{tag.name}")
            words = ("--quiet", "--atomic", "--no-verify", "--no-signed", "--recurse-submodules=no")
            self._checked(self._run(git, "push", *words, self._url, *refs))

    def _run(self, git: DetachedGit, *arguments: str, stdin: bytes | None = None) -> GitResult:
        """Run git; a command that does not end is the forge's failure."""
        try:
            return git.run(*arguments, stdin=stdin, seconds=PUSH_SECONDS)
        except StorageError:
            raise ForgeError(f"git {arguments[0]} for the forge did not end within {PUSH_SECONDS:g} s") from None

    def _checked(self, result: GitResult) -> GitResult:
        if result.status:
            raise ForgeError(
                f"git push to {self._url} failed: {self._reason(result)}",
                advice="check that the token's account may push branches named agent/…",
            )
        return result

    def _reason(self, result: GitResult) -> str:
        said = result.err
        for secret in self._secrets:
            said = said.replace(secret, "«token»")
        lines = " ".join(_telling_lines(said)) or f"status {result.status}"
        return shown(lines, 300)


def _tag_object(commit: CommitId, tag: AnnotatedTag) -> bytes:
    """Return the object of a tag: the same bytes each time it is made."""
    seconds = int(datetime.fromisoformat(tag.time).timestamp())
    message = " ".join(tag.message.split())
    head = f"object {commit}\ntype commit\ntag {tag.name}\ntagger {TAGGER} {seconds} +0000\n"
    return f"{head}\n{message}\n".encode("utf-8", "replace")


def _telling_lines(said: str) -> Iterator[str]:
    """Yield the lines that name the cause; git adds hints and a summary."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    yield from [line for line in lines if not line.startswith(("hint:", "To "))][:4]
