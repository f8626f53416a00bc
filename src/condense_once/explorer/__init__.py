"""The explorer: one HTML page that shows a ranked set shrink, with what it costs in accuracy and bytes."""
