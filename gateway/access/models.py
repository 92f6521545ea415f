"""Defines the tables of users' rights, sessions and failed logins in the web database.

Read through `selectors`, written through `services` and by the session store.
"""

from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from gateway.access.grants import ANY, MAX_CLUSTER_CHARS, MAX_PATTERN_CHARS

if TYPE_CHECKING:
    from gateway.access.sessions import SessionStore

# Values of our own Enums.
WORD_CHARS = 20
# An IPv6 address with a zone.
ADDRESS_CHARS = 64
# SHA-256 in hexadecimal digits.
DIGEST_CHARS = 64
MAX_TOKEN_NAME_CHARS = 64
# As in Django's table of users.
USER_NAME_CHARS = 150
# A user agent; a longer one is cut.
AGENT_CHARS = 200
# Our own words, as "user.password_reset".
EVENT_CHARS = 40


class Account(models.Model):
    """User data beside Django's own. A user without an account row has changed the password."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="account"
    )
    # Another person set the password, so it gives access only to the page that changes it.
    must_change_password = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"account of user {self.user_id}"


class GrantColumns(models.Model):
    """One row of `grants.Grant`; an empty kind means all kinds."""

    role = models.CharField(max_length=WORD_CHARS, blank=True, default="", db_default="")
    operation = models.CharField(max_length=WORD_CHARS, blank=True, default="", db_default="")
    cluster = models.CharField(max_length=MAX_CLUSTER_CHARS, default=ANY, db_default=ANY)
    kind = models.CharField(max_length=WORD_CHARS, blank=True, default="", db_default="")
    pattern = models.CharField(max_length=MAX_PATTERN_CHARS, default=ANY, db_default=ANY)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.role or self.operation} on {self.cluster} {self.kind or '*'} {self.pattern}"


class Grant(GrantColumns):
    """A right of a user."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants"
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "role", "operation", "cluster", "kind", "pattern"],
                name="access_grant_once",
            ),
            models.CheckConstraint(
                condition=(Q(role="") & ~Q(operation="")) | (~Q(role="") & Q(operation="")),
                name="access_grant_role_or_operation",
            ),
        ]


class Token(models.Model):
    """A key that a program presents; only a digest of its text is stored.

    A user's tokens are deleted with the user, and never become ones without an owner, whose rights
    nothing limits.
    """

    # Part of a Kafka principal, so a name is never reused, even after its token was revoked.
    name = models.CharField(max_length=MAX_TOKEN_NAME_CHARS, unique=True)
    digest = models.CharField(max_length=DIGEST_CHARS, unique=True)
    prefix = models.CharField(max_length=WORD_CHARS)
    created_by = models.CharField(max_length=USER_NAME_CHARS)
    # None: created on the host.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="tokens"
    )
    created_at = models.DateTimeField(db_default=Now())
    # None: never.
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # Written at most once a minute.
    last_used_at = models.DateTimeField(null=True)
    last_address = models.CharField(max_length=ADDRESS_CHARS, default="", db_default="")

    def __str__(self) -> str:
        return f"token {self.name}"


class TokenGrant(GrantColumns):
    """A right that a token was given."""

    token = models.ForeignKey(Token, on_delete=models.CASCADE, related_name="grants")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["token", "role", "operation", "cluster", "kind", "pattern"],
                name="access_token_grant_once",
            ),
            models.CheckConstraint(
                condition=(Q(role="") & ~Q(operation="")) | (~Q(role="") & Q(operation="")),
                name="access_token_grant_role_or_operation",
            ),
        ]


class UntoldChange(models.Model):
    """A change of access that is not in the cluster's audit log yet; see `changes`."""

    event = models.CharField(max_length=EVENT_CHARS)
    actor = models.CharField(max_length=USER_NAME_CHARS)
    address = models.CharField(max_length=ADDRESS_CHARS, default="", db_default="")
    subject = models.CharField(max_length=USER_NAME_CHARS)
    details = models.JSONField()  # text → text
    made_at_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.event} {self.subject}"


class FailedLogin(models.Model):
    """The number of failed logins of one source within one time window.

    A source is an address or an account, stored as a digest: what people type into the wrong field
    belongs in no database.
    """

    source = models.CharField(max_length=DIGEST_CHARS, unique=True)
    failures = models.PositiveIntegerField(default=0)
    window_started_at = models.DateTimeField(db_index=True)

    class Meta:
        # The console had this table first, and an update keeps its rows.
        db_table = "console_failedlogin"

    def __str__(self) -> str:
        return f"{self.source[:8]}: {self.failures}"


class Session(AbstractBaseSession):
    """A signed-in browser: Django's columns, and those that an administrator needs."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    started_at = models.DateTimeField(db_default=Now())
    # Written at most once a minute.
    active_at = models.DateTimeField(db_default=Now())
    address = models.CharField(max_length=ADDRESS_CHARS, default="", db_default="")
    agent = models.CharField(max_length=AGENT_CHARS, default="", db_default="")

    class Meta(AbstractBaseSession.Meta):
        abstract = False

    @classmethod
    def get_session_store_class(cls) -> "type[SessionStore]":
        # The store imports this module.
        from gateway.access.sessions import SessionStore  # noqa: PLC0415

        return SessionStore
