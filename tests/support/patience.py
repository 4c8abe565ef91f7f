"""How long tests wait: for conditions, and all alike."""

import os

# Seconds until something that must happen is taken for something that never will. A machine that
# does other work takes minutes for what takes a second elsewhere, and no test may fail for that.
# Where an `expect` is being written, `PATIENCE=10 .venv/bin/pytest …` says sooner that it is wrong.
PATIENCE = int(os.environ.get("PATIENCE", "180"))
