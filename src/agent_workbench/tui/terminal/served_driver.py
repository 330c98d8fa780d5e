"""Textual's driver for a web server, with a writer that does not block the app when the server takes nothing."""

import signal

from textual.drivers.web_driver import WebDriver

from agent_workbench.tui.terminal.terminal_driver import BoundedWriter


class ServedDriver(WebDriver):
    """Driver of a page in a browser. `stuck`: the web server takes nothing, or is gone."""

    _writer: BoundedWriter | None = None

    @property
    def stuck(self) -> bool:
        return self._writer is not None and self._writer.stuck

    def start_application_mode(self) -> None:
        """Take the pipes of the web server; the handlers of signals stay those of the app."""
        self._writer = BoundedWriter(self.fileno, lambda: self._app.call_later(self._app.refresh))
        self._writer.start()
        self._write = self._writer.write  # type: ignore[assignment] # a packet is written or dropped whole
        kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        super().start_application_mode()
        for number, handler in kept.items():
            signal.signal(number, handler)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        super().close()
