"""Style sheets of the app."""

from pathlib import Path

FOLDER = Path(__file__).parent
STYLES = tuple(
    FOLDER / name
    for name in (
        "app.tcss",
        "panes/workbench_screen.tcss",
        "widgets/rows.tcss",
        "bars/bar.tcss",
        "bars/status_line.tcss",
        "bars/tab_strip.tcss",
        "bars/session_strip.tcss",
        "dialogs/dialog.tcss",
    )
)
