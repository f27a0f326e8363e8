"""What labels lose, and why: ``values`` (how widely values must be told), ``divisions`` (which groups could be divided),
``reasons`` (both, summed up for each column).

This looks at raw rows, and what refuses a division tells something about sensitive values. So it is for the owner's
eyes: it is printed to stderr and stands in the owner's report, never in a release, and never under a differentially
private method.
"""
