"""Runs modules of the console's pages in Node, where they are without a browser.

Modules are copied into a folder that says what they are: without one Node takes `.js` for its own
older kind of module. A Node takes 50 ms of CPU to start, so that the tests of a worker share one.
"""

import atexit
import json
import select
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

STATIC: Final = Path(__file__).resolve().parents[1] / "console" / "static" / "console"
# A module that waits for itself would hold a run of tests.
PATIENCE_S: Final = 20
# Answers a line of JSON with a line of JSON, until its input ends.
PROGRAM: Final = """
import { createInterface } from "node:readline";
const { constructor: Asked } = async function () {};
const bytes = (list) => (list === null ? null : Uint8Array.from(list));
const plain = (key, value) => (value instanceof Uint8Array ? [...value] : value);
const answer = async ({ module, expression, given }) => {
  const evaluate = new Asked("m", "given", "bytes", `return (${expression});`);
  return { found: await evaluate(await import(module), given, bytes) };
};
for await (const line of createInterface({ input: process.stdin })) {
  const told = await answer(JSON.parse(line)).catch((error) => ({ failure: error.stack }));
  process.stdout.write(`${JSON.stringify(told, plain)}\\n`);
}
"""


@cache
def _folder() -> Path:
    folder = Path(mkdtemp(prefix="modules-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in STATIC.rglob("*.js"):
        if "vendor" not in path.parts:
            target = folder / path.relative_to(STATIC)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    (folder / "package.json").write_text('{"type": "module"}', encoding="ascii")
    (folder / "answers.js").write_text(PROGRAM, encoding="utf-8")
    return folder


@cache
def _node() -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        ["node", "answers.js"],
        cwd=_folder(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    atexit.register(_stop, process)
    return process


def _stop(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def evaluated(module: str, expression: str, given: object = None) -> Any:
    """Return what an expression makes of a module `m` and of `given`, both as JSON has it."""
    node = _node()
    assert node.stdin is not None
    assert node.stdout is not None
    question = {"module": f"./{module}", "expression": expression, "given": given}
    node.stdin.write(f"{json.dumps(question)}\n")
    node.stdin.flush()
    has_answer, _, _ = select.select([node.stdout], [], [], PATIENCE_S)
    line = node.stdout.readline() if has_answer else ""
    if not line:
        # It hangs or has ended: the next test gets another one.
        _stop(node)
        _node.cache_clear()
    assert has_answer, f"{module} did not answer within {PATIENCE_S} s"
    assert line, f"Node ended while it evaluated {expression} of {module}"
    told = json.loads(line)
    assert "failure" not in told, told["failure"]
    return told.get("found")
