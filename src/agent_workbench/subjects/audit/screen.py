"""Audit of the repository's sessions: how tasks ended, who decided what, what it cost; a row opens its session."""

from collections.abc import Iterable
from enum import StrEnum

from textual.widget import Widget
from textual.widgets import Input, Static

from agent_workbench.core.errors import WorkbenchError
from agent_workbench.core.history.audit_records import AnyPage, AnyQuery, AuditQuery, CostPage, CostQuery, DecisionQuery
from agent_workbench.core.history.summaries import PastSessions
from agent_workbench.core.ids import SessionId
from agent_workbench.core.plan import TaskStatus
from agent_workbench.core.session_request import OpenMode, SessionRequest
from agent_workbench.core.task_estimates import Intent
from agent_workbench.core.text.sanitizer import sanitize_line
from agent_workbench.subjects.audit.view import audit_entries, audit_line
from agent_workbench.tui.keys import Keymap, Scope, bindings
from agent_workbench.tui.screens.dialog import Dialog
from agent_workbench.tui.widgets.bar import hint_line
from agent_workbench.tui.widgets.entry_list import EntryList

SERVICE = "a service; empty for all"
MOST_SERVICE_CHARS = 100
LOADING = "reading the journals"
DAYS = (30, 90, 1, 7)
STATUSES = (None, TaskStatus.FAILED, TaskStatus.DONE)
INTENTS = ("", *(str(each) for each in Intent))
HINTS = {
    "open_record": "replay",
    "next_view": "view",
    "filter_status": "status",
    "filter_service": "service",
    "filter_intent": "intent",
    "filter_days": "days",
    "close_audit": "close",
}


class AuditView(StrEnum):
    """What the screen lists."""

    TASKS = "tasks"
    DECISIONS = "decisions"
    COSTS = "costs"


class AuditList(EntryList):
    """List of records."""

    BINDINGS = bindings(Scope.SCROLL)
    scope = Scope.AUDIT

    def action_expand(self) -> None:
        """Do nothing: records cannot be expanded."""


class AuditScreen(Dialog[SessionRequest]):
    """Returns the session to replay at the selected record, None if it was closed. `here` is the session in front."""

    BINDINGS = bindings(Scope.AUDIT)

    def __init__(self, keymap: Keymap, sessions: PastSessions, here: SessionId) -> None:
        super().__init__("Audit", "", name="audit")
        self._keymap = keymap
        self._sessions = sessions
        self._here = here
        self._view = AuditView.TASKS
        self._status: TaskStatus | None = None
        self._service, self._intent, self._days = "", "", DAYS[0]
        self._page: AnyPage | None = None
        self._said = ""

    def body(self) -> Iterable[Widget]:
        return (
            Input(placeholder=SERVICE, max_length=MOST_SERVICE_CHARS, compact=True),
            Static("", id="audit-said", markup=False),
            AuditList(id="audit-list"),
        )

    def on_mount(self) -> None:
        self.query_one(Input).display = False
        self.query_one(AuditList).focus()
        self._ask()

    def _ask(self) -> None:
        """Ask for what is to be shown now; an answer that is no longer wanted is dropped."""
        self._say(LOADING)
        self.run_worker(self._answer(), group="audit", exclusive=True)

    async def _answer(self) -> None:
        try:
            self._page = await self._sessions.audit(self._query())
        except WorkbenchError as error:
            self._say(": ".join(filter(None, (str(error), error.advice))))
            return
        self._said = ""
        self._show()
        if self._page.total:
            self.query_one(AuditList).select(0)

    def _query(self) -> AnyQuery:
        service, intent, days = self._service, self._intent, self._days
        match self._view:
            case AuditView.TASKS:
                return AuditQuery(self._status, service, intent, days)
            case AuditView.DECISIONS:
                return DecisionQuery(service, intent, days=days)
            case AuditView.COSTS:
                return CostQuery(service, intent, days=days)

    def _say(self, said: str) -> None:
        self._said = sanitize_line(said, 600)
        self._show()

    def _show(self) -> None:
        page = self._page
        entries = audit_entries(page) if page is not None else ()
        self.query_one(AuditList).show_entries(entries, empty="" if self._said else f"no {self._view} fit the filters")
        status = str(self._status or "") if self._view is AuditView.TASKS else ""
        service = f"service {self._service}" if self._service else ""
        filters = (status, service, self._intent, f"last {self._days} d")
        said = self._said or (audit_line(page, filters) if page is not None else "")
        self.query_one("#audit-said", Static).update(said)
        shown = {key: hint for key, hint in HINTS.items() if key != "filter_status" or self._view is AuditView.TASKS}
        self.show_keys(hint_line((self._keymap.first(Scope.AUDIT, key), hint) for key, hint in shown.items()))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self._service = message.value.strip()
        message.input.display = False
        self.query_one(AuditList).focus()
        self._ask()

    def action_filter_service(self) -> None:
        field = self.query_one(Input)
        field.display = True
        field.focus()

    def action_filter_status(self) -> None:
        if self._view is AuditView.TASKS:
            self._status = STATUSES[(STATUSES.index(self._status) + 1) % len(STATUSES)]
            self._ask()

    def action_filter_intent(self) -> None:
        self._intent = INTENTS[(INTENTS.index(self._intent) + 1) % len(INTENTS)]
        self._ask()

    def action_filter_days(self) -> None:
        self._days = DAYS[(DAYS.index(self._days) + 1) % len(DAYS)]
        self._ask()

    def action_next_view(self) -> None:
        views = tuple(AuditView)
        self._view = views[(views.index(self._view) + 1) % len(views)]
        self._page = None
        self._ask()

    def action_open_record(self) -> None:
        """Replay the session of the selected record, at its event."""
        selected = self.query_one(AuditList).selected
        if selected is None or isinstance(self._page, CostPage):
            return
        session, _, seq = selected.key.partition(":")
        if session == self._here:
            self._say("this session is in front")
        else:
            self.dismiss(SessionRequest(OpenMode.REPLAY, session, int(seq)))

    def action_close_audit(self) -> None:
        if self.query_one(Input).has_focus:
            self.query_one(Input).display = False
            self.query_one(AuditList).focus()
        else:
            self.dismiss(None)
