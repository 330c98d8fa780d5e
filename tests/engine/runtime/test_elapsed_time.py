"""Time of what is being done: it goes on without output, and begins anew with each activity."""

from agent_workbench.core.live import Live, SessionUpdate, Streaming
from agent_workbench.engine.runtime.publisher import UpdatePublisher


def test_time_passes_only_while_something_is_done_and_output_ends_the_quiet() -> None:
    published: list[SessionUpdate] = []
    publisher = UpdatePublisher(published.append)

    def now() -> tuple[float, float]:
        live: Live = published[-1].live
        return live.seconds, live.quiet_seconds

    publisher.pass_time(1.0)
    assert published == [], "nothing is done, so nothing is published"
    publisher.show_activity("running 1 check")
    publisher.pass_time(30.0)
    assert now() == (30.0, 30.0)
    publisher.show_output("collected\n", 30.5)
    publisher.pass_time(1.5)
    assert now() == (31.5, 1.5)
    shown = published[-1].live.running
    assert shown is not None
    assert shown.seconds == 31.5, "wherever the command is shown"
    publisher.show_activity("thinking")
    assert now() == (0.0, 0.0)
    publisher.pass_time(2.0)
    publisher.show_streaming(Streaming("Thought"))
    assert now() == (2.0, 0.0)
    publisher.show_activity("")
    assert now() == (0.0, 0.0)
