"""Validates forms about users and their rights. `gateway.access` checks the rights."""

from typing import Any, Final

from django import forms

from console.forms.passwords import MAX_PASSWORD_CHARS
from gateway.access.grants import ANY, MAX_PATTERN_CHARS, Grant
from gateway.access.operations import Kind, Operation, Role

# The length limit of Django's user names.
MAX_NAME_CHARS: Final = 150
ROLE: Final = "role:"
OPERATION: Final = "operation:"
EVERYTHING: Final = ""


class GrantForm(forms.Form):
    """A role or an operation, and its target."""

    what = forms.ChoiceField(
        choices=[
            *((f"{ROLE}{role.value}", role.value) for role in Role),
            *((f"{OPERATION}{operation.value}", operation.value) for operation in Operation),
        ],
        initial=f"{ROLE}{Role.VIEWER.value}",
    )
    # Any text: the cluster may be gone since the page was rendered, and services check the format.
    cluster = forms.CharField(initial=ANY)
    kind = forms.ChoiceField(
        choices=[(EVERYTHING, "everything"), *((kind.value, kind.value) for kind in Kind)],
        required=False,
    )
    pattern = forms.CharField(required=False, max_length=MAX_PATTERN_CHARS)

    def grant(self) -> Grant:
        given: dict[str, Any] = self.cleaned_data
        what = str(given["what"])
        is_role = what.startswith(ROLE)
        return Grant(
            role=Role(what.removeprefix(ROLE)) if is_role else None,
            operation=None if is_role else Operation(what.removeprefix(OPERATION)),
            cluster=given["cluster"],
            kind=Kind(given["kind"]) if given["kind"] else None,
            pattern=given["pattern"] or ANY,
        )


class NewUserForm(GrantForm):
    name = forms.CharField(max_length=MAX_NAME_CHARS)
    # If it is empty, one is generated.
    password = forms.CharField(required=False, max_length=MAX_PASSWORD_CHARS, strip=False)
