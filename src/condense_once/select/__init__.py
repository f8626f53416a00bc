"""What to keep of a condensed set: orders, budgets and the smaller sets they give."""
