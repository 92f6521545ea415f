"""Users of the console with their rights, every value defaulted. Needs the project set up."""

from django.contrib.auth.models import User

from gateway.access import models
from gateway.access.grants import ANY
from gateway.access.operations import Kind, Operation, Role

PASSWORD = "open-sesame-123"  # noqa: S105 - of nobody


def user(
    name: str,
    *,
    role: Role | None = Role.ADMIN,
    must_change: bool = False,
    password: str = PASSWORD,
) -> User:
    """Make a user with a role on everything; None gives no right at all."""
    made = User.objects.create_user(name, password=password)
    models.Account.objects.create(user=made, must_change_password=must_change)
    if role is not None:
        models.Grant.objects.create(user=made, role=role.value)
    return made


def grant(
    to: User,
    operation: Operation,
    *,
    cluster: str = ANY,
    kind: Kind | None = None,
    pattern: str = ANY,
) -> None:
    models.Grant.objects.create(
        user=to,
        operation=operation.value,
        cluster=cluster,
        kind=kind.value if kind else "",
        pattern=pattern,
    )
