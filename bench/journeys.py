"""Journeys of a new user: commands, keys, questions and seconds; and how soon the first request reaches the model.

Times begin with Enter in a shell, in a terminal of 80 by 24. Keys are pressed half a second after the screen asks.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.figures import Figure
from scripts.tiny_model import write_tiny_gguf
from tests.e2e.journey import KEY_SECONDS, Journey, journey
from tests.e2e.journeys import ANSWERS, WORDS, clone_to_demo, new_repo, wheel_to_commit
from tests.fakes.scripted_server import scripted_server
from tests.llama_fixtures import LlamaServer, ServerThread

PROGRAMS = str(Path(sys.executable).parent)


class Start(Struct, frozen=True):
    """A command line that asks the model; on a screen the words are started by a key."""

    name: str
    line: str
    answers: tuple[str, ...] = ANSWERS
    on_screen: bool = False


STARTS = (
    Start("agent tui", "agent tui --model-url {url} '{words}'", on_screen=True),
    Start("agent run", "agent run --yes --unconfined --model-url {url} '{words}'"),
    Start("agent chat", "agent chat --model-url {url} '{words}'", ("Answer: It subtracts.",)),
)


def measure(rounds: int = 3, *, starts: tuple[Start, ...] = STARTS, whole: bool = True) -> list[Figure]:
    """Return medians over `rounds` of the first requests; with `whole` the journeys too, which install packages."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="journeys-") as temporary, _server(Path(temporary)) as server:
        folder = Path(temporary)
        for start in starts:
            figures += _first_requests(start, folder, server, rounds)
        if whole:
            with clone_to_demo(_new(folder)) as user:
                figures += _counted("clone to the merge of the demo", user)
            with wheel_to_commit(_new(folder), server) as user:
                figures += _counted("wheel to a commit", user)
    return figures


def _first_requests(start: Start, folder: Path, server: LlamaServer, rounds: int) -> list[Figure]:
    """Start the command twice in a new home and repository, `rounds` times."""
    first, again = [], []
    for _ in range(rounds):
        place = _new(folder)
        new_repo(place / "calc")
        first.append(_seconds(start, place, server, new=True))
        again.append(_seconds(start, place, server, new=False))
    return [
        Figure(f"{start.name} to the first request, in a new home", median(first), "s"),
        Figure(f"{start.name} to the first request, later", median(again), "s"),
    ]


def _seconds(start: Start, place: Path, server: LlamaServer, *, new: bool) -> float:
    with scripted_server(server, start.answers) as model, journey(place, place / "calc", PROGRAMS) as user:
        user.command(start.line.format(url=model.url, words=WORDS))
        if new and start.on_screen:
            user.press("Escape", "1 of 5", "Esc skips the tour")
            user.answer("y", "Set this repo up", "y write them")
        if start.on_screen:
            user.answer("Enter", "New task", "Enter starts it")
        user.screen.until(lambda: bool(model.asked_at), "the first request", KEY_SECONDS)
        return model.asked_at[0] - user.entered


def _counted(name: str, user: Journey) -> list[Figure]:
    counts = [Figure(f"{name}: {what}", count, what) for what, count in user.counts.items()]
    return [*counts, Figure(f"{name}: seconds", user.seconds, "s")]


def _new(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


@contextmanager
def _server(folder: Path) -> Iterator[LlamaServer]:
    model = folder / "tiny.gguf"
    write_tiny_gguf(model)
    thread = ServerThread(model, folder / "server.log", 16_384)
    try:
        yield thread.start()
    finally:
        thread.stop()
