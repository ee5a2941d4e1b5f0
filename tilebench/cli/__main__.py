"""`python -m tilebench.cli`: the same as the command `tilebench`."""

from __future__ import annotations

import sys

from . import main

sys.exit(main())
