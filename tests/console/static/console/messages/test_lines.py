"""A stream of bytes in lines, however it was cut on its way."""

import pytest

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")

# The lines of chunks, each chunk a list of bytes.
CUT = """
(async () => {
  const chunks = given.chunks.map(bytes);
  const reader = { read: async () => (chunks.length ? { done: false, value: chunks.shift() } : { done: true }) };
  const found = [];
  try {
    for await (const some of m.lines(reader, given.most)) found.push(...some);
  } catch (error) {
    found.push(`refused: ${error.message}`);
  }
  return found;
})()
"""  # noqa: E501 - a program


def cut(data: bytes, size: int, *, most: int = 1000) -> list[str]:
    chunks = [list(data[at : at + size]) for at in range(0, len(data), size)]
    return list(evaluated("messages/lines.js", CUT, {"chunks": chunks, "most": most}))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_whole_wherever_chunks_end(size: int) -> None:
    data = '{"a":"ü€😀"}\n\n{"b":1}\nlast without an end'.encode()

    assert cut(data, size) == ['{"a":"ü€😀"}', '{"b":1}', "last without an end"]


def test_an_empty_stream_has_no_lines() -> None:
    assert cut(b"", 1) == []


def test_a_line_without_end_is_refused() -> None:
    assert cut(b"ok\n" + b"x" * 5000, 100) == [
        "ok",
        "refused: a line of the stream is longer than 1000 characters",
    ]
