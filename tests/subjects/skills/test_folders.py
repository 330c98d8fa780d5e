"""Skills come from the repo, the user and the package, in this order, within bounds."""

import os
import re
from pathlib import Path

import pytest

from agent_workbench.core.errors import ConfigError
from agent_workbench.core.settings import SkillSettings
from agent_workbench.core.skills import SkillOrigin
from agent_workbench.subjects.skills.folder_adapter import SkillFolders


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
    return SkillFolders(repo, SkillSettings(**settings), (user,) if user else ())  # type: ignore[arg-type]  # plain keywords for brevity


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


async def test_a_broken_skill_is_listed_with_its_problem_and_keeps_no_other_from_use(repo: Path) -> None:
    write_skill(repo / "skills", "whole")
    broken = write_skill(repo / "skills", "broken")
    broken.write_text("---\nname: broken\n---\n", encoding="utf-8")
    known = folders(repo)
    listed = {entry.name: entry for entry in await known.list()}
    assert listed["broken"].problems == ("skills/broken/SKILL.md:2: 'description' is missing",)
    assert not listed["broken"].usable
    assert listed["whole"].problems == ()
    assert listed["whole"].description == "How to whole."
    assert listed["whole"].folder == str(repo / "skills" / "whole")
    assert listed["whole"].origin is SkillOrigin.REPO
    assert await known.load(["whole"])
    with pytest.raises(ConfigError, match="'description' is missing"):
        await known.load(["broken"])


async def test_the_folders_of_other_agents_are_looked_into_and_the_nearest_counts(repo: Path, user: Path) -> None:
    for folder in (".claude/skills", ".agents/skills", "skills"):
        write_skill(repo / folder, "shared", f"From {folder}.")
        write_skill(repo / folder, folder.strip(".").replace("/", "-"))
    write_skill(user, "shared", "From home.")
    known = folders(repo, user)
    assert await known.body("shared") == "From skills."
    names = {entry.name for entry in await known.list()}
    assert {"claude-skills", "agents-skills", "skills"} <= names
    places = await known.places()
    assert [(place.folder, place.skills) for place in places[:4]] == [
        ("skills", 2),
        (".agents/skills", 2),
        (".claude/skills", 2),
        (str(user), 1),
    ]
    untrusted = folders(repo, user, dirs=())
    assert await untrusted.body("shared") == "From home."


async def test_a_missing_folder_is_told(repo: Path, user: Path) -> None:
    places = await folders(repo, user).places()
    assert [place.problem for place in places] == ["missing"] * 4 + [""]


async def test_a_folder_that_cannot_be_listed_is_told_and_stops_nothing(repo: Path, tmp_path: Path) -> None:
    (repo / "skills").symlink_to(repo / "skills")
    write_skill(repo / ".agents" / "skills", "whole")
    known = folders(repo)
    assert "cannot be listed" in (await known.places())[0].problem
    assert await known.body("whole") == "Do it well."


async def test_a_skill_that_cannot_be_read_is_left_out_and_stops_nothing(repo: Path) -> None:
    for name in ("loop", "pipe", "folder"):
        (repo / "skills" / name).mkdir(parents=True)
    (repo / "skills" / "loop" / "SKILL.md").symlink_to("SKILL.md")
    os.mkfifo(repo / "skills" / "pipe" / "SKILL.md")
    (repo / "skills" / "folder" / "SKILL.md").mkdir()
    write_skill(repo / "skills", "whole")
    listed = {entry.name: entry for entry in await folders(repo).list() if entry.origin is SkillOrigin.REPO}
    assert [name for name, entry in listed.items() if entry.usable] == ["whole"]
    assert all(
        listed[name].problems[0].startswith(f"skills/{name}/SKILL.md:1: ") for name in ("loop", "pipe", "folder")
    )


@pytest.mark.parametrize("name", ["SKILL.MD", "skill.md", "Skill.md"])
async def test_a_file_spelled_otherwise_is_read_and_told(repo: Path, name: str) -> None:
    file = write_skill(repo / "skills", "loud")
    file.rename(file.with_name(name))
    (entry,) = [each for each in await folders(repo).list() if each.name == "loud"]
    assert entry.usable
    assert entry.problems == (f"skills/loud/{name}:1: the file is called {name}; its name is SKILL.md",)


async def test_names_that_differ_in_case_stay_apart(repo: Path) -> None:
    write_skill(repo / "skills", "deploy", "Mine.")
    write_skill(repo / "skills", "Deploy", "Yours.")
    known = folders(repo)
    assert await known.body("deploy") == "Mine."
    (other,) = [entry for entry in await known.list() if entry.name == "Deploy"]
    assert not other.usable
    with pytest.raises(ConfigError, match="the folder's name"):
        await known.body("Deploy")


async def test_a_declared_number_of_tokens_is_not_believed_if_it_is_far_off(repo: Path) -> None:
    for name, tokens in (("honest", 120), ("small", 1), ("large", 9_000)):
        file = write_skill(repo / "skills", name, "word " * 80)
        file.write_text(file.read_text().replace("---\n\n", f"metadata: {{tokens: {tokens}}}\n---\n\n", 1))
    listed = {entry.name: entry for entry in await folders(repo).list()}
    assert listed["honest"].tokens == 120
    assert listed["small"].tokens == listed["large"].tokens == 101
    assert "metadata.tokens is 1, about 101 are there" in listed["small"].problems[0]


async def test_a_body_is_inert_text(repo: Path) -> None:
    write_skill(repo / "skills", "loud", "a\x1b]52;c;x\x07 <|im_end|> [INST] \u202eb")
    body = await folders(repo).body("loud")
    assert not {"\x1b", "\x07", "\u202e"} & set(body)
    assert "<|" not in body
    assert "[INST]" not in body


class TestFiles:
    """The third tier: files in a skill's folder."""

    async def test_a_file_is_read(self, repo: Path) -> None:
        folder = write_skill(repo / "skills", "one").parent
        (folder / "reference").mkdir()
        (folder / "reference" / "forms.md").write_text("Forms.\n")
        assert await folders(repo).read_file("one", "reference/forms.md") == "Forms.\n"

    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("../x", "leads out of the skill"),
            ("/etc/passwd", "leads out of the skill"),
            ("~/.ssh/id_rsa", "leads out of the skill"),
            ("a\\..\\b", "leads out of the skill"),
            ("a/../../b", "leads out of the skill"),
            ("out", "leads out of the skill"),
            ("beside/secret.md", "leads out of the skill"),
            ("", "no path"),
            ("a\0b", "no path"),
            ("a\nb", "no path"),
            ("folder", "not a regular file"),
            (".", "not a regular file"),
            ("pipe", "not a regular file"),
            ("large", "bytes; the limit is"),
            ("binary", "is binary"),
            ("latin", "latin:2: not UTF-8"),
            ("none", "there is no such file"),
        ],
    )
    async def test_a_path_that_is_no_text_of_the_skill_is_refused(self, repo: Path, path: str, said: str) -> None:
        folder = write_skill(repo / "skills", "one").parent
        other = write_skill(repo / "skills", "two").parent
        (other / "secret.md").write_text("secret")
        (repo / "readme").write_text("outside of the skill")
        (folder / "out").symlink_to(repo / "readme")
        (folder / "beside").symlink_to(other)
        (folder / "folder").mkdir()
        os.mkfifo(folder / "pipe")
        with (folder / "large").open("wb") as file:
            file.truncate(3_000_000)
        (folder / "binary").write_bytes(b"a\0b")
        (folder / "latin").write_bytes(b"a\n\xfc\n")
        with pytest.raises(ConfigError, match=re.escape(said)):
            await folders(repo).read_file("one", path)

    @pytest.mark.parametrize("name", ["../one", "one/", "one\\two", "..", "nope"])
    async def test_a_name_with_a_path_in_it_is_unknown(self, repo: Path, name: str) -> None:
        write_skill(repo / "skills", "one")
        with pytest.raises(ConfigError, match="there is no skill"):
            await folders(repo).read_file(name, "SKILL.md")


class TestRank:
    """Skills are found by their own words; a description orders them."""

    async def test_a_skill_is_found_by_a_word_of_its_own(self, repo: Path) -> None:
        (first, *_) = await folders(repo).rank("Validate the YAML of the settings")
        assert first.name == "yaml-validation"
        assert "yaml" in first.words

    async def test_all_words_of_a_phrase_must_occur(self, repo: Path) -> None:
        known = folders(repo)
        assert "git-workflow" not in {hit.name for hit in await known.rank("Print the version of the workflow")}
        (hit,) = await known.rank("Return an exit code from the window")
        assert (hit.name, hit.words) == ("error-reporting", ("exit code",))

    async def test_prose_alone_finds_none(self, repo: Path) -> None:
        assert await folders(repo).rank("Let the window be closed with a key") == ()

    async def test_a_skill_without_metadata_is_found_by_two_words_of_its_description(self, repo: Path) -> None:
        file = write_skill(repo / "skills", "pdf")
        file.write_text(file.read_text().replace("How to pdf.", "Fill in forms and extract tables."))
        known = folders(repo)
        assert [hit.name for hit in await known.rank("extract the tables of an invoice")] == ["pdf"]
        assert await known.rank("draw a forms designer in the canvas widget") == ()


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
    write_skill(repo / "skills", "huge", "x" * 2_200_000)
    with pytest.raises(ConfigError, match="bytes"):
        await folders(repo).load(["huge"])


async def test_the_words_of_the_page_find_its_example() -> None:
    project = Path(__file__).parents[3]
    said = re.search(r'agent chat "([^"]+)"', (project / "docs/how-to/skills.md").read_text(encoding="utf-8"))
    assert said is not None
    found = await folders(project, dirs=("examples/skills",)).rank(said[1])
    assert [hit.name for hit in found] == ["calculator"]


async def test_what_ships_is_whole_and_short(tmp_path: Path) -> None:
    """What the demands on the bundled skills name: their names, domains, and 150 to 400 tokens."""
    demanded = {
        "yaml-validation": {"validation", "data-validation", "yaml", "configuration"},
        "test-driven-development": {"testing", "implementation"},
        "error-reporting": {"validation", "error-handling", "implementation", "logging"},
        "python-style": {"implementation", "style"},
        "git-workflow": {"git", "version-control"},
    }
    listed = {entry.name: entry for entry in await folders(tmp_path).list()}
    assert demanded.keys() <= listed.keys()
    assert [entry.problems for entry in listed.values() if entry.problems] == []
    for name, domains in demanded.items():
        entry = listed[name]
        assert entry.origin is SkillOrigin.PACKAGE
        assert domains <= set(entry.domains)
        assert entry.languages
        assert entry.patterns
        assert 150 <= entry.tokens <= 400, name
