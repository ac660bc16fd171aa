"""The twins: small language models trained on the same poems, alike but for their position encoding."""
