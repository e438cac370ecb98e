"""Adds seconds of soak that ended well to hours.json: python tests/soak/hours.py SECONDS. Called by make soak, after it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FILE = Path(__file__).with_name("hours.json")


def main(seconds: str) -> None:
    told = json.loads(FILE.read_text()) if FILE.exists() else {"runs": 0, "seconds": 0}
    told = {"runs": told["runs"] + 1, "seconds": told["seconds"] + int(seconds)}
    FILE.write_text(json.dumps(told) + "\n")
    print(f"soak: {told['seconds'] / 3600:.2f} hours in {told['runs']} runs so far ({FILE})")


if __name__ == "__main__":
    main(sys.argv[1])
