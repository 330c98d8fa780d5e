"""Push of a branch and its tag to the forge, from a git directory in which the repository has configured nothing.

An address that the repository rewrites (`url.*.insteadOf`), a proxy or helper that it names, `.netrc` and hooks would
send the token or the code elsewhere. So git runs in an empty repository that only borrows the objects.
"""

import asyncio
import base64
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from agent_workbench.adapters.git.commands.discovery import RepoPaths, discover
from agent_workbench.adapters.git.commands.plumbing import GitProgram, GitResult
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
_NETWORK = (
    *("https_proxy", "HTTPS_PROXY", "http_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
)


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
        with tempfile.TemporaryDirectory(prefix="agent-push-") as folder:
            environment = self._environment(folder, paths)
            run = _Runner(program, environment, f"{folder}/repo.git")
            self._checked(run("init", "--quiet", "--bare", "--template=", f"--object-format={paths.algorithm}"))
            _copy_shallow(paths, Path(run.git_dir))
            refs = [f"{commit}:refs/heads/{branch}"]
            if tag is not None:
                made = self._checked(run("mktag", stdin=_tag_object(commit, tag)))
                refs.append(f"{made.out.decode().strip()}:refs/tags/{tag.name}")
            words = ("--quiet", "--atomic", "--no-verify", "--no-signed", "--recurse-submodules=no")
            self._checked(run("push", *words, self._url, *refs))

    def _environment(self, folder: str, paths: RepoPaths) -> dict[str, str]:
        """Return the whole environment of git: no settings but these, no home, no helper that asks."""
        settings = (
            ("core.hooksPath", "/dev/null"),
            ("credential.helper", ""),
            ("http.followRedirects", "false"),
            (f"http.{self._url}.extraHeader", f"Authorization: Basic {self._told}"),
            ("gc.auto", "0"),
        )
        address = urlsplit(self._url)
        network = () if is_loopback(address.hostname or "") else _NETWORK
        environment = {name: os.environ[name] for name in network if name in os.environ}
        environment |= {
            "PATH": "/usr/bin:/bin",
            "HOME": folder,
            "LC_ALL": "C",
            "LANGUAGE": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": address.scheme,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_GRAFT_FILE": "/dev/null/grafts",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(f"{paths.common_dir}/objects"),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (name, value) in enumerate(settings):
            environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return environment

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


class _Runner:
    """Git in one git directory; a command that does not end is the forge's failure."""

    def __init__(self, program: GitProgram, environment: dict[str, str], git_dir: str) -> None:
        self._program = program
        self._environment = environment
        self.git_dir = git_dir

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> GitResult:
        words = [f"--git-dir={self.git_dir}", *arguments]
        try:
            return self._program.run(words, environment=self._environment, stdin=stdin, seconds=PUSH_SECONDS)
        except StorageError:
            raise ForgeError(f"git {arguments[0]} for the forge did not end within {PUSH_SECONDS:g} s") from None


def _tag_object(commit: CommitId, tag: AnnotatedTag) -> bytes:
    """Return the object of a tag: the same bytes each time it is made."""
    seconds = int(datetime.fromisoformat(tag.time).timestamp())
    message = " ".join(tag.message.split())
    head = f"object {commit}\ntype commit\ntag {tag.name}\ntagger {TAGGER} {seconds} +0000\n"
    return f"{head}\n{message}\n".encode("utf-8", "replace")


def _copy_shallow(paths: RepoPaths, git_dir: Path) -> None:
    """Let git know where the history of a shallow clone ends."""
    source = Path(paths.common_dir) / "shallow"
    if source.is_file():
        (git_dir / "shallow").write_bytes(source.read_bytes())


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _telling_lines(said: str) -> Iterator[str]:
    """Yield the lines that name the cause; git adds hints and a summary."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    yield from [line for line in lines if not line.startswith(("hint:", "To "))][:4]
