"""What a supervisor makes of the status that its agent writes."""

from pathlib import Path

import pytest

from brokers.supervisor.agent_status import STATUS_FILE, trouble
from tests.brokers.supervisor.houses import running, within


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"pid": 7, "condition": "well", "message": ""}', ""),
        ('{"pid": 7, "condition": "regressed", "message": "it was set back"}', "it was set back"),
        ('{"pid": 7, "condition": "regressed"}', "regressed"),
        ('{"pid": 8, "condition": "regressed", "message": "of a former process"}', ""),
        ("[]", ""),
        ("{", ""),
    ],
)
def test_trouble_is_what_the_running_agent_says(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / STATUS_FILE).write_text(text)
    assert trouble(tmp_path, 7) == words


def test_an_agent_that_says_nothing_is_in_no_trouble(tmp_path: Path) -> None:
    assert trouble(tmp_path, 7) == ""


@pytest.mark.slow
def test_a_home_whose_agent_does_not_believe_its_database_is_not_healthy(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as house:
            await house.audience.hears("all is healthy")
            agent = await house.component("agent")
            assert agent["state"] == "healthy"
            (tmp_path / "run" / STATUS_FILE).write_text(
                f'{{"pid": {agent["pid"]}, "condition": "regressed", "message": "set back"}}'
            )

            agent = await house.component("agent")

            assert (agent["state"], agent["reason"]) == ("degraded", "set back")

    within(scenario)
