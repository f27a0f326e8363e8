"""What the scripts of the figures share: tables, trials, records and pictures."""
