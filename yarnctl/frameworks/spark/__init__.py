"""Spark: executors that leave by an order, and come back when the demand is over."""
