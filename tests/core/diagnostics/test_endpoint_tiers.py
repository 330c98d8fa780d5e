"""Kinds of endpoints: on this machine, elsewhere, or with a price."""

import pytest

from agent_workbench.core.consult_requests import EndpointTier
from agent_workbench.core.diagnostics import tier_of
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, ModelSettings, TokenPrice


@pytest.mark.parametrize(
    ("endpoint", "tier"),
    [
        (EndpointSettings(url="http://127.0.0.1:8080"), EndpointTier.LOCAL),
        (EndpointSettings(url="http://localhost/v1"), EndpointTier.LOCAL),
        (EndpointSettings(url="http://[::1]:80"), EndpointTier.LOCAL),
        (EndpointSettings(path="m.gguf"), EndpointTier.LOCAL),
        (EndpointSettings(url="https://127.evil.example@models.example/v1"), EndpointTier.REMOTE),
        (EndpointSettings(url="https://models.example/127.0.0.1"), EndpointTier.REMOTE),
        (EndpointSettings(url="http://127.0.0.1", dollars_per_million_tokens=TokenPrice(1.0, 2.0)), EndpointTier.PAID),
    ],
)
def test_the_tier_of_an_endpoint(endpoint: EndpointSettings, tier: EndpointTier) -> None:
    assert tier_of(Settings(endpoints=(("a", endpoint),)), "a") is tier


def test_the_short_form_counts_too() -> None:
    assert tier_of(Settings(model=ModelSettings(url="http://10.0.0.1")), "model") is EndpointTier.REMOTE
