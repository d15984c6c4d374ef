"""The calls of today."""
from . import flash as flash
