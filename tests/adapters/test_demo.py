from pathlib import Path

import pytest
import yaml

from agent_workbench.adapters import demo


def test_the_settings_name_the_model_wherever_the_product_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (tmp_path / 'Mia\'s: "venv" #1' / "demo-model.gguf", str(tmp_path / "é {#1}: x" / "python"))
    monkeypatch.setattr(demo, "MODEL", places[0])
    monkeypatch.setattr("sys.executable", places[1])
    demo.write_sample(tmp_path / "shop")
    written = yaml.safe_load((tmp_path / "shop" / ".agent.yml").read_text(encoding="utf-8"))
    assert (written["model"]["path"], written["python"]) == (str(places[0]), places[1])
