"""What goes before the model: words of the user, pins, the receipt, summaries, and what it thinks."""

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.fold import fold_all
from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.core.views.steps import Transcript, view_steps
from agent_workbench.tui.widgets.rows import entry_rows


@given(st.text("ab \n", min_size=1, max_size=400))
def test_thinking_takes_two_rows_at_most_while_it_streams(thought: str) -> None:
    update = SessionUpdate(fold_all(()), Live(streaming=Streaming(thought=thought)))
    (entry,) = view_steps(update, Transcript()).unsettled
    assert len([row for row in entry_rows(entry, 0, 30, 12, expanded=False) if row.cells]) <= 2
