"""Links that let people into a served project, each with a role.

A link carries a token, of which only the digest is stored. An *annotator* answers cards, and the
*lead* also sees the pages of the lead. The one token of a project of an earlier version is a link
of the lead; its links of scripts open nothing any more.
"""

import hashlib
import hmac
import math
import secrets
import time
from typing import Literal, NamedTuple, get_args

from sqlalchemy import delete, insert, select, update

from comes.annotate.project import Project
from comes.annotate.schema import links, read_setting, settings
from comes.errors import ComesError

Role = Literal["annotator", "lead"]
ROLES: tuple[Role, ...] = get_args(Role)
OLD_TOKEN = "token_digest"  # the setting of an earlier version
FRESH = 1.0  # seconds for which a server trusts the links that it has read


class Link(NamedTuple):
    """A link that lets somebody in."""

    digest: str
    role: str
    label: str  # whom it is for
    made_at: float  # 0 where it is not known
    revoked_at: float | None = None

    @property
    def number(self) -> str:
        """What names the link where two have the same label."""
        return self.digest[:8]


def digest_token(token: str) -> str:
    """Return the digest of a token, the only part of it that is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def make_link(project: Project, role: Role, label: str, token: str | None = None) -> str:
    """Store a link for somebody, and return its token, which is not stored; a new one by default.

    A running server knows it within a second.
    """
    token = token or secrets.token_urlsafe(32)
    row = {"digest": digest_token(token), "role": role, "made_at": time.time()}
    with project.writing() as connection:
        connection.execute(insert(links).values(label=" ".join(label.split()), **row))
    return token


def list_links(project: Project) -> list[Link]:
    """Return all links of a project, revoked ones too; the oldest comes first."""
    query = select(links).order_by(links.c.made_at, links.c.digest)
    with project.reading() as connection:
        rows = connection.execute(query).all()
        digest = read_setting(connection, OLD_TOKEN)
    earlier = [Link(digest, "lead", "token of an earlier version", 0.0)] if digest else []
    return earlier + [Link(**row._mapping) for row in rows]


def revoke_links(project: Project, wanted: str | None = None) -> list[Link]:
    """Revoke the links of one label or number, or all of them; return those.

    A running server knows it within a second.
    """
    valid = [link for link in list_links(project) if link.revoked_at is None]
    ended = [link for link in valid if wanted in (None, link.label, link.number)]
    if wanted is not None and not ended:
        names = ", ".join(f"{link.number} ({link.label})" for link in valid) or "none"
        raise ComesError(f"a link to revoke must be one that is valid: {names}; got {wanted!r}.")
    digests = [link.digest for link in ended]
    is_old = settings.c.name == OLD_TOKEN, settings.c.value.in_(digests)
    with project.writing() as connection:
        own = links.c.digest.in_(digests)
        connection.execute(update(links).where(own).values(revoked_at=time.time()))
        connection.execute(delete(settings).where(*is_old))
    return ended


class KnownLinks:
    """The valid links of a project, as a running server knows them."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._roles: dict[str, str] = {}  # by digest
        self._read_at = -math.inf

    @property
    def is_fresh(self) -> bool:
        """Whether the links were read a moment ago."""
        return time.monotonic() < self._read_at + FRESH

    def read(self) -> None:
        """Read what is valid now; if the database does not answer, what was valid stays."""
        try:
            valid = [link for link in list_links(self._project) if link.revoked_at is None]
            self._roles = {link.digest: link.role for link in valid if link.role in ROLES}
        except ComesError:
            if self._read_at == -math.inf:
                raise
        self._read_at = time.monotonic()

    def find_role(self, token: str) -> str | None:
        """Return the role of a token; None if it belongs to no valid link."""
        digest, role = digest_token(token), None
        for known in self._roles:  # all of them, so that the time says nothing
            if hmac.compare_digest(digest, known):
                role = self._roles[known]
        return role
