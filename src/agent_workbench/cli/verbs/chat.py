"""`agent chat`: a conversation with the model about the repository, or a single question, and how it is printed."""

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from agent_workbench.cli.options import add_model_flags, overrides
from agent_workbench.cli.output import say, say_aside, say_document, say_error
from agent_workbench.cli.questions import ProgressLine, agrees
from agent_workbench.core.errors import ExitCode, UsageError, WorkbenchError
from agent_workbench.core.events import (
    ActionDecided,
    ActionFinished,
    ActionProposed,
    ActionRejected,
    ActionResult,
    ChatReplied,
    Recorded,
)
from agent_workbench.core.live import SessionUpdate, Streaming
from agent_workbench.core.proposals import Proposal, Verdict, is_person, is_too_long
from agent_workbench.core.repo.workspace import SandboxFacts
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.chat_form import split_streamed
from agent_workbench.core.text.mentions import mention_of
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, sanitize_whole
from agent_workbench.core.tools.skill_tools import script_call
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.views.gate.notes import call_notes, script_notes

if TYPE_CHECKING:
    from agent_workbench.api.sessions.conversation import Conversation, Reply


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

FOLDED_LINES, MOST_FAILED_LINES = 4, 20
"""Lines of a result that are printed: the reply below says what matters of it, unless the call failed."""
MOST_COMPLETIONS = 50
COMMANDS = ("/help", "/quit", "/task")
_PREFIX = "  "


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

        prompts = self._loop.run(self._conversation.prompts())
        prepare_line(self._loop.run(self._host_files()), [f"/{each.name}" for each in prompts])

    async def _host_files(self) -> tuple[str, ...]:
        from agent_workbench.api.trusted_repo import trusted_repo

        try:
            repo, _ = await trusted_repo(self._host.invocation)
            return await (await repo.repository.checkout_files()).list_files()
        except WorkbenchError:
            return ()


class ChatPrinter:
    """Prints what is new in each update. Text of the model and of tools cannot control the terminal.

    Events up to the number `seen` are not printed.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.seen = -1
        self._reply = ""
        self._open_line = False
        self._shown_notice = 0
        self._specs: tuple[ToolSpec, ...] = ()
        self._sandbox: SandboxFacts | None = None
        self._progress = ProgressLine()

    def show(self, update: SessionUpdate) -> None:
        """Print the events and the text that came since the last update."""
        state = update.state
        self._specs = state.specs
        self._sandbox = state.config.sandbox if state.config is not None else None
        if state.seq > self.seen:
            for recorded in state.events:
                if recorded.seq > self.seen:
                    self._print(recorded, update)
            self.seen = state.seq
        if not self._as_json and update.live.streaming is not None:
            self._stream(update.live.streaming)
        for notice in update.live.notices:
            if notice.number > self._shown_notice:
                self._shown_notice = notice.number
                self._progress.show("")
                say_aside(notice.text)
        if not self._as_json and not self._open_line:
            activity = update.live.activity
            self._progress.show(f"{activity} · {update.live.seconds:.0f} s" if activity else "")

    def end_line(self) -> None:
        """End the line of a reply that streamed, or of progress."""
        self._progress.show("")
        if self._open_line:
            say_document("")
            self._open_line = False
        self._reply = ""

    def show_call(self, call: Proposal) -> bool:
        """Print a call that waits, in full; return False if it is too long to be shown."""
        if is_too_long(call):
            say_aside(f"{call.tool} is not called: it is too long to be shown in full")
            return False
        script = script_call(call)
        if script is not None:
            head = "\n".join(block.text for block in script_notes(script, self._sandbox))
            text = sanitize_whole(script.script, keep_returns=True)
        else:
            asked = "The question of a server" if call.is_question else f"A call of {sanitize_line(call.tool)}"
            head = f"{asked} waits for your approval:"
            text = "\n".join(block.text for block in call_notes(self._specs, call))
        say_document(f"{head}\n{indent(text, _PREFIX)}")
        if call.has_gaps:
            say_aside("the question is declined: `agent tui` can fill in its values")
        return not call.has_gaps

    def _print(self, recorded: Recorded, update: SessionUpdate) -> None:
        if self._as_json:
            from agent_workbench.cli.verbs.run import print_json

            print_json(recorded, update.state.session)
            return
        self._progress.show("")
        event = recorded.event
        match event:
            case ActionProposed():
                self.end_line()
                if event.proposal.kind is Permission.READ or script_call(event.proposal) is not None:
                    say(f"{event.proposal.tool} {sanitize_line(event.proposal.text)}")
                else:
                    say(f"{event.proposal.tool} {sanitize(event.proposal.text)}")
            case ActionFinished():
                self._print_result(event)
            case ActionDecided(verdict=Verdict.REJECT) if not is_person(event.by):
                say_aside(f"not called: {sanitize_line(event.reason)} ({sanitize_line(event.decider)})")
            case ActionRejected():
                self.end_line()
                say_aside(f"not taken: {sanitize(event.reason, limit_chars=2000)}")
            case ChatReplied():
                self._finish(event.text)
            case _:
                pass

    def _print_result(self, event: ActionFinished) -> None:
        lines = event.observation.strip().split("\n")
        most = FOLDED_LINES if event.result is ActionResult.OK else MOST_FAILED_LINES
        shown = lines[:most]
        if len(lines) > most:
            shown.append(f"… {counted_text(len(lines) - most, 'more line')}, recorded in the session")
        if event.result is not ActionResult.OK:
            shown[0] = f"{event.result}: {shown[0]}"
        say(indent("\n".join(shown), _PREFIX))

    def _stream(self, streaming: Streaming) -> None:
        """Print what is new of a reply that streams; a line that grows is printed as far as it is safe."""
        reply = split_streamed(streaming.text).reply
        if reply is not None and (text := reply.strip()):
            self._write(sanitize(text))

    def _finish(self, reply: str) -> None:
        self._write(sanitize(reply))
        self.end_line()

    def _write(self, text: str) -> None:
        if self._reply.startswith(text):  # a reply that repeated itself is kept up to its second copy
            fresh = ""
        elif text.startswith(self._reply):
            fresh = text[len(self._reply) :]
        else:  # what was printed reads otherwise now: it is printed again below
            self.end_line()
            fresh = text
        if fresh:
            self._progress.show("")
            sys.stdout.write(fresh)
            sys.stdout.flush()
            self._reply, self._open_line = text, not text.endswith("\n")


def prepare_line(files: Sequence[str], prompts: Sequence[str]) -> None:
    """Give `input` an editor with a history, and completion of files behind `@`, of commands and of `prompts`."""
    try:
        import readline
    except ImportError:  # some builds of Python have none; then the line is plain
        return

    def complete(word: str, number: int) -> str | None:
        if word.startswith("@"):
            wanted = word[1:].lower()
            found = [mention_of(path) for path in files if wanted in path.lower()][:MOST_COMPLETIONS]
        else:
            found = [each for each in (*COMMANDS, *prompts) if each.startswith(word)] if word.startswith("/") else []
        return f"{found[number]} " if number < len(found) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
