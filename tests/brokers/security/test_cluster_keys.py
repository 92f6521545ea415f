"""Keys of a cluster: HKDF as its RFC has it, and no key that is like another."""

import pytest

from brokers.security.cluster_keys import Purpose, derived, hkdf_sha256

# The SHA-256 cases of RFC 5869, appendix A: secret, salt, info, length, result.
CASES = [
    (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        42,
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        82,
        (
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41"
            "c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        ),
    ),
    (
        "0b" * 22,
        "",
        "",
        42,
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
]
SECRET = bytes(range(32))


@pytest.mark.parametrize(("secret", "salt", "info", "length", "wanted"), CASES)
def test_hkdf_makes_what_its_rfc_says(
    secret: str, salt: str, info: str, length: int, wanted: str
) -> None:
    made = hkdf_sha256(
        bytes.fromhex(secret), salt=bytes.fromhex(salt), info=bytes.fromhex(info), length=length
    )

    assert made.hex() == wanted


def test_a_key_differs_by_purpose_number_cluster_and_secret() -> None:
    keys = [
        *(
            derived(secret=SECRET, purpose=purpose, cluster_id="c", key_id=1).partition(".")[2]
            for purpose in Purpose
        ),
        *(
            derived(secret=secret, purpose=Purpose.PEER, cluster_id=cluster, key_id=number)[2:]
            for secret, cluster, number in [
                (SECRET, "c", 2),
                (SECRET, "d", 1),
                (bytes(32), "c", 1),
            ]
        ),
    ]

    assert len(set(keys)) == len(keys)


def test_a_key_is_shown_with_its_number_and_without_its_secret() -> None:
    key = derived(secret=SECRET, purpose=Purpose.SESSION, cluster_id="c", key_id=12)

    number, _, digits = key.partition(".")
    assert (number, len(digits)) == ("12", 64)
    assert SECRET.hex() not in key


def test_a_key_is_the_same_wherever_it_is_made() -> None:
    made = [
        derived(secret=SECRET, purpose=Purpose.TOKEN, cluster_id="c", key_id=3) for _ in range(2)
    ]

    assert made[0] == made[1]
