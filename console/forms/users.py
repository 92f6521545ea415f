"""Forms about users and their rights. What a right means is checked by `gateway.access`."""

from typing import Any, Final

from django import forms

from console.forms.passwords import MAX_PASSWORD_CHARS
from gateway.access.grants import ANY, MAX_PATTERN_CHARS, Grant
from gateway.access.operations import Kind, Operation, Role

# What Django's users can have as a name.
MAX_NAME_CHARS: Final = 150
ROLE: Final = "role:"
OPERATION: Final = "operation:"
EVERYTHING: Final = ""


class GrantForm(forms.Form):
    """A role or a right, with what it is for."""

    what = forms.ChoiceField(
        choices=[
            *((f"{ROLE}{role.value}", role.value) for role in Role),
            *((f"{OPERATION}{operation.value}", operation.value) for operation in Operation),
        ],
        initial=f"{ROLE}{Role.VIEWER.value}",
    )
    # Any text: a cluster may have gone since the page was made, and services check the form of it.
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
    # Empty makes one.
    password = forms.CharField(required=False, max_length=MAX_PASSWORD_CHARS, strip=False)
