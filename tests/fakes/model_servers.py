"""Servers with several models, by their documented routes: llama.cpp's router, Ollama, and LM Studio."""

from collections.abc import Callable, Mapping
from urllib.parse import quote

from tests.fakes.faulty_server import PROPS, Answer, FaultyServer, Request, as_json, error

GENERATE = "/api/generate"


class ManyModels(FaultyServer):
    """A server whose models have a status: `loaded` are in memory, `broken` fail to load.

    `loads_after` questions for the list have to be asked before a model that is being loaded is in memory.
    """

    def __init__(self, *names: str, loaded: tuple[str, ...] = (), context_tokens: int = 8192) -> None:
        super().__init__()
        self.names = names
        self.loaded = list(loaded)
        self.broken: set[str] = set()
        self.context_tokens = context_tokens
        self.loads_after = 0
        self._loading: dict[str, int] = {}
        self.on("/props").on("/tokenize").on("/health", error(404, "not found"))

    def begin(self, name: str) -> None:
        """Begin to load a model."""
        self._loading[name] = self.loads_after

    def status(self, name: str) -> str:
        """Return the status of a model, one question nearer to its end."""
        if name in self._loading:
            self._loading[name] -= 1
            if self._loading[name] >= 0:
                return "loading"
            del self._loading[name]
            if name not in self.broken:
                self.loaded.append(name)
        return "loaded" if name in self.loaded else "failed" if name in self.broken else "unloaded"

    def known(
        self, then: Callable[[str], None], key: str = "model", said: object = None
    ) -> Callable[[Request], Answer]:
        """Return the answer to a request that names a model, which `then` is done with."""

        def answer(request: Request) -> Answer:
            name = str(request.json[key])
            if name not in self.names:
                return error(404, f"model '{name}' not found", "not_found_error")
            then(name)
            return as_json({"success": True} if said is None else said)

        return answer

    def add(self, name: str) -> None:
        """Have a model in memory."""
        self.loaded.append(name)

    def drop(self, name: str) -> None:
        """Unload a model."""
        self.loaded = [each for each in self.loaded if each != name]


def router(*names: str, loaded: tuple[str, ...] = (), context_tokens: int = 8192) -> ManyModels:
    """Return llama.cpp's router: it loads in the background, and its list has a status."""
    server = ManyModels(*names, loaded=loaded, context_tokens=context_tokens)

    def entry(name: str) -> Mapping[str, object]:
        value = server.status(name)
        failed = {"failed": True, "exit_code": 1} if value == "failed" else {}
        status = {"value": "unloaded" if failed else value, **failed}
        meta = {"meta": {"n_ctx": context_tokens}} if value == "loaded" else {}
        return {"id": name, "object": "model", "owned_by": "llamacpp", "status": status, **meta}

    def props(request: Request) -> Answer:
        name = next(each for each in names if quote(each, safe="") in request.path)
        if name not in server.loaded:
            return error(503, "Loading model")
        own = {**PROPS, "default_generation_settings": {"n_ctx": context_tokens}, "model_alias": name}
        return as_json(own)

    listed = [lambda _: as_json({"data": [entry(name) for name in names], "object": "list"})]
    server.on("/health", as_json({"status": "ok"}))
    server.on("/props", as_json({"role": "router", "default_generation_settings": None}))
    for name in names:
        server.on(f"/props?model={quote(name, safe='')}", props)
    server.on("/v1/models", *listed).on("/models/load", server.known(server.begin))
    return server.on("/models/unload", server.known(server.drop))


def ollama(*names: str, loaded: tuple[str, ...] = (), context_tokens: int = 8192) -> ManyModels:
    """Return Ollama: a request without a prompt loads a model, and one that keeps it for no time unloads it."""
    server = ManyModels(*names, loaded=loaded, context_tokens=context_tokens)

    def generate(request: Request) -> Answer:
        name = str(request.json["model"])
        if name not in names:
            return error(404, f"model '{name}' not found")
        if request.json.get("keep_alive") == 0:
            server.drop(name)
            return as_json({"model": name, "response": "", "done": True, "done_reason": "unload"})
        if name not in server.loaded:
            server.loaded.append(name)
        return as_json({"model": name, "response": "", "done": True, "done_reason": "load"})

    def running(_: Request) -> Answer:
        return as_json({"models": [{"name": each, "context_length": context_tokens} for each in server.loaded]})

    data = [{"id": name, "object": "model", "owned_by": "library"} for name in names]
    server.on("/v1/models", as_json({"data": data})).on("/api/version", as_json({"version": "0.31.1"}))
    return server.on("/api/ps", running).on(GENERATE, generate)


def lm_studio(*names: str, loaded: tuple[str, ...] = ()) -> ManyModels:
    """Return LM Studio with just-in-time loading off: the list in OpenAI's form has what is loaded alone."""
    server = ManyModels(*names, loaded=loaded)

    def native(_: Request) -> Answer:
        instances = {
            name: [{"id": name, "config": {"context_length": 4096}}] if name in server.loaded else [] for name in names
        }
        listed = [{"type": "llm", "key": name, "loaded_instances": instances[name]} for name in names]
        return as_json({"models": [*listed, {"type": "embedding", "key": "embedder", "loaded_instances": []}]})

    server.on("/v1/models", lambda _: as_json({"data": [{"id": name} for name in server.loaded]}))
    server.on("/api/v1/models", native)
    server.on("/api/v1/models/load", server.known(server.add, said={"status": "loaded"}))
    return server.on("/api/v1/models/unload", server.known(server.drop, "instance_id"))
