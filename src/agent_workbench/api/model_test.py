"""The call that tries a model out."""

from typing import TYPE_CHECKING

from agent_workbench.api.models import configured_model, model_named
from agent_workbench.bootstrap.repo_context import Say
from agent_workbench.core.invocation import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.diagnostics.model_trials import Fitness, ModelReport


async def tried(
    invocation: Invocation, named: str, say: Say, seconds: float
) -> "tuple[ModelReport, tuple[Fitness, ...]]":
    """Ask the model that is meant by `named` (empty: the executor's) ten questions; return what came and its verdict.

    Raises `UsageError` for a name that means none, `ModelError` when nobody answers.
    """
    from agent_workbench.adapters.journal.clock import SystemClock
    from agent_workbench.engine.diagnostics.model_fitness import fitness
    from agent_workbench.engine.diagnostics.model_trial import try_model

    model = await (model_named(invocation, named, say) if named else configured_model(invocation, say))
    try:
        report = await try_model(model, SystemClock(), say, seconds)
    finally:
        await model.close()
    return report, fitness(report)
