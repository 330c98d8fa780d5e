"""Input line at the bottom: words for a task or the model, pasted within a bound, completed at `@` and `/`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, TextArea
from textual.worker import Worker

from agent_workbench.core.consult_requests import CONSULTANTS, OFFERED
from agent_workbench.core.custom_prompts import NamedCall, named_call
from agent_workbench.core.intents import MOST_SAID_CHARS, CompleteCode, Intent, ListPrompts, ListSkills
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import (
    Accepted,
    CodeCompleted,
    Outcome,
    PromptExpanded,
    PromptsListed,
    Refused,
    SkillsListed,
    TaskDrafted,
)
from agent_workbench.core.plan import TaskDraft
from agent_workbench.core.text.mentions import mention_of, open_mention
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.tui.palette import LineCommand, command_word, matching_commands
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line

MOST_SHOWN = 8
MOST_ROWS = 6
AT_MOST = f"at most {MOST_SAID_CHARS:,} can be said at once. Put them into a file and mention it with @."
LOOK_AGAIN_SECONDS = 0.5
KEYS = (("Tab", "complete @ and /"), ("Ctrl-J", "new line"), ("Esc", "close"))
TASK, MODEL, CHAT = "New task", "To the model, read with its next step", "Chat"


class LineArea(TextArea):
    """Text area of the input line: Enter sends, and pasted line breaks stay. `choosing`: a list is shown above."""

    choosing = False

    class Sent(Message):
        """The words are sent."""

    class Completed(Message):
        """The selected completion is taken."""

    class Moved(Message):
        """Another completion is selected."""

        def __init__(self, by: int) -> None:
            self.by = by
            super().__init__()

    class TooLong(Message):
        """A pasted text was left out."""

        def __init__(self, chars: int) -> None:
            self.chars = chars
            super().__init__()

    async def _on_key(self, event: events.Key) -> None:
        taken: Message | None = {"enter": self.Sent(), "tab": self.Completed()}.get(event.key)
        if self.choosing and event.key in {"up", "down"}:
            taken = self.Moved(1 if event.key == "down" else -1)
        if taken is None and event.key != "ctrl+j":
            return  # Textual calls the handler of the base class next
        event.stop()
        event.prevent_default()
        if taken is not None:
            self.post_message(taken)
        elif not self.read_only:
            self.insert("\n")

    async def _on_paste(self, event: events.Paste) -> None:
        if len(event.text) + len(self.text) > MOST_SAID_CHARS:
            event.stop()
            event.prevent_default()
            self.post_message(self.TooLong(len(event.text)))


class Choice(Struct, frozen=True):
    """A completion: its text in the list, and what it puts into the line."""

    label: str
    about: str
    written: str


class InputLine(Dialog[TaskDraft | None]):
    """Takes words until they are taken: returns the task that they became, None if they were said or it was closed.

    `send` takes the words and returns the outcome; a refusal is shown and the words stay. `on_close` gets the words
    that were not taken. `commands` are those behind `/`; so are the user's own prompts, and in a chat consultants and
    skills. A prompt that is expanded waits for another Enter. The words that it opens with are sent `at_once`, or wait
    for Enter. `chat`: the session becomes a chat as soon as it is open.
    """

    BINDINGS = [Binding("escape", "cancel", "cancel", priority=True)]

    def __init__(
        self,
        send: Callable[[str], Awaitable[Outcome | None]],
        ask: Callable[[Intent], Awaitable[Outcome]],
        commands: Sequence[LineCommand],
        *,
        words: str = "",
        title: str = "",
        on_close: Callable[[str], None] = lambda _: None,
        at_once: bool = False,
        chat: bool = False,
    ) -> None:
        super().__init__(title or TASK, "", name="line")
        self._send = send
        self._ask = ask
        self._commands = commands
        self._by_name = {each.name: each for each in commands}
        self._words = words
        self._fixed_title = title
        self._on_close = on_close
        self._at_once = at_once
        self._choices: tuple[Choice, ...] = ()
        self._chosen = 0
        self._start = (0, 0)
        self._asked: tuple[int, int, str] | None = None
        self._remark = ""
        self._busy = False
        self._to_model = self._in_chat = self._opens_chat = chat
        self._names = CalledNames(ask)
        self._expanded = PromptExpanded("")

    def body(self) -> Iterable[Widget]:
        area = LineArea(self._words, soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True)
        return Static("", id="line-choices", markup=False), area, Static("", id="line-said", markup=False)

    def on_mount(self) -> None:
        area = self.query_one(LineArea)
        area.focus()
        area.select_all()  # words from before are replaced by typing, or kept by a cursor key
        self._show()
        if self._at_once:
            self.on_line_area_sent()

    def show(self, update: SessionUpdate) -> None:
        """Follow the session: the words go to the model while a task is worked on, else they become a task."""
        self._in_chat = self._opens_chat or update.state.in_chat
        self._to_model = update.state.takes_words or self._in_chat
        if self.is_mounted:
            self._show()

    def _show(self) -> None:
        heading = self._fixed_title or (CHAT if self._in_chat else MODEL if self._to_model else TASK)
        self.query_one(".frame").border_title = Content(sanitize_line(heading, 200))
        self.show_keys(hint_line((("Enter", "send" if self._to_model else "propose"), *KEYS)))
        said = self.query_one("#line-said", Static)
        said.update(sanitize(self._remark, limit_chars=1000))
        said.display = bool(self._remark)
        shown = self.query_one("#line-choices", Static)
        shown.update(_listed(self._choices, self._chosen))
        shown.display = bool(self._choices)
        self.query_one(LineArea).choosing = bool(self._choices)

    def _choose_from(self, choices: Iterable[Choice], start: tuple[int, int] = (0, 0), remark: str = "") -> None:
        self._choices, self._chosen, self._start, self._remark = tuple(choices), 0, start, remark
        self._show()

    def on_text_area_changed(self) -> None:
        area = self.query_one(LineArea)
        area.styles.height = min(MOST_ROWS, max(1, area.wrapped_document.height))
        self._look()

    def on_text_area_selection_changed(self) -> None:
        self._look()

    def _look(self) -> None:
        """Offer what completes the word before the cursor; once the words are sent nothing else is asked."""
        if self._busy:
            return
        area = self.query_one(LineArea)
        row, column = area.cursor_location
        before = area.document.get_line(row)[:column]
        if not row and (word := command_word(before)) is not None and before == area.text:
            found = self._names.fitting(word, self._commands, in_chat=self._in_chat)
            self._choose_from((Choice(f"/{n}", about, f"/{n}") for n, about in found), remark=self._names.remark)
            self._names.list_once(self, self._look, in_chat=self._in_chat)
        elif mention := open_mention(before):
            asked = (row, mention.start, mention.prefix)
            if asked != self._asked:  # a key changes the text and moves the cursor: that is one question
                self._asked = asked
                # Called only when the worker runs: one that the next key cancels before has begun nothing.
                complete = partial(self._complete, mention.prefix, (row, mention.start))
                worker: Worker[None] = self.run_worker(complete, group="complete", exclusive=True)
                del worker
        else:
            self._asked = None
            self.workers.cancel_group(self, "complete")
            self._choose_from((), remark=self._about_expanded())

    def _about_expanded(self) -> str:
        """Return where the words are from, as long as they are those of a prompt."""
        shown = self._expanded.file and self.query_one(LineArea).text == self._expanded.words
        return f"from {self._expanded.file}; Enter sends it" if shown else ""

    async def _complete(self, prefix: str, start: tuple[int, int]) -> None:
        """Offer what fits; while symbols are missing, look again until they are there or the words change."""
        shown: CodeCompleted | None = None
        while isinstance(outcome := await self._ask(CompleteCode(prefix)), CodeCompleted):
            if outcome != shown:
                shown = outcome
                found = (
                    Choice(each.symbol or each.place, each.place if each.symbol else "", mention_of(each.place))
                    for each in outcome.items
                )
                self._choose_from(found, start, outcome.remark)
            if not outcome.remark:
                return
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def on_line_area_moved(self, message: LineArea.Moved) -> None:
        self._chosen = (self._chosen + message.by) % len(self._choices) if self._choices else 0
        self._show()

    def on_line_area_completed(self) -> None:
        if self._choices and not self._busy:
            area = self.query_one(LineArea)
            area.replace(f"{self._choices[self._chosen].written} ", self._start, area.cursor_location)
            self._choose_from(())

    def on_line_area_too_long(self, message: LineArea.TooLong) -> None:
        self._say(f"{message.chars:,} characters were pasted and left out: {AT_MOST}")

    def _say(self, remark: str) -> None:
        self._choices, self._remark = (), remark
        self._show()

    def on_line_area_sent(self) -> None:
        words = self.query_one(LineArea).text.strip()
        if self._busy:
            return
        if len(words) > MOST_SAID_CHARS:
            self._say(f"too long: {len(words):,} of at most {MOST_SAID_CHARS:,} characters")
        elif (call := named_call(words)) is not None and call.name in self._by_name:
            self._run(call)
        elif self._choices and command_word(words) is not None and all(each.label != words for each in self._choices):
            self._take_choice()
        else:
            self._busy = True
            self.workers.cancel_group(self, "complete")
            self.query_one(LineArea).read_only = True
            self._say("proposing a task …" if words and not self._to_model else "")
            self.run_worker(self._take(words), group="line")

    def _take_choice(self) -> None:
        """Run the command that is selected, or complete the name that is."""
        command = self._by_name.get(self._choices[self._chosen].written[1:])
        if command is None or self._in_chat:
            self.on_line_area_completed()
        else:
            self._run(NamedCall(command.name))

    def _run(self, call: NamedCall) -> None:
        if call.words:
            self._say(f"/{call.name} is a command and takes no words")
            return
        self.dismiss(None)
        self.app.call_later(self._by_name[call.name].run)

    async def _take(self, words: str) -> None:
        outcome = await self._send(words)
        self._busy = False
        self.query_one(LineArea).read_only = False
        match outcome:
            case Refused():
                self._say(outcome.reason)
            case TaskDrafted():
                self.dismiss(outcome.draft)
            case PromptExpanded():
                self._expanded = outcome
                self.query_one(LineArea).load_text(outcome.words)
            case _:
                if isinstance(outcome, Accepted) and outcome.note:
                    self.app.notify(sanitize(outcome.note, limit_chars=2000), markup=False)
                self.dismiss(None)

    def action_cancel(self) -> None:
        self._on_close(self.query_one(LineArea).text)
        self.dismiss(None)


def _listed(choices: Sequence[Choice], chosen: int) -> Content:
    """Return the choices around the selected one."""
    first = max(0, min(chosen - MOST_SHOWN // 2, len(choices) - MOST_SHOWN))
    lines = []
    for number, choice in enumerate(choices[first : first + MOST_SHOWN], first):
        mark, style = ("▸ ", "$text-primary bold") if number == chosen else ("  ", "")
        about = Content.styled(f"  {sanitize_line(choice.about, 120)}" if choice.about else "", "$text-muted")
        lines.append(Content.styled(f"{mark}{sanitize_line(choice.label, 120)}", style) + about)
    return Content("\n").join(lines)


class CalledNames:
    """Names with a description of each. `ask` submits a question to the session.

    `remark` says why some prompts cannot be called.
    """

    def __init__(self, ask: Callable[[Intent], Awaitable[Outcome]]) -> None:
        self._ask = ask
        self._prompts: dict[str, str] = {}
        self._skills: dict[str, str] = {}
        self._listed = False
        self.remark = ""

    def list_once(self, line: Widget, show: Callable[[], None], *, in_chat: bool) -> None:
        """Ask for the names, unless that was done, and `show` them as long as the `line` is there."""
        if not self._listed:
            self._listed = True
            line.run_worker(self._list(show, in_chat), group="names")

    async def _list(self, show: Callable[[], None], in_chat: bool) -> None:
        prompts = await self._ask(ListPrompts())
        if isinstance(prompts, PromptsListed):
            self._prompts = {each.name: each.description for each in prompts.prompts}
            self.remark = prompts.remark
        skills = await self._ask(ListSkills()) if in_chat else None
        if isinstance(skills, SkillsListed):
            self._skills = {each.name: each.description for each in skills.skills}
        if isinstance(prompts, Refused) or isinstance(skills, Refused):  # a session that is not open yet
            self._listed = False
        else:
            show()

    def fitting(self, typed: str, commands: Sequence[LineCommand], *, in_chat: bool) -> Iterator[tuple[str, str]]:
        """Yield the names that begin with what is typed, then the commands that fit, each with its description.

        A command comes before a consultant, that before a prompt, and a prompt before a skill of its name.
        """
        consultants = {name: CONSULTANTS[name].summary for name in OFFERED} if in_chat else {}
        called = {**consultants, **(self._skills if in_chat else {}), **self._prompts}
        taken = {each.name for each in commands}
        yield from (each for each in called.items() if each[0].startswith(typed) and each[0] not in taken)
        yield from ((each.name, each.help) for each in matching_commands(commands, typed))
