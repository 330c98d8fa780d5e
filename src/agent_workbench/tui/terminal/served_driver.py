"""The screen of a workbench that a web server of ours draws in a browser."""

from textual import messages
from textual.drivers.web_driver import WebDriver


class ServedDriver(WebDriver):
    """Textual's driver for a web server; the app ends when the server is gone, however that ended."""

    def run_input_thread(self) -> None:
        """Read what the server sends until it sends no more."""
        super().run_input_thread()
        self._app.post_message(messages.ExitApp())
