"""Pretrained models of Hugging Face's families, opened from a folder or by name; needs the extra ``models``."""

from posviz.models.pretrained.limits import Limits
from posviz.models.pretrained.load import COMMAND, check_installed, installed, load
from posviz.models.pretrained.model import Position, Pretrained

__all__ = ["COMMAND", "Limits", "Position", "Pretrained", "check_installed", "installed", "load"]
