"""Facade over all dialogs of a session, with the tour and the preflight question."""

from typing import Protocol, cast

from agent_workbench.core.intents import AnswerQuestion
from agent_workbench.core.live import PreflightQuestion, SessionUpdate
from agent_workbench.tui.session.context_dialogs import ConsultDialogs, ContextDialogs, KnowledgeDialogs
from agent_workbench.tui.session.gate_dialogs import GateDialogs, InboxDialogs, RuleDialogs
from agent_workbench.tui.session.plan_dialogs import PlanDialogs
from agent_workbench.tui.session.record_dialogs import HunkDialogs, RecordDialogs, ReviewDialogs
from agent_workbench.tui.session.task_dialogs import TaskDialogs
from agent_workbench.tui.session.window import SessionWindow, is_chat

LIVE_SCREENS = frozenset({"line", "allow", "reason", "rules", "models", "knowledge", "receipt", "piece", "find"})
"""Names of screens that follow the session while they are open."""
QUESTION = "question"
"""Name of the screen that asks the preflight question."""


class LiveScreen(Protocol):
    """A screen that follows the session."""

    def show(self, update: SessionUpdate) -> None:
        """Show an update."""


class SessionDialogs:
    """Facade over the dialogs of a session, one attribute for each subject; screens and tabs open them here.

    `tour_due`: the tour is shown once, as soon as the session is open.
    """

    def __init__(self, window: SessionWindow) -> None:
        self.gate = GateDialogs(window)
        self.hunks = HunkDialogs(window)
        self.plan = PlanDialogs(window)
        self.task = TaskDialogs(window)
        self.rules = RuleDialogs(window)
        self.knowledge = KnowledgeDialogs(window)
        self.context = ContextDialogs(window)
        self.review = ReviewDialogs(window)
        self.consult = ConsultDialogs(window)
        self.records = RecordDialogs(window)
        self.inbox = InboxDialogs(window)
        self.tour_due = False
        self._window = window
        self._question: PreflightQuestion | None = None

    def follow(self, update: SessionUpdate) -> None:
        """Show an update in the screens that follow the session, and the question that it asks."""
        self._say_scripted()
        self.context.preview(update)
        for screen in self._window.screens:
            if screen.name in LIVE_SCREENS:
                cast("LiveScreen", screen).show(update)

    def take_tour(self) -> None:
        """Explain the workbench, page by page."""
        from agent_workbench.tui.screens.help import TourScreen

        self.tour_due = False
        self._window.push_screen(TourScreen(self._window.keymap))
        self._say_scripted()

    def _say_scripted(self) -> None:
        """Say in an open tour that the model's answers are scripted."""
        from agent_workbench.tui.screens.help import TourScreen

        screen, update = self._window.screen, self._window.update_shown
        model = update.state.model if update is not None and not update.live.awaits_model else None
        if isinstance(screen, TourScreen) and model is not None and model.scripted:
            screen.say_scripted()

    def settle_question(self) -> None:
        """Ask the preflight question of the session, once; close it when it is answered elsewhere.

        Nothing is opened above another screen: what is typed there is no answer. An open session shows the tour and
        takes the words that were entered before it was open.
        """
        update, screen = self._window.update_shown, self._window.screen
        if update is None or screen.name not in {self._window.workbench.name, QUESTION}:
            return
        wanted = update.live.question
        if wanted != self._question:
            if screen.name == QUESTION:
                self._window.pop_screen()
            self._question = wanted
            if wanted is not None:
                self._ask(wanted)
        if wanted is None and update.state.session and self.tour_due:
            self.take_tour()
        elif wanted is None and update.state.session:
            self._enter_early_words(update)

    def _enter_early_words(self, update: SessionUpdate) -> None:
        """Enter the words from before the session was open. Those that turn out to be for the model wait for Enter."""
        words, self.task.early_words = self.task.early_words, ""
        if words:
            self.task.open_line(words=words, at_once=is_chat(self._window) or not update.state.unfinished)

    def _ask(self, question: PreflightQuestion) -> None:
        from agent_workbench.core.text.sanitizer import sanitize_line
        from agent_workbench.tui.screens.dialog import QuestionDialog

        async def answer(yes: bool | None) -> None:
            if yes is not None:
                await self._window.want(AnswerQuestion(question.key, yes))

        yes, no = sanitize_line(question.yes, 60), sanitize_line(question.no, 60)
        dialog = QuestionDialog(
            question.title, question.lines, self._window.clock, yes=yes, no=no, name=QUESTION, by_letter=True
        )
        self._window.push_screen(dialog, answer)
