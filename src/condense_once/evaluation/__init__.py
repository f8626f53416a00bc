"""From a set to an accuracy: protocols, repeats, results."""
