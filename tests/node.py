"""Runs modules of the console's pages in Node, where they are without a browser.

Modules are copied into a folder that says what they are: without one Node takes `.js` for its own
older kind of module.
"""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

STATIC: Final = Path(__file__).resolve().parents[1] / "console" / "static" / "console"
# A module that waits for itself would hold a run of tests.
PATIENCE_S: Final = 20


@cache
def _folder() -> Path:
    folder = Path(mkdtemp(prefix="modules-"))
    for path in STATIC.rglob("*.js"):
        if "vendor" not in path.parts:
            target = folder / path.relative_to(STATIC)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    (folder / "package.json").write_text('{"type": "module"}', encoding="ascii")
    return folder


def evaluated(module: str, expression: str, given: object = None) -> Any:
    """Return what an expression makes of a module `m` and of `given`, both as JSON has it."""
    program = f"""
        import * as m from {json.dumps(f"./{module}")};
        import {{ readFileSync }} from "node:fs";
        const given = JSON.parse(readFileSync(0, "utf-8"));
        const bytes = (list) => (list === null ? null : Uint8Array.from(list));
        const plain = (key, value) => (value instanceof Uint8Array ? [...value] : value);
        const found = await ({expression});
        process.stdout.write(JSON.stringify({{ found }}, plain));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        cwd=_folder(),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout).get("found")
