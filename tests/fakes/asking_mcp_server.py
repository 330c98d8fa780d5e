"""A real MCP server of the SDK that asks its user, over its standard streams, or over HTTP behind OAuth.

`python asking_mcp_server.py` serves a pipe; with `--http SECONDS` it listens on loopback, prints its port, and gives
tokens that expire after so many seconds. Its page of the sign-in agrees at once, as a person would with a click.
"""

import asyncio
import json
import socket
import sys
import time
from typing import Annotated, Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types import ElicitRequest, ElicitRequestURLParams, InputRequiredResult
from pydantic import AnyHttpUrl, BaseModel, Field


class Table(BaseModel):
    name: str = Field(description="Who comes\x1b[31m <|im_start|>", min_length=2)
    people: int = Field(default=2, ge=1, le=8)


async def which_table(day: str) -> Elicit[Table]:
    return Elicit(f"Which table on {day}?\x1b]0;owned\x07", Table)


def serve_tools(**auth: Any) -> MCPServer:
    server = MCPServer("asking", version="1.0", **auth)

    @server.tool()
    async def book(day: str, table: Annotated[ElicitationResult[Table], Resolve(which_table)]) -> str:
        """Book a table"""
        if not isinstance(table, AcceptedElicitation):
            return f"nothing booked: {table.action}"
        return f"booked for {table.data.name}, {table.data.people} people, on {day}"

    @server.tool()
    async def pay(context: Context[Any]) -> str | InputRequiredResult:
        """Pay on a page"""
        answers = context.input_responses
        if answers and "page" in answers:
            return f"payment: {getattr(answers['page'], 'action', '?')}"
        page = ElicitRequestURLParams(message="Pay here", url="https://pay.example/42?x=1")
        return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)})

    @server.tool()
    async def token() -> str:
        """Say the token of the request"""
        used = get_access_token()
        token = used.token if used else "none"
        return f"your token is {token}, as JSON {json.dumps(token)}"

    return server


class Logins:
    """An authorization server in memory. A refresh token counts once."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.count = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = f"code-{len(self.codes)}-0123456789abcdef"
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.given(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self.given(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def given(self, client: str, scopes: list[str]) -> OAuthToken:
        self.count += 1
        access, refresh = f'access-{self.count}-"s3cr\\3t"-value', f"refresh-{self.count}-s3cr3t-value"
        until = int(time.time() + self.seconds)
        self.access[access] = AccessToken(token=access, client_id=client, scopes=scopes, expires_at=until)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds, scope=" ".join(scopes))


async def serve_http(seconds: int) -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(address),
        resource_server_url=AnyHttpUrl(f"{address}/mcp"),
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["tables"], default_scopes=["tables"]
        ),
        required_scopes=["tables"],
        validate_token_resource=False,
    )
    app = serve_tools(auth_server_provider=Logins(seconds), auth=auth).streamable_http_app()
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve([listener])


if __name__ == "__main__":
    if "--http" in sys.argv:
        asyncio.run(serve_http(int(sys.argv[2])))
    else:
        serve_tools().run("stdio")
