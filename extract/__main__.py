"""``python -m privfeat_extract``, which is also what torchrun can start."""

import sys

from .cli import main

sys.exit(main())
