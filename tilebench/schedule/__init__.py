"""Schedules: the value, the addresses it speaks in, and its files."""

from .addresses import Candidate, candidates, resolve, user_name
from .files import Rule, ScheduleFile, as_given, load_schedule, parse_schedule, save_schedule, schedule_text
from .options import OPTIONS, offered
from .value import Directive, Origin, Schedule

__all__ = [
    "OPTIONS",
    "Candidate",
    "Directive",
    "Origin",
    "Rule",
    "Schedule",
    "ScheduleFile",
    "as_given",
    "candidates",
    "load_schedule",
    "offered",
    "parse_schedule",
    "resolve",
    "save_schedule",
    "schedule_text",
    "user_name",
]  # fmt: skip
