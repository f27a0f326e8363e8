"""A release: a folder with rows, recoding, policy, certificate and report, and the queries that it answers.

``certificate`` says what is claimed of the rows, ``folder`` names the files and puts them in place in one step;
``verify`` imports these two. ``release`` has :class:`Release`, and ``query`` answers COUNT, SUM and AVG from published
rows. ``strict_json`` reads documents: certificates, evaluations, accounts.
"""
