"""Places, the error root, and the one function that draws a source line with carets."""

from .draw import draw_place, nearest
from .install import DISTRIBUTION, install_command
from .numbers import flag_option, seconds_option, whole_option
from .place import Place, file_lines, kept_lines, remember_source, source_lines
from .tile_error import (
    ArgumentError,
    DTypeError,
    InternalError,
    IRError,
    LanguageError,
    LaunchError,
    LayoutError,
    OptionError,
    ResourceError,
    ScheduleError,
    ShapeError,
    TargetError,
    TileError,
    set_translation,
)

__all__ = [
    "DISTRIBUTION",
    "ArgumentError",
    "DTypeError",
    "IRError",
    "InternalError",
    "LanguageError",
    "LaunchError",
    "LayoutError",
    "OptionError",
    "Place",
    "ResourceError",
    "ScheduleError",
    "ShapeError",
    "TargetError",
    "TileError",
    "draw_place",
    "file_lines",
    "flag_option",
    "install_command",
    "kept_lines",
    "nearest",
    "remember_source",
    "seconds_option",
    "set_translation",
    "source_lines",
    "whole_option",
]
