"""``python -m verdiv`` is the command."""

from __future__ import annotations

import sys

from verdiv.cli import main

if __name__ == "__main__":
    sys.exit(main())
