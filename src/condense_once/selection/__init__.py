"""Selection: rankings, rules and the selectors that some rules use."""
