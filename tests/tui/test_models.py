"""The screen of the models: what the servers have, loading, unloading, and the switch of the task."""

from agent_workbench.core.events import ModelSwitched
from agent_workbench.core.intents import ListModels, LoadModel, SwitchModel, UnloadModel
from agent_workbench.core.local_models import FoundServer, ListedModel, ModelStatus
from agent_workbench.core.outcomes import Accepted, ModelsListed, Refused
from agent_workbench.subjects.models.screen import ModelList, ModelsScreen
from agent_workbench.views.sessions import REPLAYED
from tests.fakes import runs
from tests.fakes.scripted_session import ScriptedSession
from tests.tui.driver import SMALL, Driver, driving
from tests.tui.scenes import SERVERS, receipts

MODEL = "qwen2.5-coder:7b"


async def listed(bench: Driver, *servers: FoundServer) -> ModelList:
    await bench.press("O")
    assert bench.session.intents[-1] == ListModels()
    assert "asking the servers" in bench.text()
    await bench.answer(ModelsListed(servers))
    assert isinstance(bench.screen, ModelsScreen)
    return bench.screen.query_one(ModelList)


async def test_the_models_are_listed_with_the_one_that_is_asked_and_what_a_switch_costs() -> None:
    async with driving(ScriptedSession(*receipts()), SMALL) as bench:
        models = await listed(bench, *SERVERS)
        assert models.cursor == 0
        for words in (
            *("asked now: demo-2m.gguf, as the settings say", "the prompt is read again, up to 2,690 tokens"),
            *("llama-server at http://127.0.0.1:8080", "● demo-2m.gguf", "asked now · loaded · context 16,384"),
            *("○ qwen2.5-coder:7b", "not loaded", "and 3 more", "nothing answers at http://127.0.0.1:11434"),
        ):
            assert words in bench.text(), words


async def test_a_model_is_loaded_and_the_task_switched_to_it_and_back() -> None:
    async with driving(ScriptedSession(*receipts()), SMALL) as bench:
        await listed(bench, *SERVERS)
        await bench.press("j", "plus")
        assert bench.session.intents[1:] == [LoadModel("model", MODEL)]
        assert f"loading {MODEL}" in bench.text()
        await bench.answer(Accepted(f"{MODEL} is loaded"))
        assert bench.session.intents[2:] == [ListModels()]
        loaded = ListedModel(MODEL, 8192, ModelStatus.LOADED)
        await bench.answer(ModelsListed((FoundServer("Ollama", "http://x", (loaded,), endpoint="model"),)))
        assert f"● {MODEL}  loaded · context 8,192" in bench.text()
        assert "it loads and unloads no models on request" in bench.text()
        await bench.press("k", "enter")
        assert bench.session.intents[-2:] == [SwitchModel("model", MODEL), ListModels()]
        await bench.record(ModelSwitched("model", MODEL))
        assert f"asked now: {MODEL}, chosen for this task" in bench.text()
        await bench.press("b")
        assert bench.session.intents[-2:] == [SwitchModel(), ListModels()]


async def test_what_is_refused_says_why() -> None:
    async with driving(ScriptedSession(*receipts()), SMALL) as bench:
        await listed(bench, *SERVERS)
        bench.session.outcome = Refused("the model is answering \x1b]0;x\x07[bold]")
        await bench.press("j", "enter")
        assert "the model is answering ␛]0;x␇[bold]" in bench.text()
        await bench.press("x")
        assert bench.session.intents[-1] == UnloadModel("model", MODEL)
        await bench.answer(Refused("the server hangs"))
        assert "the server hangs" in bench.text()
        await bench.press("G", "enter")
        assert "select a model" in bench.text()
        await bench.press("O")
        assert not isinstance(bench.screen, ModelsScreen)


async def test_a_long_name_takes_no_status_from_the_screen() -> None:
    async with driving(ScriptedSession(*receipts()), SMALL) as bench:
        name = "hf.co/somebody/" + "a-long-name-of-a-model-" * 3 + "GGUF:Q4_K_M"
        loaded = (ListedModel("tiny:1b", 8192, ModelStatus.LOADED), ListedModel(name, 16384, ModelStatus.LOADED))
        await listed(bench, FoundServer("Ollama", "http://x", loaded, manages=True, endpoint="model"))
        assert bench.text().count("loaded · context") == 2
        assert "Q4_K_M  loaded · context 16,384" in bench.text()


async def test_names_and_reasons_of_a_server_are_literal_text() -> None:
    hostile = FoundServer("\x1b]0;x\x07", "http://[red]x", problem="[@click=app.bell]no\nmodels[/]")
    async with driving(ScriptedSession(*receipts()), SMALL) as bench:
        await listed(bench, hostile)
        assert "␛]0;x␇ at http://[red]x" in bench.text()
        assert "[@click=app.bell]no⏎models[/]" in bench.text() or "[@click=app.bell]no models[/]" in bench.text()


async def test_without_servers_and_tasks_it_says_what_to_do() -> None:
    async with driving(ScriptedSession(*runs.opening()), SMALL) as bench:
        await listed(bench)
        assert "The settings name no server" in bench.text()
        assert "only a task that is worked on can be switched" in bench.text()
        for useless in ("switch: Enter", "load: +", "unload: x"):
            assert useless not in bench.text()


async def test_a_recording_has_no_models() -> None:
    async with driving(ScriptedSession(*runs.up_to_done()).as_replay(), SMALL) as bench:
        await bench.press("O")
        assert not isinstance(bench.screen, ModelsScreen)
        assert REPLAYED in bench.text()
        assert bench.session.intents == []
