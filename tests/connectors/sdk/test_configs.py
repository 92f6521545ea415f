"""A parsed password leaves in no way but the one that says so."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from connectors.sdk.configs import MASK, Secret

S = Secret("hunter2")


@dataclass(frozen=True)
class Holder:
    password: Secret


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda secret: json.dumps({"password": secret}),
        pickle.dumps,
        lambda secret: pickle.dumps([secret], protocol=0),
        lambda secret: "".join(["a", secret]),  # noqa: FLY002 - how it is written is tested
        lambda secret: "postgresql://u:" + secret,
        bytes,
        lambda secret: secret.encode(),
        list,
    ],
)
def test_what_would_write_a_secret_fails(write: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as failure:
        write(S)

    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize(
    "shown",
    [
        str(S),
        repr(S),
        f"{S}",
        f"{S:>20}",
        "%s" % S,  # noqa: UP031 - the way of writing is what is tested
        repr([S]),
        json.dumps({"password": S}, default=str),
        repr(Holder(S)),
        repr(asdict(Holder(S))),
        repr(copy.deepcopy([S])),
    ],
)
def test_what_prints_a_secret_prints_its_mask(shown: str) -> None:
    assert MASK in shown
    assert "hunter2" not in shown


def test_a_secret_is_compared_measured_and_revealed() -> None:
    assert Secret("hunter2") == S != Secret("hunter3")
    assert S != "hunter2"
    assert len({S, Secret("hunter2")}) == 1
    assert (len(S), bool(S), bool(Secret(""))) == (7, True, False)
    assert S.reveal() == "hunter2"
