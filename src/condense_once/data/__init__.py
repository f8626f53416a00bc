"""Sources: real labelled images, by name or by path."""
