"""A Flower app whose clients each take what they can of one ranked file."""
