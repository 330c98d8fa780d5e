"""Transport of refs and objects to and from a git remote, without trust in it; and the push to a forge."""

import asyncio
import base64
import os
import re
import shlex
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from agent_workbench.adapters.git.detached_git import DetachedGit, network_variables
from agent_workbench.adapters.git.discovery import RepoPaths, discover
from agent_workbench.adapters.git.objects import MAX_FILE_BYTES
from agent_workbench.adapters.git.plumbing import GitResult, Plumbing
from agent_workbench.core.errors import ConfigError, ForgeError, JournalError, StorageError
from agent_workbench.core.ids import CommitId
from agent_workbench.core.patch.paths import shown
from agent_workbench.core.ports.forge import AnnotatedTag
from agent_workbench.system.atomic_files import make_directories, storage_error, sync_directory, sync_file
from agent_workbench.system.command_bounds import check_record
from agent_workbench.system.loopback import is_loopback
from agent_workbench.system.programs import find_program

LIST_SECONDS, PUSH_SECONDS, FETCH_SECONDS = 30.0, 120.0, 300.0
MAX_PACK_BYTES = 2_000_000_000
MAX_REFS = 20_000
_MAX_OBJECTS_BYTES = 8_000_000_000
_MAX_LIST_BYTES = 8_000_000
_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_REMOTE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?\[?[A-Za-z0-9.:_-]+\]?:[^:].*")
_PROTOCOLS = ("file", "ssh", "https", "http")
# No question, no forwarding, no command of the host's configuration beyond the connection itself.
_SSH_OPTIONS = "-oBatchMode=yes -oConnectTimeout=20 -oForwardAgent=no -oClearAllForwardings=yes -oPermitLocalCommand=no"
# A repository on this machine is served with the rights of this process: nothing that it configures may run.
_LOCAL = (
    *("core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "core.fsmonitor=false"),
    *("receive.autogc=false", "receive.denyCurrentBranch=refuse"),
)

FORGE_SECONDS = 120.0
TAGGER = "Agent Workbench <agent@localhost>"
_BRANCH = re.compile(r"agent/[A-Za-z][A-Za-z0-9._-]{0,80}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Quarantine(Struct, frozen=True):
    """What was fetched: the commit of each ref, in a repository of its own beside the user's objects."""

    refs: Mapping[str, str]
    plumbing: Plumbing
    folder: Path


class Transport:
    """Connection to the git remote for one repository; `folder` is private to the user. Its methods block.

    All of them raise `StorageError` if the remote does not do what was asked, with its reason.
    """

    def __init__(self, paths: RepoPaths, plumbing: Plumbing, folder: Path, remote: str) -> None:
        self._program, self._paths, self._folder = plumbing.program, paths, folder
        self.address: RemoteAddress = remote_address(remote, plumbing, paths)
        self._settings = remote_settings(self.address, plumbing)
        self._git = self._detached(folder)
        self._prepared = False
        self._preparing = threading.Lock()
        self._fetching: set[DetachedGit] = set()

    def _detached(self, folder: Path) -> DetachedGit:
        variables = remote_variables(self.address, self._paths)
        return DetachedGit(self._program, self._paths, folder, self.address.protocol, self._settings, variables)

    def _ready(self) -> DetachedGit:
        with self._preparing:
            if not self._prepared:
                _make(self._folder)
                self._git.prepare()
                self._prepared = True
        return self._git

    def list(self, *patterns: str) -> dict[str, str]:
        """Return the remote's refs that match; raise `JournalError` for a symbolic one or far too many."""
        words = ("ls-remote", "--refs", "--symref", "--quiet", *self.address.fetch_words, self.address.url, *patterns)
        result = self._ready().run(*words, seconds=LIST_SECONDS, max_output=_MAX_LIST_BYTES)
        self._check(result, "ls-remote")
        found: dict[str, str] = {}
        for line in result.out.decode("utf-8", "replace").splitlines():
            oid, _, ref = line.partition("\t")
            if oid.startswith("ref:"):
                raise JournalError(f"{shown(ref)} is a symbolic ref at {self.name}", advice="remove it there")
            if _NAME.fullmatch(oid):
                found[ref] = oid
        if len(found) > MAX_REFS:
            raise JournalError(f"{self.name} has more than {MAX_REFS:,} refs of one session")
        return found

    def push(self, updates: Mapping[str, str], leases: Mapping[str, str]) -> str:
        """Set refs at the remote (empty: remove), all or none; return why the remote rejected a ref, empty if none.

        A ref in `leases` is moved from that object only, or made if that is empty.
        """
        held = [f"--force-with-lease={ref}:{oid}" for ref, oid in leases.items()]
        words = ("--porcelain", "--atomic", "--no-verify", "--no-signed", "--recurse-submodules=no", *held)
        specs = [f"{'' if ref in leases or not oid else '+'}{oid}:{ref}" for ref, oid in updates.items()]
        command = ("push", *words, *self.address.push_words, self.address.url, *specs)
        result = self._ready().run(*command, seconds=PUSH_SECONDS, max_output=_MAX_LIST_BYTES)
        lines = result.out.decode("utf-8", "replace").splitlines()
        rejected = [line.split("\t")[-1] for line in lines if line.startswith("!")]
        if rejected:
            return shown("; ".join(dict.fromkeys(rejected)), 300)
        self._check(result, "push")
        return ""

    @contextmanager
    def fetch(self, *patterns: str) -> Iterator[Quarantine]:
        """Fetch the refs that match (`refs/x/*`) with their objects; nothing of it is in the user's repository yet."""
        _make(self._folder)
        try:
            folder = Path(tempfile.mkdtemp(prefix="fetch-", dir=self._folder))
        except OSError as error:
            raise storage_error(f"{self._folder} cannot be written", error) from error
        git = self._detached(folder)
        self._fetching.add(git)
        try:
            git.prepare()
            specs = [f"+{each}:{each}" for each in patterns]
            words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune")
            given = ("--no-recurse-submodules", "--refmap=", *self.address.fetch_words, self.address.url, *specs)
            result = git.run(*words, *given, seconds=FETCH_SECONDS, max_file=MAX_PACK_BYTES)
            self._check(result, "fetch")
            plumbing = Plumbing(self._program, str(git.git_dir))
            _check_sizes(plumbing, git.git_dir, self.name)
            listed = plumbing.run("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)")
            refs: dict[str, str] = {}
            for line in listed.decode("utf-8", "replace").splitlines():
                oid, kind, ref = line.split(" ", 2)
                if kind != "commit":
                    raise JournalError(f"{shown(ref)} is a {kind} at {self.name}, and not a commit")
                refs[ref] = oid
            if len(refs) > MAX_REFS:
                raise JournalError(f"{self.name} has more than {MAX_REFS:,} refs of one session")
            yield Quarantine(refs, plumbing, git.git_dir)
        finally:
            self._fetching.discard(git)
            shutil.rmtree(folder, ignore_errors=True)

    def adopt(self, quarantine: Quarantine) -> None:
        """Bring the fetched objects into the user's repository, where no ref leads to them yet."""
        target = Path(self._paths.common_dir, "objects", "pack")
        check_record(target)
        packs = sorted(quarantine.folder.glob("objects/pack/pack-*.pack"))
        try:
            target.mkdir(parents=True, exist_ok=True)
            for pack in packs:
                for suffix in (".pack", ".idx"):  # git looks for the index, which comes last
                    _copy_durably(pack.with_suffix(suffix), target / f"{pack.stem}{suffix}")
            sync_directory(target)
        except OSError as error:
            raise storage_error(f"the fetched objects cannot be stored in {target}", error) from error

    def stop(self) -> None:
        """End what runs now, which fails with `StorageError` and can be done again."""
        for git in (self._git, *self._fetching):
            git.stop()

    @property
    def name(self) -> str:
        """The remote as it is named in messages."""
        return f"the git remote {shown(self.address.url, 200)}"

    def _check(self, result: GitResult, command: str) -> None:
        if result.status:
            said = [line.strip() for line in result.err.splitlines() if line.strip()]
            telling = [line for line in said if not line.startswith(("hint:", "To ", "remote: \t"))]
            reason = shown(" ".join(telling[:4]) or f"status {result.status}", 400)
            raise StorageError(
                f"git {command} with {self.name} failed: {reason}",
                advice="see that the remote can be reached, has space, and that this user may push there",
            )


def _check_sizes(plumbing: Plumbing, git_dir: Path, name: str) -> None:
    """Raise `JournalError` if a fetched object, or all of them, are larger than a workspace may be."""
    total = 0
    for index in sorted(git_dir.glob("objects/pack/pack-*.idx")):
        listed = plumbing.run("show-index", stdin=index.read_bytes())
        oids = [line.split(" ")[1] for line in listed.decode("ascii", "replace").splitlines()]
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        sizes = plumbing.run("cat-file", "--batch-check=%(objectsize)", stdin=asked).split()
        largest = max((int(each) for each in sizes if each.isdigit()), default=0)
        total += sum(int(each) for each in sizes if each.isdigit())
        if largest > MAX_FILE_BYTES or total > _MAX_OBJECTS_BYTES:
            raise JournalError(
                f"{name} sent an object of {largest:,} bytes, {total:,} in all, which no workspace can hold",
                advice="nothing of it was taken; somebody else than a worker may have put it there",
            )


def _make(folder: Path) -> None:
    try:
        make_directories(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise storage_error(f"{folder} cannot be created", error) from error


def _copy_durably(source: Path, target: Path) -> None:
    if target.exists():
        return
    scratch = target.with_name(f"tmp_{target.name}")
    shutil.copyfile(source, scratch)
    scratch.chmod(0o444)
    with scratch.open("rb") as file:
        sync_file(file.fileno())
    scratch.replace(target)


class RemoteAddress(Struct, frozen=True):
    """Address of a repository, and the one protocol by which it is reached.

    `safe` are folders of other users that the user's own git settings trust.
    """

    url: str
    protocol: str
    safe: tuple[str, ...] = ()

    @property
    def push_words(self) -> tuple[str, ...]:
        """Words of `git push` for this address."""
        return self._served("receive-pack")

    @property
    def fetch_words(self) -> tuple[str, ...]:
        """Words of `git fetch` and `git ls-remote` for this address."""
        return self._served("upload-pack")

    def _served(self, command: str) -> tuple[str, ...]:
        if self.protocol != "file":
            return ()
        settings = (*_LOCAL, *(f"safe.directory={each}" for each in self.safe))
        return (f"--{command}={shlex.join(('git', *(word for each in settings for word in ('-c', each)), command))}",)


def remote_address(text: str, plumbing: Plumbing, paths: RepoPaths) -> RemoteAddress:
    """Return the address that a setting names: a remote of the repository, a URL, or a path.

    Raises `ConfigError` for one that cannot be used, and for a password in it, which every process could read.
    """
    url = _configured(text, plumbing) if _REMOTE_NAME.fullmatch(text) and "/" not in text else text
    protocol = _protocol(url)
    if protocol == "file" and "://" not in url:
        url = str(Path(paths.root, url).resolve())
    address = urlsplit(url) if protocol != "file" and "://" in url else None
    if address is not None and (address.password or (protocol == "https" and address.username)):
        raise ConfigError(
            f"the address of the git remote {shown(address.hostname or '')} has credentials in it",
            advice="remove them; git's credential helpers in your own git settings, and SSH keys, are used",
        )
    if protocol == "http" and not is_loopback((address.hostname if address else "") or ""):
        raise ConfigError(f"{shown(url)} would send code unencrypted", advice="use https or ssh for the remote")
    return RemoteAddress(url, protocol, _safe(plumbing) if protocol == "file" else ())


def _safe(plumbing: Plumbing) -> tuple[str, ...]:
    """Return the trusted folders of other users, as git does: of all settings but the repository's own."""
    told = plumbing.attempt("config", "--show-scope", "--get-all", "-z", "safe.directory").out
    words = os.fsdecode(told).split("\0")[:-1]
    # An empty one, which takes back those before it, is kept.
    return tuple(
        value for scope, value in zip(words[::2], words[1::2], strict=True) if scope not in {"local", "worktree"}
    )


def _configured(name: str, plumbing: Plumbing) -> str:
    if url := remote_url(name, plumbing):
        return url
    raise ConfigError(
        f"the repository has no remote {shown(name)}, through which machines share checkpoints",
        advice="add it with `git remote add`, or name another one in database.remote",
    )


def remote_url(name: str, plumbing: Plumbing) -> str:
    """Return the address to which a remote pushes, empty if there is no such remote. Blocks."""
    for key in (f"remote.{name}.pushurl", f"remote.{name}.url"):
        found = plumbing.attempt("config", "--get", key)
        if not found.status and (url := os.fsdecode(found.out).strip()):
            return url
    return ""


def _protocol(url: str) -> str:
    scheme, found, _ = url.partition("://")
    if not found:
        scheme = "ssh" if _SCP.fullmatch(url) and not url.startswith(("/", ".")) else "file"
    helper = re.match(r"[A-Za-z0-9]+::", url) is not None
    if scheme not in _PROTOCOLS or helper or not url or url.startswith("-") or any(ord(each) < 32 for each in url):
        raise ConfigError(
            f"{shown(url)} is no address that checkpoints are pushed to",
            advice=f"set the remote of database.remote to a path, or an address with {', '.join(_PROTOCOLS)}",
        )
    return scheme


def remote_variables(address: RemoteAddress, paths: RepoPaths) -> dict[str, str]:
    """Return the variables that git needs to reach the remote: nothing of it is the repository's."""
    if address.protocol == "ssh":
        ssh = find_program("ssh", os.environ.get("PATH", ""), paths.root)
        passed = {name: os.environ[name] for name in ("HOME", "SSH_AUTH_SOCK", "USER") if name in os.environ}
        return {**passed, "GIT_SSH_COMMAND": f"{ssh or 'ssh'} {_SSH_OPTIONS}"}
    if address.protocol == "https":
        passed = {
            name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR") if name in os.environ
        }
        return {**passed, **network_variables()}
    return {}


def remote_settings(address: RemoteAddress, plumbing: Plumbing) -> tuple[tuple[str, str], ...]:
    """Return settings for git: checks of what is received, and the user's own credential helpers for https."""
    if address.protocol != "https":
        return _RECEIVED
    found = plumbing.attempt("config", "--global", "--get-regexp", "-z", r"^credential\.")
    helpers = [each.partition("\n")[::2] for each in os.fsdecode(found.out).split("\0") if each]
    return (*_RECEIVED, *helpers)


# What old histories have and cannot do harm is no reason to refuse them.
_HARMLESS = (
    *("zeroPaddedFilemode", "badTimezone", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "badEmail"),
    *("badDate", "zeroPaddedDate", "missingNameBeforeEmail", "badName", "badDateOverflow", "badFilemode"),
)
_RECEIVED = (
    ("fetch.fsckObjects", "true"),
    ("fetch.unpackLimit", "1"),
    ("fetch.recurseSubmodules", "false"),
    ("transfer.credentialsInUrl", "die"),
    ("protocol.version", "2"),
    *((f"fetch.fsck.{each}", "ignore") for each in _HARMLESS),
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
            return git.run(*arguments, stdin=stdin, seconds=FORGE_SECONDS)
        except StorageError:
            raise ForgeError(f"git {arguments[0]} for the forge did not end within {FORGE_SECONDS:g} s") from None

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
