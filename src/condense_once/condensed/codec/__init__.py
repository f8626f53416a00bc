"""Cells in layers, from coarse to fine, in a stream of which every prefix is a set; `docs/format.md` section 9 describes it."""
