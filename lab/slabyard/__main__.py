"""`python -m slabyard` is `slabyard`."""

import sys

from .cli import main

sys.exit(main())
