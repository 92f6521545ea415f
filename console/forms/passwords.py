"""Validates a user's change of their own password."""

from typing import Any, Final

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password

# The longest password that is hashed.
MAX_PASSWORD_CHARS: Final = 4096


class PasswordForm(forms.Form):
    """The former password, and the new one twice."""

    former = forms.CharField(max_length=MAX_PASSWORD_CHARS, strip=False)
    new = forms.CharField(max_length=MAX_PASSWORD_CHARS, strip=False)
    again = forms.CharField(max_length=MAX_PASSWORD_CHARS, strip=False)

    def __init__(self, user: User, data: Any = None) -> None:  # noqa: ANN401 - as Django has it
        super().__init__(data)
        self._user = user

    def clean_former(self) -> str:
        former = str(self.cleaned_data["former"])
        if not self._user.check_password(former):
            raise forms.ValidationError("This is not your present password. It is case-sensitive.")
        return former

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        new, again, former = given.get("new"), given.get("again"), given.get("former")
        if new is not None and again is not None and new != again:
            self.add_error("again", "The two new passwords differ: type the same one twice.")
        if new is not None and former is not None:
            if new == former:
                self.add_error("new", "This is the password that you have: choose another one.")
            else:
                self._validate(new)
        return given

    def _validate(self, new: str) -> None:
        try:
            validate_password(new, self._user)
        except forms.ValidationError as error:
            self.add_error("new", error)
