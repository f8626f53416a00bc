"""Class-incremental learning with a replay memory of a fixed number of bytes."""
