"""Fields of recipes: checked, and overridden from text by the type that the field has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_type_hints

from condense_once.errors import BadFile, BadOption, UnknownName
from condense_once.registry import nearest
from condense_once.text import short_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    R = TypeVar("R", bound=DataclassInstance)

Init = Literal["first", "random", "representatives", "noise", "given"]
ImageSpace = Literal["pixels", "normalised"]  # of the optimised values


def override_fields(recipe: R, overrides: Mapping[str, Any]) -> R:
    """The same recipe with other values of some fields; numbers and booleans may be given as text."""
    kinds = get_type_hints(type(recipe))
    known = [each.name for each in fields(recipe) if each.name != "method"]
    for name in overrides:
        if name not in known:
            raise UnknownName(f"This method's recipe has no {name!r}; {nearest(name, known)}")
    return replace(recipe, **{name: _parse(name, value, kinds[name]) for name, value in overrides.items()})


def saved_recipe(kind: type[R], fields: Mapping[str, Any]) -> R:
    """The recipe of this kind in a checkpoint."""
    try:
        return kind(**fields)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:  # values of other types, or impossible ones
        raise BadFile(f"its recipe is invalid ({short_line(error)}).") from None


def check_choices(recipe: DataclassInstance) -> None:
    """Refuse a value that is none of the words of its field."""
    for name, kind in get_type_hints(type(recipe)).items():
        options = [option for option in get_args(kind) if isinstance(option, str)]
        if options and getattr(recipe, name) not in options:
            raise BadOption(f"The recipe's {name} is {_either(options)}, not {getattr(recipe, name)!r}.")


def check_least(recipe: DataclassInstance, least: Mapping[str, int]) -> None:
    """Refuse numbers below the smallest valid one."""
    for name, value in least.items():
        if getattr(recipe, name) < value:
            raise BadOption(f"The recipe's {name} must be at least {value}, not {getattr(recipe, name)}.")


def _parse(name: str, value: Any, kind: Any) -> Any:
    """A value of the field's type, from a number of Python or numpy or from text."""
    if kind not in _PARSERS:
        return value  # one of several words, which the recipe checks itself
    what, parse = _PARSERS[kind]
    try:
        return parse(value)
    except (KeyError, TypeError, ValueError):
        raise BadOption(f"The recipe's {name} is {what}, not {value!r}.") from None


def _integer(value: Any) -> int:
    return int(value) if isinstance(value, str) else index(_not_bool(value))


def _float(value: Any) -> float:
    return float(_not_bool(value))


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):  # Python takes it for a number
        raise TypeError
    return value


_PARSERS: Mapping[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("an integer", _integer),
    float: ("a number", _float),
    bool: ("true or false", lambda value: {"true": True, "false": False, True: True, False: False}[value]),
}


def _either(options: Sequence[str]) -> str:
    return f"{', '.join(options[:-1])} or {options[-1]}"
