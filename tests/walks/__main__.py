"""`python -m tests.walks [--json]`: prints the files of each walk in their order."""

import json
import sys

from tests.walks.walks import all_walks


def main(*, is_json: bool) -> None:
    walks = all_walks()
    if is_json:
        files = {name: [walk.files, walk.middleware] for name, walk in walks.items()}
        sys.stdout.write(json.dumps(files))
        return
    for name, walk in walks.items():
        counts = f"{len(walk.files)} files, {len(walk.functions)} functions"
        sys.stdout.write(f"{name}: {counts}, behind {len(walk.middleware)} files of middleware\n")
        sys.stdout.writelines(f"  - {file}\n" for file in walk.middleware)
        sys.stdout.writelines(f"    {file}\n" for file in walk.files)


if __name__ == "__main__":
    main(is_json="--json" in sys.argv[1:])
