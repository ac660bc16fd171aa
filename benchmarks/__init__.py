"""posviz beside other tools, measured in one run: ``make bench``, or ``python -m benchmarks --help``."""
