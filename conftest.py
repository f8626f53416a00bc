"""Tests compute in float32 on every processor, in other processes, too; those of bfloat16 ask for it."""

import os

os.environ["CONDENSE_ONCE_BFLOAT16"] = "0"
