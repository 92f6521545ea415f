"""SAMSA_SPARK names a Spark, and none beyond this machine is used without a secret."""

import pytest

from spark_integration.jobs.errors import SparkRefused
from spark_integration.jobs.targets import Kind, parse_target, shown

SHARED = "shared"
NONE = ""


@pytest.mark.parametrize(
    ("text", "url"),
    [("", "local[*]"), ("local", "local[*]"), ("local[2]", "local[2]"), ("local[*]", "local[*]")],
)
def test_spark_runs_locally_by_default(text: str, url: str) -> None:
    target = parse_target(text)

    assert (target.kind, target.url, target.is_loopback) == (Kind.LOCAL, url, True)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("sc://localhost", "sc://localhost:15002/"),
        ("sc://127.0.0.1:15003", "sc://localhost:15003/"),
        ("sc://[::1]:15003/;user_id=ann", "sc://localhost:15003/;user_id=ann"),
    ],
)
def test_a_server_of_this_machine_is_called_by_the_name_that_needs_no_tls(
    text: str, url: str
) -> None:
    target = parse_target(text)

    assert (target.kind, target.url, target.token) == (Kind.CONNECT, url, NONE)


def test_token_in_an_address_is_removed_from_it() -> None:
    target = parse_target("sc://spark.example/;use_ssl=true;token=a%3Db")

    assert (target.url, target.token) == ("sc://spark.example:15002/;use_ssl=true", "a=b")
    assert not target.is_loopback
    assert "a=b" not in repr(target)


@pytest.mark.parametrize("text", ["sc://spark.example", "sc://10.0.0.7:1", "spark://10.0.0.7"])
def test_another_machine_needs_a_token(text: str) -> None:
    with pytest.raises(SparkRefused, match="set SAMSA_SPARK_TOKEN"):
        parse_target(text)

    assert parse_target(text, token=SHARED).token == SHARED


def test_a_standalone_cluster_may_have_several_masters() -> None:
    target = parse_target("spark://one:7077,two", token=SHARED)

    assert target.kind is Kind.STANDALONE
    assert target.url == "spark://one:7077,two:7077"


def test_one_master_on_another_machine_makes_the_cluster_one_of_another_machine() -> None:
    assert parse_target("spark://127.0.0.1:7077,[::1]:7078").is_loopback
    with pytest.raises(SparkRefused, match="another machine"):
        parse_target("spark://127.0.0.1:7077,two:7078")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("yarn", "SAMSA_SPARK is 'yarn'; give local"),
        ("local[0]", "give local"),
        ("local[2", "give local"),
        ("sc://", "give sc://HOST:15002"),
        ("sc://host:99999", "no address of a server"),
        ("sc://ann:secret@host", "give sc://HOST:15002"),
        ("sc://host/path", "a path has to be"),
        ("sc://host/;token", "a setting has to be name=value"),
        ("spark://", "give spark://HOST:7077"),
        ("spark://host:7077/x", "give spark://HOST:7077"),
        ("spark://host:x", "no address of a master"),
    ],
)
def test_invalid_spark_target_is_refused_with_the_valid_form(text: str, sentence: str) -> None:
    with pytest.raises(SparkRefused, match=sentence.replace("[", r"\[")):
        parse_target(text, token=SHARED)


def test_a_refusal_shows_no_secret() -> None:
    with pytest.raises(SparkRefused) as refused:
        parse_target("sc://ann:hunter2@host/;token=hunter3")

    assert "hunter" not in str(refused.value)


def test_two_tokens_are_one_too_many() -> None:
    with pytest.raises(SparkRefused, match="different tokens"):
        parse_target("sc://localhost/;token=one", token=SHARED)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("spark://u:sesame@h:bad", "sesame"),
        ("sc://far/;Authorization=sesame", "sesame"),
        ("sc://u:sesame@far", "sesame"),
        ("sc://far;token=sesame", "sesame"),
        ("sc://far:15002;token=sesame", "sesame"),
        ("sc://far:15002;Authorization=sesame", "sesame"),
        ("sc://far:token=sesame", "sesame"),
        ("sc://u:open/sesame@far", "sesame"),
        ("spark://far;token=sesame", "sesame"),
        ("spark://u:open,sesame@far", "sesame"),
        ("spark://u:open=/sesame@far:x", "sesame"),
    ],
)
def test_a_refusal_shows_no_secret_of_an_address(text: str, secret: str) -> None:
    with pytest.raises(SparkRefused) as refused:
        parse_target(text)

    assert secret not in str(refused.value)


@pytest.mark.parametrize("text", ["sc://h;token=sesame", "spark://h;token=sesame"])
def test_settings_without_a_slash_are_not_a_host_name(text: str) -> None:
    with pytest.raises(SparkRefused, match=r";token=…'; give s"):
        parse_target(text, token=SHARED)


def test_hidden_text_stays_with_the_text_after_it() -> None:
    once = shown("sc://h/;token=sesame")

    assert shown(f"SAMSA_SPARK is {once!r}; start the server") == (
        "SAMSA_SPARK is 'sc://h/;token=…'; start the server"
    )
    assert shown("sc://h/;user_id=ann@example") == "sc://h/;user_id=ann@example"
