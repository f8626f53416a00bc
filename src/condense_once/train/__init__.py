"""Train networks on small sets, fast on a CPU, and record the training dynamics of every patch."""
