"""How long tests wait: for conditions, and all alike."""

# Seconds until something that must happen is taken for something that never will. A machine that
# does other work takes minutes for what takes a second elsewhere, and no test may fail for that.
PATIENCE = 180
