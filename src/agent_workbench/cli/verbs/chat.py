"""`agent chat`: a conversation with the model about the repository, or a single question."""

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say, say_aside, say_error
from agent_workbench.cli.questions import agrees
from agent_workbench.core.errors import ExitCode, UsageError, WorkbenchError
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.api.sessions.conversation import Conversation, Reply
    from agent_workbench.cli.verbs.chat_output import ChatPrinter
    from agent_workbench.core.proposals import Proposal

Result = TypeVar("Result")

PROMPT = "> "
HELP = """\
/NAME WORDS    send your own prompt memory/commands/NAME.md, or the skill NAME with your words,
               or ask a consultant: /review @file, /debug ERROR, /spec WORDS
/task WORDS    add a task to the plan (without words: your newest message)
/help          print this
/quit          leave; so does Ctrl-D
@path          send a file of the repository with your message; Tab completes it
Ctrl-C         stop an answer"""
MOST_STDIN_CHARS = 100_000


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument(
        "prompt",
        nargs="?",
        metavar="PROMPT",
        help='one message, or a prompt of yours ("/fix 12"); without it you are asked',
    )
    verb.add_argument("--session", metavar="ID", help="go on with this chat")
    verb.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    add_model_flags(verb)


def execute(options: argparse.Namespace) -> int:
    """Send the message, or each that is typed; the exit code tells if there was a reply."""
    from agent_workbench.cli.verbs.chat_output import ChatPrinter

    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not options.json
    words = options.prompt
    if words is None and not interactive:
        words = sys.stdin.read(MOST_STDIN_CHARS + 1)
    if words is not None and not words.strip():
        raise UsageError("the message is empty", advice='ask something: agent chat "which skills are there?"')
    invocation = Invocation(Path.cwd(), os.environ, overrides(options))
    printer = ChatPrinter(as_json=options.json)
    with _Loop() as loop:
        talk = _Talk(loop, printer, invocation, attended=interactive)
        try:
            talk.open(options.session or "")
            return talk.ask(words) if words is not None else talk.converse()
        finally:
            talk.close()


class _Loop:
    """Event loop in a thread of its own, so that Ctrl-C interrupts the typing, and stops an answer cleanly."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="chat", daemon=True)

    def __enter__(self) -> "_Loop":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def begin(self, work: Coroutine[None, None, Result]) -> "Future[Result]":
        """Start work in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[None, None, Result]) -> Result:
        """Run work to its end."""
        return self.begin(work).result()


class _Talk:
    """One chat in the shell."""

    def __init__(self, loop: _Loop, printer: "ChatPrinter", invocation: Invocation, *, attended: bool) -> None:
        from agent_workbench.api.sessions.session_host import LocalSessionHost

        self._loop = loop
        self._printer = printer
        self._host = LocalSessionHost(invocation)
        self._attended = attended
        self._chat: Conversation | None = None
        self._newest = ""

    @property
    def _conversation(self) -> "Conversation":
        if self._chat is None:
            raise AssertionError("the chat is not open")
        return self._chat

    def open(self, session: str) -> None:
        """Open the chat; raise what prevents it."""
        self._chat = self._loop.run(self._open(session))
        if session:
            self._printer.seen = self._chat.opened_seq
            self._answered(self._chat.proceed())  # a message that was left without a reply

    async def _open(self, session: str) -> "Conversation":
        from agent_workbench.api.sessions.conversation import open_chat
        from agent_workbench.api.trusted_repo import repo_or_folder

        await repo_or_folder(self._host.invocation, say_aside)
        return await open_chat(self._host, session, attended=self._attended, report=self._printer.show)

    def close(self) -> None:
        """Leave the session and wait for its end; a second Ctrl-C does not wait."""
        self._printer.end_line()
        with suppress(KeyboardInterrupt):
            self._loop.run(self._host.close())

    def converse(self) -> int:
        """Send each message that is typed, until the end of the input."""
        self._prepare_line()
        say_aside("Ask about this repository; /help lists the commands, Ctrl-D leaves.")
        while True:
            try:
                words = input(PROMPT).strip()
            except EOFError:
                break
            except KeyboardInterrupt:
                say_aside("")
                continue
            if words in {"/quit", "/exit"}:
                break
            try:
                self._take(words)
            except WorkbenchError as error:
                self._printer.end_line()
                say_error(error)
        say_aside(f"the chat is kept; `agent chat --session {self._conversation.session}` goes on with it")
        return ExitCode.DONE

    def _take(self, words: str) -> None:
        if words == "/help":
            say(HELP)
        elif words == "/task" or words.startswith("/task "):
            self._add_task(words.removeprefix("/task").strip() or self._newest)
        elif words:
            self._newest = words
            self.ask(words)

    def _add_task(self, words: str) -> None:
        if not words:
            raise UsageError("there is nothing to make a task of", advice="/task WORDS")
        task = self._loop.run(self._conversation.add_task(words))
        say(f"{task.id} is added to the plan: {' '.join(task.description.split())}")

    def ask(self, words: str) -> int:
        """Send a message, show what comes, and ask about each call that waits; return the exit code.

        A prompt of the user's own is printed before it is sent.
        """
        expanded = self._loop.run(self._conversation.expand(words))
        if expanded != words:
            say_aside(expanded)
        reached = self._answered(self._conversation.say(expanded))
        if reached.cut:
            say_aside(f"the reply was {reached.cut}")
        if reached.stopped:
            say_aside("stopped; there is no reply")
            return ExitCode.INTERRUPTED
        return ExitCode.DONE

    def _answered(self, work: "Coroutine[None, None, Reply | Proposal]") -> "Reply":
        """Show what comes until the reply, and ask about each call that waits."""
        from agent_workbench.core.proposals import Proposal

        reached = self._stoppable(work)
        say_aside(self._conversation.remark)
        while isinstance(reached, Proposal):
            reached = self._stoppable(self._conversation.decide(reached, approved=self._approves(reached)))
        self._printer.end_line()
        return reached

    def _approves(self, call: "Proposal") -> bool:
        """Show a call in full and return the user's decision; Ctrl-C rejects it."""
        self._printer.end_line()
        if not self._printer.show_call(call):
            return False
        try:
            return agrees("approve it?")
        except (EOFError, KeyboardInterrupt):
            say_aside("")
            return False

    def _stoppable(self, work: "Coroutine[None, None, Reply | Proposal]") -> "Reply | Proposal":
        """Run work; the first Ctrl-C stops what is answered, the next one raises `KeyboardInterrupt`."""
        running = self._loop.begin(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            self._loop.run(self._conversation.stop())
            return running.result()

    def _prepare_line(self) -> None:
        """Give the line an editor with a history, and completion of `@` and `/`."""
        from agent_workbench.cli.verbs.chat_output import prepare_line

        prompts = self._loop.run(self._conversation.prompts())
        prepare_line(self._loop.run(self._host_files()), [f"/{each.name}" for each in prompts])

    async def _host_files(self) -> tuple[str, ...]:
        from agent_workbench.api.trusted_repo import trusted_repo

        try:
            repo, _ = await trusted_repo(self._host.invocation)
            return await (await repo.repository.checkout_files()).list_files()
        except WorkbenchError:
            return ()
