"""Settings of the database that machines share."""

from msgspec import Struct


class DatabaseSettings(Struct, frozen=True):
    """The database whose address is in the environment variable `url_env`; without it nothing is shared.

    Checkpoints and branches travel through the git remote `remote`. `signing_key` is the private SSH key that signs
    what this machine shares (empty: one that is made in the state folder), `allowed_signers` the file of those whose
    signatures count (empty: the one beside the user's own settings). Both are paths, set by the user alone.
    """

    url_env: str = ""
    remote: str = "origin"
    signing_key: str = ""
    allowed_signers: str = ""

    @property
    def active(self) -> bool:
        """True if a database is set."""
        return bool(self.url_env)
