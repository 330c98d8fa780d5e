from agent_workbench.adapters.llama_cpp.model_client import LlamaCppModel
from tests.fakes.faulty_server import FaultyServer, as_json


async def test_each_text_is_asked_for_once() -> None:
    async with FaultyServer().on("/tokenize", as_json({"tokens": [7, 8, 9]})) as server:
        model = LlamaCppModel(server.url)
        assert await model.count_tokens(["a", "b", "a", ""]) == (3, 3, 3, 0)
        assert await model.count_tokens(["b", "a", "c"]) == (3, 3, 3)
        await model.close()
        assert sorted(str(request.json["content"]) for request in server.asked("/tokenize")[1:]) == ["a", "b", "c"]
