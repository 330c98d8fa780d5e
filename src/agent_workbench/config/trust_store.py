"""Which repos the user trusts, kept in the user's state folder."""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_workbench.config.trust_question import TrustQuestion
from agent_workbench.core.errors import StorageError, TrustError

LOCK_SECONDS = 10.0
_PAUSE_SECONDS = 0.01


class TrustStore:
    """The file `trust.json` (0600) in `folder`; each call reads or replaces it whole, under a lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "trust.json"

    def is_trusted(self, root: Path, question: TrustQuestion) -> bool:
        """Return whether the user trusted exactly this for this repo; where nothing is asked, that is so."""
        if not question.items:
            return True
        return self._read().get(_key(root), {}).get("digest") == question.digest

    def trusted_items(self, root: Path) -> Mapping[str, str] | None:
        """Return what was trusted last for this repo, by name, or None; raise `TrustError` for a broken file."""
        entry = self._read().get(_key(root))
        return None if entry is None else {key[5:]: text for key, text in entry.items() if key.startswith("item ")}

    def trust(self, root: Path, question: TrustQuestion) -> None:
        """Keep the user's yes to this question; raise `StorageError` where it cannot be written."""
        entry = {"digest": question.digest, **{f"item {name}": text for name, text in question.items.items()}}
        with self._locked():
            self._write({**self._read(), _key(root): entry})

    def revoke(self, root: Path) -> bool:
        """Forget the repo and return whether it was trusted; raise `StorageError` where it cannot be written."""
        with self._locked():
            repos = self._read()
            known = repos.pop(_key(root), None) is not None
            if known:
                self._write(repos)
        return known

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            facts = self._path.stat()
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                raise TrustError(
                    f"{self._path} can be written by others", advice=f"look at it, then remove it: {REMEDY}"
                )
            said = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise TrustError(f"{self._path} cannot be read: {error}", advice=f"remove it: {REMEDY}") from error
        repos = said.get("repos") if isinstance(said, dict) and said.get("version") == 1 else None
        if not isinstance(repos, dict) or not all(_is_entry(each) for each in repos.values()):
            raise TrustError(f"{self._path} does not hold what it should", advice=f"remove it: {REMEDY}")
        return repos

    def _write(self, repos: Mapping[str, Mapping[str, str]]) -> None:
        text = json.dumps({"version": 1, "repos": repos}, indent=1, sort_keys=True)
        # Born with mode 0600, and whole before it has its name.
        handle, temporary = tempfile.mkstemp(prefix=".trust-", dir=self._folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self._path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / "trust.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._lock(handle)
                yield
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error

    def _lock(self, handle: int) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StorageError(
                        f"{self._path} stayed locked by another process for {LOCK_SECONDS:g} s",
                        advice="find out which one with `lsof` or `fuser`; end it if it hangs, then try again",
                    ) from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return


REMEDY = "every repo will be asked about again"


def _key(root: Path) -> str:
    return str(root.resolve())


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(each, str) for each in entry.values())
