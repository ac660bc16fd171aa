"""posviz: how does a Transformer know the order of its words? Start with ``make run``."""

from posviz.ui import shell

shell.run()
