"""Results of the user's code search, each with its reasons and whether it is in the prompt."""

from msgspec.structs import replace

from agent_workbench.core.live import FoundCode
from agent_workbench.core.state.session_state import SessionState
from agent_workbench.views.code.code_pane import CodeRow, CodeState, view_piece
from agent_workbench.views.code.shown_code import shown_code_snapshots


def view_search_results(state: SessionState, found: FoundCode) -> tuple[CodeRow, ...]:
    """Return a row for each result, best first."""
    run = state.run
    pinned = {chunk.place for chunk in run.pinned} if run is not None else set()
    there = shown_code_snapshots().at(run.history).there if run is not None else frozenset()
    rows = []
    for number, chunk in enumerate(found.chunks, 1):
        standing, said = CodeState.OFFERED, ""
        if chunk.place in pinned:
            standing, said = CodeState.PINNED, "pinned"
        elif chunk.place in there:
            standing, said = CodeState.IN_PROMPT, "in the prompt already"
        rows.append(replace(view_piece(chunk, str(number)), standing=standing, said=said))
    return tuple(rows)
