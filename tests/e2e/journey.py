"""Journey of a new user through a shell in a small terminal, with a count of the commands, keys and questions."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from tests.e2e.machine import Machine
from tests.e2e.tmux import Tmux, tmux
from tests.sandbox import with_sandbox

COLUMNS, ROWS = 80, 24
# A command may install packages, on a busy machine.
COMMAND_SECONDS = 900.0
KEY_SECONDS = 120.0
# A person reads before they press; the gate takes no key in the first 0.3 s.
READ_SECONDS = 0.5
# A refused key is pressed again when the refusal has been on screen for so long.
REFUSED_SECONDS = 2.0
REFUSED = "too quick"
# The number is that of the command to be typed, so that no prompt is taken for the next one.
PROMPT = "user:{}$"
# Variables of this machine that say how packages are had.
NETWORK = ("PIP_", "SSL_", "REQUESTS_", "HTTP_", "HTTPS_", "NO_PROXY", "http_", "https_", "no_proxy")


class Journey(Struct):
    """Commands typed and keys pressed so far. A question is a stop at which the workbench waits for a decision.

    `started` is when the first command was typed, `entered` the last one; `seconds` is what the whole journey took.
    What was done last leads to something on the screen within `patience` seconds.
    """

    screen: Tmux
    commands: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    questions: int = 0
    started: float = 0.0
    entered: float = 0.0
    seconds: float = 0.0
    patience: float = COMMAND_SECONDS

    @property
    def counts(self) -> dict[str, int]:
        """What it took so far."""
        return {"commands": len(self.commands), "keys": len(self.keys), "questions": self.questions}

    def command(self, line: str) -> None:
        """Type a command at the shell's prompt."""
        self._wait_for_prompt()
        self.started = self.started or time.monotonic()
        self.commands.append(line)
        self.screen.press("-l", line)
        self.screen.press("Enter")
        self.entered, self.patience = time.monotonic(), COMMAND_SECONDS

    def press(self, key: str, *asked: str) -> None:
        """Press a key once all the words that ask for it have been on screen for a moment."""
        self._wait_for(asked)
        self.keys.append(key)
        self.screen.press(key)
        self.patience = KEY_SECONDS

    def answer(self, key: str, *asked: str) -> None:
        """Press the key that answers a question."""
        self.questions += 1
        self.press(key, *asked)

    def arrive(self, *words: str) -> None:
        """Wait for what the journey leads to, and note the seconds since its first command."""
        self._wait_for(words, read_seconds=0.0)
        self.seconds = time.monotonic() - self.started

    def _wait_for_prompt(self) -> None:
        prompt = PROMPT.format(len(self.commands) + 1)
        self.screen.until(lambda: self.screen.screen.rstrip().endswith(prompt), "the shell's prompt", COMMAND_SECONDS)

    def _wait_for(self, words: tuple[str, ...], read_seconds: float = READ_SECONDS) -> None:
        shown, refused = Since(), Since()

        def read() -> bool:
            screen = self.screen.screen
            if refused.holds(REFUSED in screen, REFUSED_SECONDS):
                self.screen.press(self.keys[-1])
                refused.at = 0.0
            return shown.holds(REFUSED not in screen and all(word in screen for word in words), read_seconds)

        self.screen.until(read, " and ".join(words), self.patience)


class Since(Struct):
    """The time since when something holds, 0 while it does not."""

    at: float = 0.0

    def holds(self, now: bool, seconds: float) -> bool:
        """Return True if it has held for so long."""
        self.at = (self.at or time.monotonic()) if now else 0.0
        return now and time.monotonic() - self.at >= seconds


@contextmanager
def journey(folder: Path, start: Path, programs: str = "") -> Iterator[Journey]:
    """Give a shell in `start` whose home is `folder`'s, empty at first, and no variables but the usual.

    `programs` come first on its PATH.
    """
    home = folder / "home"
    home.mkdir(exist_ok=True)
    machine = Machine(Path(tempfile.mkdtemp(dir=folder)))
    machine.environ = bare_environ(home, programs)
    with tmux(machine, start) as screen:
        screen.start_shell(COLUMNS, ROWS)
        yield Journey(screen)


def bare_environ(home: Path, programs: str = "") -> dict[str, str]:
    """Return the environment of a new user, with the Python of this machine and without its virtual environments."""
    paths = [programs, f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"]
    temporary = home.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    return {
        **{name: value for name, value in os.environ.items() if name.startswith(NETWORK)},
        "PATH": with_sandbox(":".join(filter(None, paths))),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "PS1": PROMPT.format("\\#") + " ",
    }
