"""Output of a chat in the shell: the reply as it streams, calls with their results, and the line that is typed."""

import sys
from collections.abc import Sequence
from textwrap import indent

from agent_workbench.cli.output import say, say_aside, say_document
from agent_workbench.cli.questions import ProgressLine
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
from agent_workbench.core.settings import Permission
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.chat_form import split_streamed
from agent_workbench.core.text.mentions import mention_of
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line, sanitize_whole
from agent_workbench.core.tools.skill_tools import script_call
from agent_workbench.core.tools.spec import ToolSpec
from agent_workbench.views.gate.notes import call_notes
from agent_workbench.views.gate.playbook_proposal import script_notes

FOLDED_LINES, MOST_FAILED_LINES = 4, 20
"""Lines of a result that are printed: the reply below says what matters of it, unless the call failed."""
MOST_COMPLETIONS = 50
COMMANDS = ("/help", "/quit", "/task")
_PREFIX = "  "


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
            history = state.main.history if state.main is not None else ()
            for recorded in (*state.opening, *history):
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
