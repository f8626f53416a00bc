"""The refusal of a time budget in which nothing useful can be done, the same for all condensers."""

from __future__ import annotations

import math

from condense_once.condensing.condenser import Task
from condense_once.errors import BadOption
from condense_once.nets import default_net, is_large, narrow_net, net_name
from condense_once.text import human_time

MARGIN = 1.2  # of the time that a budget is said to need: measurements vary …
MARGIN_OF_BOUND = 2.0  # … and lower bounds are lower


def refuse_too_short(
    task: Task, needed: float, left: float, what: str = "One step of every class", *, at_least: bool = False
) -> None:
    """Refuse to start if `what` needs more seconds than are `left` of the time budget; names what would help.

    The seconds are measured, or a lower bound (`at_least`).
    """
    if needed <= left:
        return
    spent = 60 * (task.config.minutes or 0) - left
    shape = task.source.train.shape
    large = is_large(shape)
    narrow = "convnet-d5-w32" if large else "convnet-d3-w32"
    minutes = math.ceil((MARGIN_OF_BOUND if at_least else MARGIN) * (spent + needed) / 60)
    helps = [f"allow `minutes` {minutes} or more"]
    if large:
        helps.append("make the images smaller (`size` 64)")
    usual = net_name(task.config.net) in (default_net(shape), narrow_net(shape))
    helps.append(f"choose a narrower network (`net` {narrow})" if usual else "choose a narrower `net`")
    rest = f"only {human_time(left)}" if left > 0 else "nothing"
    raise BadOption(
        f"{what} takes {'at least' if at_least else 'about'} {human_time(needed)} here, but after starting {rest} is left of"
        f" `minutes` {task.config.minutes or 0:g}; {', or '.join(helps)}."
    )
