"""Skills come from the repo, the user and the package, in this order, within bounds."""

from pathlib import Path

import pytest

from agent_workbench.adapters.skills.folders import SkillFolders
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings import SkillSettings


def write_skill(folder: Path, name: str, body: str = "Do it well.") -> Path:
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\n\n{body}\n", encoding="utf-8")
    return file


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path / "repo"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / "home" / "skills"


def folders(repo: Path, user: Path | None = None, **settings: object) -> SkillFolders:
    return SkillFolders(repo, SkillSettings(**settings), user)  # type: ignore[arg-type]  # plain keywords for brevity


async def test_the_first_of_several_with_one_name_counts(repo: Path, user: Path) -> None:
    write_skill(repo / "skills", "python-style", "As the repo has it.")
    write_skill(user, "python-style", "As the user has it.")
    write_skill(user, "notes", "The user's own.")
    known = folders(repo, user)
    texts = await known.load(["notes", "python-style", "git-workflow"])
    assert [text.name for text in texts] == ["notes", "python-style", "git-workflow"]
    assert [text.text for text in texts][:2] == ["The user's own.", "As the repo has it."]
    assert texts[2].text.startswith("# Git workflow")
    untrusted = folders(repo, user, dirs=())
    assert (await untrusted.load(["python-style"]))[0].text == "As the user has it."


async def test_a_name_that_is_not_there_is_refused_with_those_that_are(repo: Path, user: Path) -> None:
    write_skill(repo / "skills", "deploy")
    with pytest.raises(ConfigError, match="no skill 'deplyo'") as caught:
        await folders(repo, user).load(["deploy", "deplyo"])
    assert "deploy, " in caught.value.advice
    assert "python-style" in caught.value.advice


@pytest.mark.parametrize("name", ["../secret", "/etc", "", ".", "a/b", "A", "x" * 65])
async def test_no_name_leads_out_of_the_folders(repo: Path, name: str) -> None:
    write_skill(repo, "secret")
    with pytest.raises(ConfigError, match="no skill"):
        await folders(repo).load([name])


async def test_nothing_is_wanted_and_nothing_is_read(tmp_path: Path) -> None:
    assert await folders(tmp_path / "absent").load([]) == ()


async def test_a_skill_of_the_repo_that_links_out_of_it_is_refused(repo: Path, user: Path) -> None:
    outside = write_skill(user, "outside")
    (repo / "skills").mkdir()
    (repo / "skills" / "outside").symlink_to(outside.parent)
    with pytest.raises(ConfigError, match=", outside /"):
        await folders(repo).load(["outside"])


async def test_the_users_own_folder_may_be_made_of_links(repo: Path, user: Path, tmp_path: Path) -> None:
    elsewhere = write_skill(tmp_path / "dotfiles", "mine", "From elsewhere.")
    user.mkdir(parents=True)
    (user / "mine").symlink_to(elsewhere.parent)
    assert (await folders(repo, user).load(["mine"]))[0].text == "From elsewhere."


async def test_all_texts_together_are_bounded_and_the_cut_is_stated(repo: Path) -> None:
    lines = "\n".join(f"line {number} of many" for number in range(100))
    for name in ("first", "second", "third"):
        write_skill(repo / "skills", name, lines)
    texts = await folders(repo, max_tokens=600).load(["first", "second", "third", "first"])
    assert texts[0].text == lines
    kept, _, cut = texts[1].text.rpartition("\n")
    assert lines.startswith(kept + "\n")
    assert cut.startswith(f"[cut: {len(lines) - len(kept)} of {len(lines)} characters")
    assert texts[2].text.startswith(f"[cut: {len(lines)} of {len(lines)} characters")
    assert sum(len(text.text) for text in texts) < 600 * 4 + 300
    assert len(texts) == 3


async def test_a_broken_skill_is_listed_with_its_problem_and_keeps_no_other_from_use(repo: Path) -> None:
    write_skill(repo / "skills", "whole")
    broken = write_skill(repo / "skills", "broken")
    broken.write_text("---\nname: broken\n---\n", encoding="utf-8")
    known = folders(repo)
    listed = {summary.head.name: summary for summary in await known.list()}
    assert "SKILL.md:2: 'description' is missing" in listed["broken"].problem
    assert listed["whole"].problem == ""
    assert listed["whole"].head.description == "How to whole."
    assert listed["whole"].folder == str(repo / "skills" / "whole")
    assert await known.load(["whole"])
    with pytest.raises(ConfigError, match="'description' is missing"):
        await known.load(["broken"])


async def test_bytes_that_are_not_utf8_are_told_with_their_line(repo: Path) -> None:
    file = write_skill(repo / "skills", "latin")
    file.write_bytes(file.read_bytes() + b"gr\xfc\xdfe\n")
    with pytest.raises(ConfigError, match=r"SKILL\.md:7: not UTF-8"):
        await folders(repo).load(["latin"])


async def test_a_file_of_a_megabyte_is_read(repo: Path) -> None:
    write_skill(repo / "skills", "large", "x" * 1_000_000)
    (text,) = await folders(repo).load(["large"])
    assert text.name == "large"


async def test_the_nearest_name_is_proposed(repo: Path) -> None:
    write_skill(repo / "skills", "python-style")
    with pytest.raises(ConfigError, match="there is no skill 'pyton-style'; did you mean 'python-style'"):
        await folders(repo).load(["pyton-style"])


async def test_a_huge_file_is_not_read(repo: Path) -> None:
    write_skill(repo / "skills", "huge", "x" * 1_100_000)
    with pytest.raises(ConfigError, match="bytes"):
        await folders(repo).load(["huge"])


async def test_what_ships_is_whole_and_short(tmp_path: Path) -> None:
    listed = await folders(tmp_path).list()
    assert {
        *("error-reporting", "git-workflow", "python-style", "test-driven-development", "yaml-validation"),
    } <= {summary.head.name for summary in listed}
    assert [summary.problem for summary in listed if summary.problem] == []
    for summary in listed:
        assert summary.head.domains
        assert summary.head.languages
        assert summary.head.patterns
        lines = Path(summary.folder, "SKILL.md").read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 60, summary.head.name
    texts = await folders(tmp_path).load([summary.head.name for summary in listed[:2]])
    assert not any("[cut:" in text.text for text in texts)
