"""Models with trained weights behind the core's own attention."""
