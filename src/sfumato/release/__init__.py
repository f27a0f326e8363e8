"""What is handed out: a folder with rows, recoding, policy, certificate and report, and questions that it answers.

``certificate`` says what is claimed of the rows, ``folder`` names the files and puts them in place in one step;
``verify`` imports these two. ``release`` has :class:`Release`, and ``query`` answers COUNT, SUM and AVG from published
rows.
"""
