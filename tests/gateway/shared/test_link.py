"""What a URL says, and what a server may answer."""

import asyncio
from pathlib import Path

import pytest

from gateway.shared import link
from gateway.shared.link import Address, BadAddress, LinkError, address_of, opened


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", Address(host="cache")),
        (
            "redis://:p%40ss@cache:7000/3",
            Address(host="cache", port=7000, password="p@ss", database=3),  # noqa: S106
        ),
        ("rediss://me:x@cache", Address(host="cache", has_tls=True, user="me", password="x")),  # noqa: S106
        ("unix:///srv/a%20b/s", Address(path="/srv/a b/s")),
    ],
)
def test_a_url_names_a_server(url: str, address: Address) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "http://secret@cache", "redis://", "redis://cache:99999", "redis://cache/x", "unix://"],
)
def test_a_url_that_names_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadAddress) as refused:
        address_of(url)

    assert "secret" not in str(refused.value)


def asked(folder: Path, answer: bytes) -> object:
    """Ask a server that answers so, and closes."""

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    async def run() -> object:
        async with await asyncio.start_unix_server(answer_once, folder / "s"):
            connection = await opened(Address(path=str(folder / "s")))
            try:
                return (await connection.ask([("PING",)]))[0]
            finally:
                connection.close()
                await asyncio.sleep(0)

    return asyncio.run(run())


def test_an_answer_is_what_was_said(tmp_path: Path) -> None:
    assert asked(tmp_path, b"*2\r\n:0\r\n$1\r\na\r\n") == [0, b"a"]


@pytest.mark.parametrize(
    "answer", [b"-LOADING wait\r\n", b"$5\r\nab", b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
def test_a_refusal_and_half_an_answer_are_errors(tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(LinkError):
        asked(tmp_path, answer)


def test_an_answer_without_an_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "MAX_ANSWER_BYTES", 100)

    with pytest.raises(LinkError, match="more than 100 bytes"):
        asked(tmp_path, b"$9999\r\n" + bytes(200))
