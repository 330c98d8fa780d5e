"""A repository that tries to run something by every means git's configuration offers."""

from pathlib import Path

from tests.adapters.git.user import User

_HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit"),
    *("pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "proc-receive", "push-to-checkout"),
    *("reference-transaction", "sendemail-validate", "update"),
)
_CONFIG = """
[core]
	fsmonitor = {fsmonitor}
	pager = {pager}
	editor = {editor}
	sshCommand = {ssh}
	gitProxy = {proxy}
	askPass = {askpass}
	alternateRefsCommand = {alternates}
	attributesFile = {attributes}
	worktree = {elsewhere}
	untrackedCache = true
	splitIndex = true
	autocrlf = true
[extensions]
	partialClone = origin
[remote "origin"]
	url = ssh://nowhere/at/all
	promisor = true
	partialclonefilter = blob:none
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[commit]
	gpgSign = true
[gpg]
	program = {gpg}
[gpg "ssh"]
	defaultKeyCommand = {gpg}
[credential]
	helper = !{credential}
[filter "evil"]
	clean = {clean}
	smudge = {smudge}
	required = true
[filter "long"]
	process = {process}
	required = true
[filter "a=b.c \\"d"]
	clean = {clean}
	smudge = {smudge}
[filter ""]
	clean = {clean}
[diff]
	external = {external}
	submodule = diff
	ignoreSubmodules = none
[diff "evil"]
	command = {diff}
	textconv = {textconv}
[merge "evil"]
	driver = {merge}
[submodule]
	recurse = true
[gc]
	auto = 1
[uploadpack]
	packObjectsHook = {pack}
[trailer "x"]
	command = {trailer}
	key = Evil
[alias]
	config = !{alias}
	ls-files = !{alias}
[maintenance]
	auto = true
[includeIf "gitdir:**"]
	path = {included}
"""
_INCLUDED = """
[filter "included"]
	clean = {clean}
	smudge = {smudge}
[core]
	hooksPath = {hooks}
"""
_ATTRIBUTES = """\
* diff=evil merge=evil ident
*.py filter=evil
*.long filter=long
*.odd filter=included
*.crlf text eol=crlf
*.utf16 working-tree-encoding=UTF-16
"""


def make_hostile(user: User, canaries: Path) -> None:
    """Fill the repository with everything that could run a program; each program leaves a file in `canaries`."""
    canaries.mkdir()
    lair = user.root / ".lair"
    hooks = lair / "hooks"
    for folder in (hooks, user.root / ".git/hooks"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in _HOOKS:
            _trap(folder / name, canaries / f"{folder.name}-{name}")
    words = {word: _trap(lair / word, canaries / word) for word in _words()}
    words |= {
        "attributes": str(lair / "attributes"),
        "elsewhere": str(user.root.parent / "elsewhere"),
        "included": str(lair / "included"),
        "hooks": str(hooks),
    }
    (lair / "attributes").write_text("* filter=evil\n")
    (lair / "included").write_text(_INCLUDED.format(**words))
    _trap(lair / "git", canaries / "git-on-the-path")
    (user.root.parent / "elsewhere").mkdir()
    user.write(".gitattributes", _ATTRIBUTES)
    (user.root / ".git/info").mkdir(exist_ok=True)
    (user.root / ".git/info/attributes").write_text("README.md filter=evil\nlines.txt merge=evil\n")
    with (user.root / ".git/config").open("a") as config:
        config.write(_CONFIG.format(**words))


def _words() -> list[str]:
    known = {"attributes", "elsewhere", "included", "hooks"}
    return sorted({part.partition("}")[0] for part in (_CONFIG + _INCLUDED).split("{")[1:]} - known)


def _trap(path: Path, canary: Path) -> str:
    # Filters hand on what they get, so that git goes on to the next trap.
    hand_on = "cat" if path.name in {"clean", "smudge", "textconv"} else ":"
    path.write_text(f"#!/bin/sh\ntouch {canary}\n{hand_on}\n")
    path.chmod(0o755)
    return str(path)
