"""The rules of a study: those of `select`, and rules that refine what another one keeps into a new, slimmed set.

A name is that of a rule, or `slim`: the patches that `yoco` keeps, refined as by `condense_once.slim`. Suffixes and a prefix say
what differs: `slim-nested` makes one set for all sizes, `slim-1000` takes so many steps, `stored+slim` starts from another rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from condense_once.errors import BadOption
from condense_once.selection.rule import YOCO, Rule, RuleInfo, as_rule

METHOD: Literal["tgdd"] = "tgdd"
STEPS = 300  # about three minutes on one core, from 400 patches of 32×32 to 40; `slim` stops by the clock instead
MAX_STEPS = 1_000_000
SHORT = {"experts": 1, "ahead": 0}  # as `slim` within a few minutes
_SLIM = re.compile(r"slim(?P<nested>-nested)?(?:-(?P<steps>[0-9]{1,7}))?")


@dataclass(frozen=True)
class Slimming:
    """How patches are refined: by a number of steps, not by time, so that it is the same set on any machine."""

    nested: bool = False  # one slimmed set for all sizes, of which each is a prefix
    steps: int = STEPS

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= MAX_STEPS:
            raise BadOption(f"The steps of the rule `slim` must be from 1 to {MAX_STEPS}, not {self.steps}.")

    @property
    def name(self) -> str:
        return f"slim{'-nested' if self.nested else ''}{'' if self.steps == STEPS else f'-{self.steps}'}"

    @property
    def recipe(self) -> dict[str, Any]:
        """Fields of the method's recipe."""
        from condense_once.condensing.slim import SETTINGS  # late: listing studies needs no torch

        return {**SETTINGS[METHOD], **SHORT, "iterations": self.steps}

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines what it does. Names of facts are part of keys and never change."""
        return {"method": METHOD, "nested": self.nested, "recipe": self.recipe}


@dataclass(frozen=True)
class StudyRule:
    """A rule, and how the patches that it keeps are refined, if they are.

    >>> StudyRule.parse("slim-nested").name, StudyRule.parse("yoco+slim-300").name, StudyRule.parse("ccs").slimming
    ('slim-nested', 'slim', None)
    """

    rule: Rule
    slimming: Slimming | None = None

    def __post_init__(self) -> None:
        if self.slimming is not None and not self.rule.balanced and self.rule.reads != "positions":
            raise BadOption(
                f"Only patches of balanced classes can be slimmed, so the rule {self.name!r} is invalid; slim those of"
                f" {replace(self.rule, balanced=True).name}."
            )

    @classmethod
    def parse(cls, given: str | Rule | RuleInfo) -> StudyRule:
        if not isinstance(given, str):
            return cls(as_rule(given))
        first, _, last = given.strip().lower().rpartition("+")
        if (match := _SLIM.fullmatch(last.strip())) is None:
            return cls(Rule.parse(given))
        slimming = Slimming(match["nested"] is not None, int(match["steps"] or STEPS))
        return cls(Rule.parse(first) if first else YOCO, slimming)

    @property
    def name(self) -> str:
        """The shortest name that `parse` reads as this rule."""
        if self.slimming is None:
            return self.rule.name
        return self.slimming.name if self.rule == YOCO else f"{self.rule.name}+{self.slimming.name}"

    @property
    def method(self) -> str:
        """Its name without balance, which all slimmed sets have."""
        return replace(self.rule, balanced=False).name if self.slimming is None else self.name
