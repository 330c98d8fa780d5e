"""Style sheets of the app, in two groups: those of the first frame, and the others."""

from pathlib import Path

FOLDER = Path(__file__).parent
FIRST_STYLES = tuple(FOLDER / name for name in ("app.tcss", "screens/splash.tcss"))
MORE_STYLES = tuple(
    FOLDER / name
    for name in (
        "panes/workbench_screen.tcss",
        "widgets/rows.tcss",
        "bars/bar.tcss",
        "bars/status_line.tcss",
        "bars/tab_strip.tcss",
        "bars/session_strip.tcss",
        "dialogs/dialog.tcss",
    )
)
