"""The linter of the live figures' scripts (biome, biome.json), which came with .venv; silent when it finds nothing.

    python tools/lint_scripts.py [folder]
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(folder=ROOT):
    biome = Path(sysconfig.get_path("scripts")) / "biome"
    if not any(path.is_file() for path in (biome, biome.with_suffix(".exe"))):
        return "biome is not there: make test installs it, and lints the scripts of the live figures then."
    command = [biome, "lint", "--error-on-warnings", "--colors=off", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() if done.returncode else None


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
