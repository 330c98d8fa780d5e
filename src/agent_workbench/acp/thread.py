"""Thread of an editor: one session, opened by the first prompt, with approval modes or a chat as modes."""

import asyncio
import os
from contextlib import aclosing

from agent_workbench.acp.editor import Editor, Update
from agent_workbench.acp.event_updates import EventUpdates, plan_update
from agent_workbench.api.sessions.session_host import LocalSessionHost
from agent_workbench.core.approval_rules import mode_label
from agent_workbench.core.background import in_background
from agent_workbench.core.custom_prompts import CustomPrompt
from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.events import Recorded
from agent_workbench.core.fold import fold_all
from agent_workbench.core.ids import ProposalId, SessionId, TaskId
from agent_workbench.core.intents import ChangeMode, Leave, ListPrompts
from agent_workbench.core.live import SessionUpdate
from agent_workbench.core.outcomes import PromptsListed, Refused
from agent_workbench.core.plan import Plan
from agent_workbench.core.ports.session_host import SessionHandle
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.settings import ApprovalMode
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.core.text.markdown import literal
from agent_workbench.core.text.sanitizer import sanitize_line

from acp import schema as wire  # isort: skip


ABORT = wire.AvailableCommand(name="abort", description="Abort the task: its workspace goes back to its beginning")
MAX_COMMANDS = 100

CHAT = "chat"
OPTION = "mode"
DESCRIPTIONS = {
    ApprovalMode.ASK: "A prompt becomes a task; you are asked before anything happens",
    ApprovalMode.ACCEPT_EDITS: "Diffs are applied without a question; checks, commands and commits ask",
    ApprovalMode.ACCEPT_UNTIL_DONE: "Diffs, checks, summaries and the commit need no question until the task is over",
}
CHAT_DESCRIPTION = "A prompt is a question about the repository; nothing is changed"


class EditorThread:
    """A thread of the client and its session, which has the same name.

    A new one is opened with its first prompt: a thread that is never used leaves no session. `roots` are the
    spellings of the repository's path, its own first. `rejecting` is the proposal whose rejection the next prompt gives
    the reason of.
    """

    def __init__(self, editor: Editor, host: LocalSessionHost, roots: tuple[str, ...], session: SessionId) -> None:
        self.editor, self.host, self.roots, self.session = editor, host, roots, session
        self.root = roots[0]
        self._handle: SessionHandle | None = None
        self.rejecting: ProposalId | None = None
        self.news = asyncio.Event()
        self._updates = EventUpdates(self.root, whole=False)
        self._mode = str(ApprovalMode.ASK)
        self._chosen = False
        self._resumes = False
        self._begun = False
        self._shown_seq = -1
        self._shown_plan: tuple[Plan, tuple[TaskId, ...], bool] = (Plan(), (), False)
        self._notices = 0
        self._commands: tuple[wire.AvailableCommand, ...] = ()
        self._watching: asyncio.Task[None] | None = None

    async def take_up(self, events: tuple[Recorded, ...], *, shown: bool) -> None:
        """Continue a session with these events, and send all of them if they are to be `shown`."""
        state = await asyncio.to_thread(fold_all, events)
        self._resumes = self._begun = True
        self._mode = CHAT if state.in_chat else self._mode
        self._updates = EventUpdates(self.root, whole=True)
        for recorded in events:
            updates = tuple(self._updates.of(recorded))
            if shown:
                await self.editor.show(self.session, *updates)
        self._updates.live_from_now()
        self._shown_seq = events[-1].seq if events else -1
        if shown:
            await self.editor.show(self.session, *self._plan_news(state, ()))

    @property
    def modes(self) -> wire.SessionModeState:
        """The modes that can be chosen now."""
        return mode_state(self._offered, self._mode)

    @property
    def options(self) -> list[wire.SessionConfigOptionSelect]:
        """The modes as the options of the thread."""
        return [mode_option(self._offered, self._mode)]

    @property
    def _offered(self) -> tuple[str, ...]:
        return offered(chat=self._mode == CHAT, begun=self._begun)

    async def choose_mode(self, mode: str) -> str:
        """Enter a mode; return why not, empty if it is entered."""
        if mode not in self._offered:
            known = ", ".join(self._offered)
            return f"this thread has no mode {mode[:40]!r}: {known}. A chat begins in a thread of its own"
        if self._handle is not None and mode != self._mode:
            outcome = await self._handle.submit(ChangeMode(ApprovalMode(mode)))
            if isinstance(outcome, Refused):
                return outcome.reason
        self._mode, self._chosen = mode, True
        return ""

    @property
    def handle(self) -> SessionHandle:
        """The session, which `open` opened."""
        if self._handle is None:
            raise AssertionError("the session is not open")
        return self._handle

    async def open(self) -> None:
        """Open the session if it is not open; what prevents that is raised by its `wait`."""
        if self._watching is not None and self._watching.done():
            self._handle = None  # it has ended
        if self._handle is None:
            how = OpenMode.RESUME if self._resumes else OpenMode.NEW
            request = SessionRequest(how, self.session, chat=self._mode == CHAT, person=self.editor.person)
            self._handle = await self.host.open(request)
            self._watching = in_background(self._watch(self._handle), expected=(WorkbenchError,))

    def began(self) -> None:
        """Remember that the session is open, so that it is resumed after an end."""
        self._resumes = self._begun = True

    async def enter_chosen_mode(self, update: SessionUpdate) -> None:
        """Enter the mode that was chosen before the session was open."""
        if self._chosen and self._mode not in {CHAT, str(update.state.mode.mode)}:
            await self.handle.submit(ChangeMode(ApprovalMode(self._mode)))
        self._chosen = False

    async def tell_commands(self) -> None:
        """Tell the client what can be called with `/`: the prompts of the user's own once the session is open."""
        own = await self._handle.submit(ListPrompts()) if self._handle is not None else None
        found = (ABORT, *(_command(each) for each in (own.prompts if isinstance(own, PromptsListed) else ())))
        if found != self._commands:
            self._commands = found
            update = wire.AvailableCommandsUpdate(
                session_update="available_commands_update", available_commands=[*found[:MAX_COMMANDS]]
            )
            await self.editor.show(self.session, update)

    async def current(self) -> SessionUpdate:
        """Return the newest update of the session; raise what ended the showing of it, because no news come then."""
        if self._watching is not None and self._watching.done():
            self._watching.result()
        async with aclosing(self.handle.live()) as updates:
            return await anext(updates)

    async def shown(self, seq: int) -> None:
        """Wait until the event is shown, or nothing more is."""
        while self._shown_seq < seq and self._watching is not None and not self._watching.done():
            await self.news.wait()

    async def leave(self) -> None:
        """Leave the session, if it is open, and wait until it is recorded; it can be resumed."""
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.submit(Leave("the editor closed the thread"))
            await asyncio.wait({asyncio.ensure_future(handle.wait())})
        if self._watching is not None:
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self, handle: SessionHandle) -> None:
        """Show what happens in the session, also between two prompts, until it ends."""
        try:
            async with aclosing(handle.live()) as updates, aclosing(handle.events(self._shown_seq)) as events:
                async for update in updates:
                    while self._shown_seq < update.state.seq:
                        recorded = await anext(events)
                        await self.editor.show(self.session, *self._updates.of(recorded))
                        self._shown_seq = recorded.seq
                    await self._show(update)
                    self._wake()
        except ConnectionError:
            pass  # the client is gone, and the process ends
        finally:
            self._wake()

    def _plan_news(self, state: SessionState, taken: tuple[TaskId, ...]) -> list[Update]:
        """Return the plan if the client would see a change; other sessions work on the tasks of `taken`."""
        shown = (state.plan, taken, state.unfinished)
        if state.in_chat or shown == self._shown_plan:
            return []
        self._shown_plan = shown
        return [plan_update(state, taken)]

    async def _show(self, update: SessionUpdate) -> None:
        found: list[Update] = self._updates.answer.streamed(update.live.streaming)
        found += self._plan_news(update.state, update.live.taken)
        mode = str(update.state.mode.mode)
        if self._mode != CHAT and update.state.session and not self._chosen and mode != self._mode:
            self._mode = mode
            found.append(wire.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
            found.append(wire.ConfigOptionUpdate(session_update="config_option_update", config_options=[*self.options]))
        await self.editor.show(self.session, *found)
        for notice in update.live.notices:
            if notice.number > self._notices:
                self._notices = notice.number
                await self.editor.say(self.session, literal(notice.text, 2_000))

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


def _command(prompt: CustomPrompt) -> wire.AvailableCommand:
    hint = wire.AvailableCommandInput(wire.UnstructuredCommandInput(hint="words for the prompt"))
    return wire.AvailableCommand(
        name=prompt.name, description=sanitize_line(prompt.description or prompt.file, 200), input=hint
    )


def spellings(root: str, folder: str) -> tuple[str, ...]:
    """Return the path of the repository, and the one that the client uses if it leads there through a link. Blocks."""
    below = os.path.relpath(os.path.realpath(folder), os.path.realpath(root))
    here = os.path.normpath(folder)
    other = here if below == os.curdir else here.removesuffix(f"{os.sep}{below}")
    return tuple(dict.fromkeys((root, other))) if below == os.curdir or other != here else (root,)


def offered(*, chat: bool, begun: bool) -> tuple[str, ...]:
    """Return the modes that can be chosen: a thread that has `begun` stays a chat, or stays none."""
    if begun and chat:
        return (CHAT,)
    modes = tuple(str(mode) for mode in ApprovalMode)
    return modes if begun else (*modes, CHAT)


def mode_state(modes: tuple[str, ...], current: str) -> wire.SessionModeState:
    """Return the modes as the client lists them."""
    available = [wire.SessionMode(id=mode, name=_name(mode), description=_description(mode)) for mode in modes]
    return wire.SessionModeState(current_mode_id=current, available_modes=available)


def mode_option(modes: tuple[str, ...], current: str) -> wire.SessionConfigOptionSelect:
    """Return the modes as an option of the thread."""
    options = [
        wire.SessionConfigSelectOption(value=mode, name=_name(mode), description=_description(mode)) for mode in modes
    ]
    return wire.SessionConfigOptionSelect(
        type="select", id=OPTION, name="Mode", category="mode", current_value=current, options=options
    )


def _name(mode: str) -> str:
    return "Chat" if mode == CHAT else mode_label(ApprovalMode(mode)).capitalize()


def _description(mode: str) -> str:
    return CHAT_DESCRIPTION if mode == CHAT else DESCRIPTIONS[ApprovalMode(mode)]
