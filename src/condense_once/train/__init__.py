"""Training networks on small sets, fast on a CPU, and recording the training dynamics of every patch."""
