"""Style sheets of the app: of the panes, which the first frame shows, and of the dialogs above them."""

from pathlib import Path

FOLDER = Path(__file__).parent
STYLES = tuple(
    FOLDER / name
    for name in (
        "app.tcss",
        "panes/workbench_screen.tcss",
        "widgets/rows.tcss",
        "widgets/bar.tcss",
        "widgets/status_line.tcss",
        "widgets/tab_strip.tcss",
        "widgets/session_strip.tcss",
    )
)
DIALOG_STYLES = (FOLDER / "screens/dialog.tcss",)
