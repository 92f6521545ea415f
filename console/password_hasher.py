"""Hashes passwords, few at a time: each takes memory and time on purpose.

Logins run in a thread each. Without a bound here, forty at once took 1.4 GB.
"""

from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

from console.turns import Turns

# At once: two cores hash no faster with more, and their memory is that of the constant below.
PLACES: Final = 2
# Who may wait for a place: the last of them waits a second or two, which a person puts up with.
QUEUE: Final = 20
# A thread that waits longer than this is given up: its browser has, or the machine is overwhelmed.
WAIT_SECONDS: Final = 10.0


# Of the whole process, whoever asks.
TURNS: Final = Turns(
    places=PLACES, queue=QUEUE, wait_s=WAIT_SECONDS, what="passwords are being checked"
)


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 46 MiB and two passes: more than OWASP asks, and half of Django's memory.

    A hash of other costs stays valid; Django makes it anew at the next login, and in a turn as
    well.
    """

    time_cost = 2
    memory_cost = 46 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with TURNS.turn():
            encoded: str = super().encode(password, salt)
            return encoded

    def verify(self, password: str, encoded: str) -> bool:
        with TURNS.turn():
            is_right: bool = super().verify(password, encoded)
            return is_right
