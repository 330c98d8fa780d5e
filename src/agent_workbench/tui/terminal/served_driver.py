"""Textual driver for a web server that shows the workbench in a browser."""

from textual import messages
from textual.drivers.web_driver import WebDriver


class ServedDriver(WebDriver):
    """Ends the app when the server is gone, in whatever way."""

    def run_input_thread(self) -> None:
        """Read input from the server until it closes the connection."""
        super().run_input_thread()
        self._app.post_message(messages.ExitApp())
