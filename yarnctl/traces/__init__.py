"""Jobs read from trace files (SWIM, Rumen, our Parquet), ordered by submission."""
